"""JSON held against a JSON Schema: the common keywords of draft 2020-12, and no silence on others.

A keyword that is not known here is refused when the schema is read, because a check that is skipped
looks like a check that passed. `format` and the words that only describe are annotations, as in the
standard.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, cast

from greenroom.ledger.plain import Json, is_array, is_object, same
from greenroom.ledger.records import record
from greenroom.metrics.schema_words import checked_schema, is_number, resolved


@record
class Schema:
    """A schema that was checked as a whole, so that holding values against it cannot break."""

    root: Json

    def problems(self, value: Json) -> list[str]:
        """What is wrong with a JSON value, each with its place; nothing if it fits."""
        return list(_problems(Looked(self.root, value, "$"), self.root))


def read_schema(schema: Any) -> Schema:
    """The schema, or BadMetric with the place of what cannot be used."""
    return Schema(checked_schema(schema))


@record
class Looked:
    """A value, where it stands, and the whole schema that references point into."""

    root: Json
    value: Json
    place: str

    def inside(self, value: Json, step: str) -> "Looked":
        """A part of the value."""
        return Looked(self.root, value, self.place + step)


Problems = Iterator[str]
Check = Callable[[Looked, Any, Mapping[str, Any]], Problems]


def _problems(at: Looked, schema: Json) -> Problems:
    if isinstance(schema, bool):
        if not schema:
            yield f"{at.place} should not be there"
        return
    for word, operand in schema.items():
        if check := _CHECKS.get(word):
            yield from check(at, operand, schema)


def _fits(at: Looked, schema: Json) -> bool:
    return next(_problems(at, schema), None) is None


def _wrong(at: Looked, wanted: str) -> str:
    shown = repr(at.value)
    return f"{at.place} is {shown if len(shown) <= 80 else shown[:79] + '…'}; wanted {wanted}"


# Any value

_TYPES: dict[str, Callable[[Json], bool]] = {
    "object": is_object,
    "array": is_array,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": is_number,
    "integer": lambda value: is_number(value) and value == value // 1,
}


def _type(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    names: list[str] = [operand] if isinstance(operand, str) else operand
    if not any(_TYPES[name](at.value) for name in names):
        yield _wrong(at, f"type {' or '.join(names)}")


def _enum(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if not any(same(at.value, choice) for choice in operand):
        yield _wrong(at, f"one of {operand!r}")


def _const(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if not same(at.value, operand):
        yield _wrong(at, repr(operand))


# Schemas on top of each other


def _ref(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    return _problems(at, resolved(at.root, operand))


def _all_of(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    for part in operand:
        yield from _problems(at, part)


def _any_of(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if not any(_fits(at, part) for part in operand):
        yield _wrong(at, f"what fits one of the {len(operand)} schemas of anyOf")


def _one_of(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    count = sum(_fits(at, part) for part in operand)
    if count != 1:
        yield _wrong(at, f"what fits exactly one schema of oneOf, not {count} of {len(operand)}")


def _not(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if _fits(at, operand):
        yield _wrong(at, "what does not fit the schema under `not`")


# Limits


def _limit(applies: Callable[[Json], bool], keeps: Callable[[Any, Any], bool], words: str) -> Check:
    def check(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
        if applies(at.value) and not keeps(at.value, operand):
            yield _wrong(at, words.format(operand))

    return check


def _text_limit(keeps: Callable[[Any, Any], bool], words: str) -> Check:
    return _limit(_TYPES["string"], keeps, words)


def _is_multiple(value: Any, unit: Any) -> bool:
    # As decimals, which is what JSON writes: 0.3 is a multiple of 0.1.
    return Fraction(repr(value)) % Fraction(repr(unit)) == 0


def _is_unique(items: Any, unique: Any) -> bool:
    return not unique or not any(
        same(one, other) for index, one in enumerate(items) for other in items[:index]
    )


# Objects and arrays


def _required(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if is_object(at.value):
        for name in operand:
            if name not in at.value:
                yield f"{at.place} lacks {name!r}"


def _properties(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if is_object(at.value):
        for name, part in operand.items():
            if name in at.value:
                yield from _problems(at.inside(at.value[name], _step(name)), part)


def _pattern_properties(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if is_object(at.value):
        for pattern, part in operand.items():
            for name, value in at.value.items():
                if re.search(pattern, name):
                    yield from _problems(at.inside(value, _step(name)), part)


def _additional(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:
    if is_object(at.value):
        named = cast("Mapping[str, Any]", schema.get("properties", {}))
        patterns = cast("Mapping[str, Any]", schema.get("patternProperties", {}))
        for name, value in at.value.items():
            if name not in named and not any(re.search(pattern, name) for pattern in patterns):
                yield from _problems(at.inside(value, _step(name)), operand)


def _names(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if is_object(at.value):
        for name in at.value:
            yield from _problems(at.inside(name, f" (the name {name!r})"), operand)


def _prefix_items(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:  # noqa: ARG001
    if is_array(at.value):
        for index, (item, part) in enumerate(zip(at.value, operand, strict=False)):
            yield from _problems(at.inside(item, f"[{index}]"), part)


def _items(at: Looked, operand: Any, schema: Mapping[str, Any]) -> Problems:
    if is_array(at.value):
        first = len(schema.get("prefixItems", ()))
        for index, item in enumerate(at.value[first:], first):
            yield from _problems(at.inside(item, f"[{index}]"), operand)


def _step(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{name!r}]"


_CHECKS: dict[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "$ref": _ref,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "minimum": _limit(is_number, lambda value, least: value >= least, "at least {}"),
    "maximum": _limit(is_number, lambda value, most: value <= most, "at most {}"),
    "exclusiveMinimum": _limit(is_number, lambda value, below: value > below, "more than {}"),
    "exclusiveMaximum": _limit(is_number, lambda value, above: value < above, "less than {}"),
    "multipleOf": _limit(is_number, _is_multiple, "a multiple of {}"),
    "minLength": _text_limit(lambda text, least: len(text) >= least, "{} characters or more"),
    "maxLength": _text_limit(lambda text, most: len(text) <= most, "{} characters or fewer"),
    "pattern": _text_limit(lambda text, form: re.search(form, text) is not None, "a match of {!r}"),
    "minItems": _limit(is_array, lambda items, least: len(items) >= least, "{} items or more"),
    "maxItems": _limit(is_array, lambda items, most: len(items) <= most, "{} items or fewer"),
    "uniqueItems": _limit(is_array, _is_unique, "items that differ"),
    "minProperties": _limit(is_object, lambda it, least: len(it) >= least, "{} names or more"),
    "maxProperties": _limit(is_object, lambda it, most: len(it) <= most, "{} names or fewer"),
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "prefixItems": _prefix_items,
    "items": _items,
}
