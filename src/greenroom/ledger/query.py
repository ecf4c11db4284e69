"""Mongo-style queries over state: what a case writes to say how the state should be.

In Python a function may be given instead of a value: it gets the actual value and says whether it
matches. Written as data it becomes `$live`: its identity can be compared, but it cannot be called.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from math import inf
from typing import Any, cast

from greenroom.errors import BadQuery, BadValue
from greenroom.ledger.changes import BUILT_IN_SCOPES
from greenroom.ledger.identity import code_identity
from greenroom.ledger.places import FieldLike, is_field
from greenroom.ledger.plain import (
    Json,
    alike,
    composed,
    composed_keys,
    is_array,
    is_object,
    number_in,
    plain,
    short_repr,
)

Query = Mapping[str, Any]
Predicate = Callable[[Any], object]


class _Missing:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()
"""The mark for a missing value; only `$exists` can tell it from None."""


def place_text(given: str | FieldLike) -> str:
    """A place in the state as text: scope and key with a dot; a bare key means the session scope."""
    if is_field(given):
        return f"{given.scope}.{given.name}"
    if not isinstance(given, str) or not all(given.split(".")):
        raise BadQuery(
            f'{given!r} is not a place in the state; write "key" for the session scope, "scope.key", or '
            f"a field of a state schema."
        )
    return given if "." in given else f"session.{given}"


def split_place(place: str) -> tuple[str, tuple[str, ...]]:
    """The scope of a place, and the keys that lead to it inside."""
    scope, *path = place_text(place).split(".")
    return scope, tuple(path)


def matches_state(state: Mapping[str, Any], query: Mapping[str, Query]) -> bool:
    """Whether each scope of `state` matches its part of `query`; an unknown scope is an error."""
    check_query(query)
    for scope in query:
        if scope not in state and scope not in BUILT_IN_SCOPES:
            raise BadQuery(
                f"the query asks about scope {scope!r}, but this run knows "
                f"{sorted({*state, *BUILT_IN_SCOPES})}. Rename it, or give the scope a fixture."
            )
    return all(matches(state.get(scope, {}), part) for scope, part in query.items())


def matches(value: Json, query: object) -> bool:
    """Whether `value` matches a query: operators, dotted paths, or a plain value to equal."""
    if not isinstance(query, Mapping) or not query:
        return _equals(value, cast("Any", query))
    asked = cast("Mapping[str, Any]", query)
    if has_operators(asked):
        return all(_operate(value, op, operand) for op, operand in asked.items())
    return all(matches(value_at(value, key), wanted) for key, wanted in asked.items())


def _equals(value: Json, wanted: Any) -> bool:
    if callable(wanted):
        return value is not MISSING and holds(wanted, plain(value))
    return alike(value, wanted)


def holds(predicate: Predicate, value: object) -> bool:
    """Whether `predicate` is true of `value`; an answer that is no verdict is refused."""
    found = predicate(value)
    # These would count as true, because every object does.
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        raise BadQuery(f"the predicate {predicate!r} is async; give a plain function.")
    if not _decides(found):
        raise BadQuery(
            f"the predicate {predicate!r} gave {short_repr(found)}, which is neither true nor false. "
            f"Return a bool: any(...) or all(...) of an iterator, and the result of a function."
        )
    return bool(found)


def _decides(answer: object) -> bool:
    if hasattr(answer, "reason") or hasattr(answer, "why"):  # the outcome of a metric
        return False
    return not (callable(answer) or isinstance(answer, _UNDECIDED) or answer != answer)


_UNDECIDED = (Iterator, str, bytes, tuple, dict, BaseException, type(...), type(NotImplemented))
"""Types of values that count as true although they decide nothing."""


def plain_query(query: object, where: str = "query") -> Json:
    """The query as JSON; a function in it becomes `{"$live": its name and a hash of its source}`."""
    try:
        return plain(query, where)
    except BadValue:
        # Most queries are data, so functions are looked for only where copying did not work.
        return plain(_named(query), where)


def _named(query: object) -> object:
    if isinstance(query, Mapping):
        return {key: _named(part) for key, part in cast("Mapping[str, Any]", query).items()}
    if isinstance(query, list | tuple):
        return [_named(part) for part in cast("list[Any]", query)]
    return {"$live": code_identity(query)} if callable(query) else query


def holds_code(query: Json) -> bool:
    """Whether a query that was saved as data had a function in it."""
    if is_object(query):
        return "$live" in query or any(map(holds_code, query.values()))
    return is_array(query) and any(map(holds_code, query))


def check_query(query: object, where: str = "query") -> None:
    """Refuse an invalid query before anything runs."""
    if isinstance(query, list | tuple):
        for index, part in enumerate(cast("list[Any]", query)):
            check_query(part, f"{where}[{index}]")
    if not isinstance(query, Mapping):
        return
    asked = cast("Mapping[str, Any]", query)
    operators = has_operators(asked)
    for key, operand in asked.items():
        if operators:
            _check_operator(key, operand, where)
        if key not in ("$eq", "$ne", "$in", "$nin"):
            check_query(operand, f"{where}.{key}")


def check_places(part: Mapping[str, object], where: str) -> None:
    """Refuse a key of a scope that has the prefix of another: no value is ever stored there.

    google-adk writes `user:name` for what is `name` in the scope `user` here.
    """
    for key in part:
        prefix, colon, name = key.partition(":")
        if colon and prefix in BUILT_IN_SCOPES:
            raise BadQuery(
                f"{where}: {key!r} is {name!r} in the scope {prefix!r}; "
                f'write {{"{prefix}": {{"{name}": ...}}}}.'
            )


def _check_operator(operator: str, operand: object, where: str) -> None:
    if operator not in _OPERATORS:
        raise _unknown(operator, where)
    if operator == "$regex":
        _pattern(operand, where)
    if operator == "$near":
        _near_what(operand, where)
    wanted, kinds = _OPERANDS.get(operator, ("", object))
    if not isinstance(operand, kinds):
        raise BadQuery(f"{where}: {operator} needs {wanted}, but got {operand!r}.")
    if kinds is _LIST[1] and not operand:
        # Every value matches it, or none does: either way it checks nothing.
        raise BadQuery(f"{where}: {operator} has an empty list, which checks nothing; add a value.")


_LIST = ("a list", (list, tuple))
_OPERANDS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(("$and", "$or", "$in", "$nin", "$all"), _LIST),
    "$exists": ("true or false", bool),
    "$size": ("a whole number", int),
}


def _unknown(operator: str, where: str = "the query") -> BadQuery:
    return BadQuery(f"{where} uses {operator!r}; use one of: {_KNOWN}.")


def has_operators(query: Mapping[Any, Any]) -> bool:
    """Whether the keys of a query are operators; BadQuery if one is not a string."""
    for key in query:
        if not isinstance(key, str):
            raise BadQuery(f"a query has the key {key!r}; keys must be strings. Use str(key).")
    return any(key.startswith("$") for key in query)


def value_at(value: Json | Mapping[str, Json], dotted: str) -> Json:
    """The value at a dotted path; list positions are numbers; nothing there is MISSING."""
    dotted = composed(dotted)
    found: Any = value
    if is_object(found) and (held := composed_keys(found).get(dotted, MISSING)) is not MISSING:
        return held
    for part in dotted.split("."):
        if is_object(found):
            found = composed_keys(found).get(part, MISSING)
        elif is_array(found) and (place := number_in(part)) is not None:
            found = found[place] if place < len(found) else MISSING
        else:
            return MISSING
    return found


def _operate(value: Json, op: str, operand: object) -> bool:
    if op not in _OPERATORS:
        raise _unknown(op)
    return _OPERATORS[op](value, operand)


def _equal(value: Json, operand: Json) -> bool:
    return value is not MISSING and alike(value, operand)


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Json, object], bool]:
    def compared(value: Json, operand: object) -> bool:
        numbers = isinstance(value, int | float) and isinstance(operand, int | float)
        if isinstance(value, bool) or isinstance(operand, bool):
            return False
        if isinstance(value, str) and isinstance(operand, str):
            return holds(composed(value), composed(operand))
        return numbers and holds(value, operand)

    return compared


def _among(value: Json, operand: Any) -> bool:
    return any(_equal(value, candidate) for candidate in operand)


def _pattern(operand: Any, where: str = "$regex") -> re.Pattern[str]:
    try:
        return re.compile(operand)
    except (re.error, TypeError) as error:
        raise BadQuery(
            f"{where}: $regex {operand!r} is not a regular expression: {error}."
        ) from error


def _finds(operand: Any, text: str) -> bool:
    written = _pattern(operand)
    pattern = re.compile(composed(written.pattern), written.flags)
    return pattern.search(composed(text)) is not None


def _near_what(operand: object, where: str = "$near") -> tuple[float, float]:
    """The number and how far from it a value may be."""
    match operand:
        case [int() | float() as number, int() | float() as tolerance] if not isinstance(
            number, bool
        ) and not isinstance(tolerance, bool):
            if 0 <= tolerance < inf and -inf < number < inf:
                return number, tolerance
        case _:
            pass
    raise BadQuery(f"{where}: $near needs [number, tolerance], but got {operand!r}.")


def _near(value: Json, operand: object) -> bool:
    number, tolerance = _near_what(operand)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return within(value, number, tolerance)


def within(one: float, other: float, tolerance: float) -> bool:
    """Whether two numbers differ by at most this much, as they are written: 1.1 is 0.1 from 1."""
    first, second, most = (
        Decimal(each) if isinstance(each, int) else Decimal(repr(float(each)))
        for each in (one, other, tolerance)
    )
    return abs(first - second) <= most


def _was_code(_: Json, operand: object) -> bool:
    raise BadQuery(
        f"the query held the function {operand!r}, which cannot be restored from data. Pass the case "
        f"itself: score(ledger, case=...)."
    )


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
    "$regex": lambda value, operand: isinstance(value, str) and _finds(operand, value),
    "$and": lambda value, operand: all(matches(value, part) for part in operand),
    "$or": lambda value, operand: any(matches(value, part) for part in operand),
    "$not": lambda value, operand: not matches(value, operand),
    "$all": _all,
    "$size": lambda value, operand: is_array(value) and len(value) == operand,
    "$elemMatch": lambda value, operand: isinstance(value, list) and _contains(value, operand),
    "$near": _near,
    "$live": _was_code,
}
_KNOWN = " ".join(operator for operator in _OPERATORS if operator != "$live")
