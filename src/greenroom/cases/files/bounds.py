"""Limits of a file: what is deeper, longer or more than this is refused without trying."""

import re
from collections.abc import Iterable
from typing import Any, cast

from greenroom.cases.problems import Key, Problem, at, wrong
from greenroom.ledger.plain import Json

MAX_DEPTH = 60
MAX_TEXT = 4 * 1024 * 1024
MAX_KEY = 1000
MAX_PARTS = 1_000_000
"""Values, keys and brackets of a YAML file."""

_HALF = re.compile(r"[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\[uU]0*[dD][89a-fA-F]")


class Unreadable(ValueError):
    """Text that is not JSON or YAML, or larger than allowed; `line` and `column` say where, if known.

    `flaws` are the problems found up to there.
    """

    def __init__(self, why: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(why)
        self.line = line
        self.column = column
        self.flaws: list[Problem] = []


def has_halves(text: str) -> bool:
    """Whether a JSON or YAML text may hold lone surrogates, written as escapes."""
    return _ESCAPED_HALF.search(text) is not None


def check_bounds(data: Json, place: str = "", *, halves: bool) -> None:
    """Refuse values that are nested too deeply or too long, or, if there may be `halves`, strings with those."""
    keys = _beyond([data], 0, halves)
    if keys is None:
        return
    value: Any = data
    for key in keys[1:]:
        if isinstance(key, str):
            check_key(key, place)
        place, value = at(place, key), value[key]
    if isinstance(value, str):
        check_text(value, place)
    raise wrong(place, f"it is nested deeper than {MAX_DEPTH} levels")


def _beyond(holder: Any, depth: int, halves: bool) -> list[Key] | None:
    """The path to the first value in a container that exceeds the limits."""
    pairs: Any = cast(Any, holder.items() if type(holder) is dict else enumerate(holder))
    for key, item in cast("Iterable[tuple[Key, Any]]", pairs):
        kind = cast("type[Any]", type(item))
        if kind is str:
            if len(item) > MAX_TEXT or (halves and _HALF.search(item)):
                return [key]
        elif kind is dict or kind is list:
            if depth == MAX_DEPTH:
                return [key]
            if (found := _beyond(item, depth + 1, halves)) is not None:
                return [key, *found]
            if kind is dict and (bad := _bad_key(item, halves)) is not None:
                return [key, bad]
    return None


def _bad_key(item: dict[str, object], halves: bool) -> str | None:
    for key in item:
        if len(key) > MAX_KEY or (halves and _HALF.search(key)):
            return key
    return None


def check_text(text: str, place: str) -> None:
    """Refuse a string that is too long, or cannot be written."""
    if len(text) > MAX_TEXT:
        raise wrong(
            place, f"a string of {len(text)} characters is too long; the limit is {MAX_TEXT}"
        )
    if _HALF.search(text):
        raise wrong(place, "the string holds half a character (a lone surrogate)")


def check_key(key: str, place: str) -> None:
    """Refuse a key that is too long, or cannot be written."""
    if len(key) > MAX_KEY:
        raise wrong(place, f"a key of {len(key)} characters is too long; the limit is {MAX_KEY}")
    if _HALF.search(key):
        raise wrong(place, "a key holds half a character (a lone surrogate)")
