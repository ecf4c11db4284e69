"""Copies of cases, scores and results for the author's code: whatever it changes in them changes nothing else."""

from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from msgspec import structs

from greenroom.cases.case import Case, Expect, Stop, Turn
from greenroom.cases.scores import Score
from greenroom.ledger.messages import ToolCall

T = TypeVar("T")
_PARTS = (Case, Turn, Expect, Stop, Score)


def own_copy(value: T) -> T:
    """The value with lists and mappings of its own, in every depth; agents, models and functions are shared."""
    return cast("T", _copied(value))


def with_own_parts(record: T) -> T:
    """A dataclass with copies of the lists and mappings in its fields."""
    part: Any = record
    changed: dict[str, object] = {}
    for one in fields(part):
        held = getattr(part, one.name)
        if one.init and (copied := _copied(held)) is not held:
            changed[one.name] = copied
    return replace(part, **changed) if changed else record


def _copied(value: Any) -> Any:
    if isinstance(value, _PARTS):
        return with_own_parts(value)
    if isinstance(value, ToolCall):
        return structs.replace(value, args=_copied(value.args))
    if type(value) is dict:
        held = cast("dict[object, object]", value)
        return {key: _copied(inner) for key, inner in held.items()}
    if type(value) is list:
        return [*map(_copied, cast("list[object]", value))]
    if type(value) is set:
        return {*cast("set[object]", value)}
    if type(value) is tuple:
        old = cast("tuple[object, ...]", value)
        new = tuple(map(_copied, old))
        return old if all(a is b for a, b in zip(new, old, strict=True)) else new
    return value
