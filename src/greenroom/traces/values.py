"""Fields of foreign JSON, checked where they are read: each error names the field and what it should be."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import inf, isfinite

from greenroom.errors import BadTrace
from greenroom.ledger.plain import Json, is_array, is_object, short_repr


def obj(value: Json, what: str) -> dict[str, Json]:
    """The value, if it is an object."""
    if is_object(value):
        return value
    raise BadTrace(f"{what} should be an object, not {short_repr(value)}.")


def array(value: Json, what: str) -> list[Json]:
    """The value, if it is a list; None counts as an empty one."""
    if value is None:
        return []
    if is_array(value):
        return value
    raise BadTrace(f"{what} should be a list, not {short_repr(value)}.")


def text(value: Json, what: str, *, empty: bool = False) -> str:
    """The value, if it is a string; with `empty` it may be missing."""
    if isinstance(value, str) and (value or empty):
        return value
    if empty and value is None:
        return ""
    raise BadTrace(f"{what} should be a string, not {short_repr(value)}.")


def number(value: Json, what: str) -> float:
    """The value, if it is a finite number or a string of one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise BadTrace(f"{what} should be a number, not {short_repr(value)}.") from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:  # a whole number may have any length
            found = inf
        if isfinite(found) and found >= 0:
            return found
    raise BadTrace(f"{what} should be a number of 0 or more, not {short_repr(value)}.")


def moment(value: Json, what: str) -> float:
    """Seconds since the epoch, from an ISO date or a number of seconds or milliseconds."""
    if isinstance(value, str):
        try:
            made = datetime.fromisoformat(value)
        except ValueError:
            return number(value, what)
        if made.tzinfo is None:
            from datetime import UTC

            made = made.replace(tzinfo=UTC)
        return made.timestamp()
    found = number(value, what)
    return found / 1000 if found > 1e11 else found


def first(held: Mapping[str, Json], names: Iterable[str]) -> Json:
    """The value of the first of these names that has one."""
    return next((held[name] for name in names if held.get(name) is not None), None)
