"""The keywords of a JSON Schema that can be checked, and what may stand behind each."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from greenroom.errors import BadMetric, BadValue
from greenroom.ledger.plain import Json, is_array, is_object, plain

DRAFT = "https://json-schema.org/draft/2020-12/schema"

TYPES = frozenset(("object", "array", "string", "boolean", "null", "number", "integer"))
_ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("format", "$comment", "contentEncoding", "contentMediaType", "discriminator"),
    )
)
_ONE = frozenset(("additionalProperties", "items", "not", "propertyNames"))
_SEVERAL = frozenset(("prefixItems", "anyOf", "oneOf", "allOf"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions"))


def checked_schema(schema: Any) -> Json:
    """A copy of the schema, if every word of it can be held against a value; else BadMetric."""
    try:
        root = plain(schema, "the schema")
    except BadValue as error:
        raise _bad("the schema", str(error)) from error
    _check(root, "#")
    _check_references(root)
    _check_ends(root)
    return root


def resolved(root: Json, reference: str) -> Json:
    """What a local reference points to: `#/$defs/name`, or `#` for the whole."""
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        found = found[int(key)] if is_array(found) else found[key]
    return found


def _check(schema: Json, where: str) -> None:
    if isinstance(schema, bool):
        return
    if not is_object(schema):
        raise _bad(where, f"{schema!r} is no schema; give an object, true or false")
    for word, operand in schema.items():
        if word in _ANNOTATIONS:
            continue
        if word not in _ONE and word not in _SEVERAL and word not in _NAMED:
            _check_operand(word, operand, where)
    for place, part in _parts(schema, where):
        _check(part, place)


def _parts(schema: Mapping[str, Any], where: str) -> Iterator[tuple[str, Json]]:
    """The schemas inside a schema, each with its place."""
    for word, operand in schema.items():
        here = f"{where}/{word}"
        if word in _ONE:
            yield here, operand
        elif word in _SEVERAL:
            if not is_array(operand) or not operand:
                raise _bad(where, f"{word!r} has {operand!r}; give a list of schemas")
            for index, part in enumerate(operand):
                yield f"{here}/{index}", part
        elif word in _NAMED:
            if not is_object(operand):
                raise _bad(where, f"{word!r} has {operand!r}; give schemas by name")
            for name, part in operand.items():
                if word == "patternProperties" and not _is_pattern(name):
                    raise _bad(here, f"{name!r} is no regular expression")
                yield f"{here}/{name}", part


def _check_operand(word: str, operand: Json, where: str) -> None:
    if word not in _OPERANDS:
        known = sorted({*_OPERANDS, *_ONE, *_SEVERAL, *_NAMED})
        raise _bad(where, f"the keyword {word!r} is not known here; known are {', '.join(known)}")
    fits, wanted = _OPERANDS[word]
    if not fits(operand):
        raise _bad(where, f"{word!r} has {operand!r}; give {wanted}")


def _schemas(schema: Json, where: str = "#") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema and all schemas inside it, but for the bare true and false."""
    if is_object(schema):
        yield where, schema
        for place, part in _parts(schema, where):
            yield from _schemas(part, place)


def _check_references(root: Json) -> None:
    # A reference may only point to what stands in a schema's place: the rest was not checked.
    known = {id(schema) for _, schema in _schemas(root)}
    for where, schema in _schemas(root):
        if "$ref" not in schema:
            continue
        try:
            target = resolved(root, schema["$ref"])
        except (KeyError, IndexError, ValueError, TypeError):
            target = None
        if id(target) not in known and not isinstance(target, bool):
            raise _bad(where, f"'$ref' has {schema['$ref']!r}, and no schema is there")


def _check_ends(root: Json) -> None:
    """Refuse a schema that asks itself about the same value, and would never come to an answer."""
    done: set[int] = set()

    def follow(schema: Json, where: str, open_: tuple[int, ...]) -> None:
        if not is_object(schema) or id(schema) in done:
            return
        if id(schema) in open_:
            raise _bad(where, "the schema leads back to itself without going into the value")
        for part in _on_the_same_value(schema, root):
            follow(part, where, (*open_, id(schema)))
        done.add(id(schema))

    for where, schema in _schemas(root):
        follow(schema, where, ())


def _on_the_same_value(schema: Mapping[str, Any], root: Json) -> Iterator[Json]:
    for word in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(word, ())
    if "not" in schema:
        yield schema["not"]
    if "$ref" in schema:
        yield resolved(root, schema["$ref"])


def _bad(where: str, problem: str) -> BadMetric:
    return BadMetric(f"json_schema(...), at {where}: {problem}.")


def is_number(value: Json) -> bool:
    """Whether a JSON value is a number; unlike in Python, true is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_pattern(value: Json) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError):
        return False
    return isinstance(value, str)


def _are_types(value: Json) -> bool:
    names = value if is_array(value) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _are_names(value: Json) -> bool:
    return is_array(value) and all(isinstance(name, str) for name in value)


Operand = tuple[Callable[[Json], bool], str]
_COUNT: Operand = (_is_count, "a whole number from 0")
_NUMBER: Operand = (is_number, "a number")

_OPERANDS: dict[str, Operand] = {
    "$schema": (lambda value: str(value).rstrip("#") == DRAFT, f"{DRAFT!r}, or leave it out"),
    "$ref": (
        lambda value: value == "#" or (isinstance(value, str) and value.startswith("#/")),
        "a local reference such as '#/$defs/name'",
    ),
    "type": (_are_types, f"one or several of {', '.join(sorted(TYPES))}"),
    "enum": (lambda value: is_array(value) and bool(value), "a list of values"),
    "const": (lambda value: True, "a value"),  # noqa: ARG005
    "required": (_are_names, "a list of names"),
    "pattern": (_is_pattern, "a regular expression"),
    "multipleOf": (lambda value: is_number(value) and value > 0, "a number above 0"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties"), _COUNT),
}
