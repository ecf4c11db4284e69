"""How pydantic validates the structs of a ledger where a user's type refers to one."""

from typing import Any

import msgspec

from greenroom.ledger.plain import Json, is_array, is_object


class PydanticStruct(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frozen struct that pydantic accepts as the type of a field."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        from pydantic_core import core_schema

        def convert(value: object) -> Any:
            return value if isinstance(value, cls) else msgspec.convert(value, cls, strict=False)

        return core_schema.no_info_plain_validator_function(
            convert,
            ref=f"{cls.__module__}.{cls.__qualname__}",
            serialization=core_schema.plain_serializer_function_ser_schema(msgspec.to_builtins),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> Any:
        (own,), parts = msgspec.json.schema_components([cls], ref_template="{name}")
        return _inline(own, parts)


def _inline(schema: Json, parts: dict[str, Json]) -> Json:
    """A JSON Schema with its definitions inlined: pydantic collects its own definitions."""
    if is_array(schema):
        return [_inline(value, parts) for value in schema]
    if not is_object(schema):
        return schema
    if "$ref" in schema:
        return _inline(parts[str(schema["$ref"])], parts)
    return {key: _inline(value, parts) for key, value in schema.items()}
