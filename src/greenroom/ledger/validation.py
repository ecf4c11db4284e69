"""How pydantic makes records: where a model, a tool or an output names one as its type."""

from typing import Any


def record_schema(cls: type[Any], source: Any, handler: Any) -> Any:
    """What is validated as a dataclass is made by the record itself.

    pydantic fills an empty object field by field, and there are no empty structs.
    """
    from pydantic_core import core_schema

    whole = handler(source)
    known = handler.resolve_ref_schema(whole)
    as_declared: Any = dict(known)
    ref, fields = as_declared.pop("ref", None), as_declared["schema"]

    def made(value: Any, checked: Any) -> Any:
        return value if isinstance(value, cls) else cls(**checked(value)[0])

    # What comes out of the first step is an instance, which the second leaves as it is.
    step = core_schema.no_info_wrap_validator_function(made, fields)
    # In its place, since other fields refer to it by name.
    known.clear()
    known.update(core_schema.chain_schema([step, as_declared], ref=ref))
    return whole


def record_json_schema(_: type[Any], schema: Any, handler: Any) -> Any:
    """JSON schema of a record: that of the dataclass it is declared as."""
    return handler(schema["steps"][-1] if schema["type"] == "chain" else schema)
