"""Mongo-style queries over state: what people type to say "this is how it should be"."""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from greenroom.errors import BadQuery
from greenroom.ledger.changes import BUILT_IN_SCOPES, State
from greenroom.ledger.plain import Json, is_array, is_object, same

Query = Mapping[str, Any]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()
"""Stands for a value that is not there; `$exists` alone can tell it from None."""


def matches_state(state: State, query: Mapping[str, Query]) -> bool:
    """Whether each scope of `state` matches its part of `query`; an unknown scope is an error."""
    check_query(query)
    for scope in query:
        if scope not in state and scope not in BUILT_IN_SCOPES:
            raise BadQuery(
                f"the query asks about scope {scope!r}, but this run knows "
                f"{sorted({*state, *BUILT_IN_SCOPES})}. Rename it, or give the scope a fixture."
            )
    return all(matches(state.get(scope, {}), part) for scope, part in query.items())


def matches(value: Json, query: Any) -> bool:
    """Whether `value` matches a query: operators, dotted paths, or a plain value to equal."""
    if not isinstance(query, Mapping) or not query:
        return same(value, query)
    asked = cast("Mapping[str, Any]", query)
    if _has_operators(asked):
        return all(_operate(value, op, operand) for op, operand in asked.items())
    return all(matches(_at(value, key), wanted) for key, wanted in asked.items())


def check_query(query: Any, where: str = "query") -> None:
    """Refuse a query that could never be understood, before anything runs."""
    if isinstance(query, list | tuple):
        for index, part in enumerate(cast("list[Any]", query)):
            check_query(part, f"{where}[{index}]")
    if not isinstance(query, Mapping):
        return
    asked = cast("Mapping[str, Any]", query)
    operators = _has_operators(asked)
    for key, operand in asked.items():
        if operators:
            _check_operator(key, operand, where)
        if key not in ("$eq", "$ne", "$in", "$nin"):
            check_query(operand, f"{where}.{key}")


def _check_operator(operator: str, operand: Any, where: str) -> None:
    if operator not in _OPERATORS:
        raise _unknown(operator, where)
    if operator == "$regex":
        _pattern(operand, where)
    wanted, kinds = _OPERANDS.get(operator, ("", object))
    if not isinstance(operand, kinds):
        raise BadQuery(f"{where}: {operator} wants {wanted}, but got {operand!r}.")


_LIST = ("a list", (list, tuple))
_OPERANDS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(("$and", "$or", "$in", "$nin", "$all"), _LIST),
    "$exists": ("True or False", bool),
    "$size": ("a whole number", int),
}


def _unknown(operator: str, where: str = "the query") -> BadQuery:
    return BadQuery(f"{where} uses {operator!r}; known operators are {' '.join(_OPERATORS)}.")


def _has_operators(query: Mapping[Any, Any]) -> bool:
    for key in query:
        if not isinstance(key, str):
            raise BadQuery(f"a query has the key {key!r}; keys are texts. Use str(key).")
    return any(key.startswith("$") for key in query)


def _at(value: Json, dotted: str) -> Json:
    """The value at a dotted path; list positions are numbers; nothing there is MISSING."""
    if is_object(value) and dotted in value:
        return value[dotted]
    for part in dotted.split("."):
        if is_object(value):
            value = value.get(part, MISSING)
        elif is_array(value) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else MISSING
        else:
            return MISSING
    return value


def _operate(value: Json, op: str, operand: Any) -> bool:
    if op not in _OPERATORS:
        raise _unknown(op)
    return _OPERATORS[op](value, operand)


def _equal(value: Json, operand: Any) -> bool:
    return value is not MISSING and same(value, operand)


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Json, Any], bool]:
    def compared(value: Json, operand: Any) -> bool:
        numbers = isinstance(value, int | float) and isinstance(operand, int | float)
        if isinstance(value, bool) or isinstance(operand, bool):
            return False
        if numbers or (isinstance(value, str) and isinstance(operand, str)):
            return holds(value, operand)
        return False

    return compared


def _among(value: Json, operand: Any) -> bool:
    return any(_equal(value, candidate) for candidate in operand)


def _pattern(operand: Any, where: str = "$regex") -> re.Pattern[str]:
    try:
        return re.compile(operand)
    except (re.error, TypeError) as error:
        raise BadQuery(f"{where}: $regex {operand!r} is no regular expression: {error}.") from error


def _all(value: Json, operand: Any) -> bool:
    return isinstance(value, list) and all(_contains(value, wanted) for wanted in operand)


def _contains(value: Any, wanted: Any) -> bool:
    return any(matches(item, wanted) for item in value)


_OPERATORS: dict[str, Callable[[Json, Any], bool]] = {
    "$eq": _equal,
    "$ne": lambda value, operand: not _equal(value, operand),
    "$gt": _compare(lambda a, b: a > b),
    "$gte": _compare(lambda a, b: a >= b),
    "$lt": _compare(lambda a, b: a < b),
    "$lte": _compare(lambda a, b: a <= b),
    "$in": _among,
    "$nin": lambda value, operand: not _among(value, operand),
    "$exists": lambda value, operand: (value is not MISSING) == bool(operand),
    "$regex": lambda v, operand: isinstance(v, str) and _pattern(operand).search(v) is not None,
    "$and": lambda value, operand: all(matches(value, part) for part in operand),
    "$or": lambda value, operand: any(matches(value, part) for part in operand),
    "$not": lambda value, operand: not matches(value, operand),
    "$all": _all,
    "$size": lambda value, operand: is_array(value) and len(value) == operand,
    "$elemMatch": lambda value, operand: isinstance(value, list) and _contains(value, operand),
}
