"""Whether the arguments of a call are those that an expectation or a mock is for."""

from collections.abc import Mapping
from typing import Any, Literal, TypeGuard, cast

from greenroom.ledger.plain import Json, alike, composed_keys, is_array, is_object, plain
from greenroom.ledger.query import MISSING, has_operators, matches, within

ArgsMatch = Literal["exact", "subset", "superset", "ignore"]


def args_match(
    wanted: Mapping[str, Json],
    args: Mapping[str, Json],
    match: ArgsMatch = "exact",
    tolerance: float = 0.0,
) -> bool:
    """Whether a call's arguments equal the wanted ones ("exact"), include them all and perhaps others
    ("subset"), or are all among the wanted ones ("superset")."""
    wanted, args = composed_keys(wanted), composed_keys(args)
    if match == "superset":
        return all(
            name in wanted and value_fits(wanted[name], args[name], tolerance) for name in args
        )
    if match == "exact" and not args.keys() <= wanted.keys():
        return False
    for name, value in wanted.items():
        if not value_fits(value, args.get(name, MISSING), tolerance):
            return False
    return True


_TEXTS = frozenset((str, bool, type(None)))


def value_fits(wanted: Any, made: Json, tolerance: float = 0.0) -> bool:
    """Whether a value matches the wanted one.

    Operators (`{"$regex": "^Par"}`) and functions may be anywhere in what is wanted; `{"$eq": ...}`
    compares a value literally. Numbers may differ by `tolerance`.
    """
    kind = cast("type[object]", type(wanted))
    if kind in _TEXTS:
        return type(made) is kind and (wanted == made or alike(wanted, made))
    if kind is int or kind is float:
        return _is_number(made) and (
            wanted == made or (tolerance > 0 and within(wanted, made, tolerance))
        )
    if kind is list or kind is tuple:
        return (
            is_array(made)
            and len(wanted) == len(made)
            and all(value_fits(*pair, tolerance) for pair in zip(wanted, made, strict=True))
        )
    if isinstance(wanted, Mapping):
        query = cast("Mapping[str, Json]", wanted)
        if any(type(name) is not str for name in query):
            query = cast("dict[str, Json]", plain(query))
        if has_operators(query):
            return matches(made, query)
        return is_object(made) and args_match(query, made, "exact", tolerance)
    if callable(wanted):
        return matches(made, wanted)
    # A ledger holds JSON, so the wanted value is compared as JSON too.
    return alike(plain(wanted), made)


def _is_number(value: Json) -> TypeGuard[float]:
    return type(value) is int or type(value) is float
