"""JSON read strictly, and the lines its parts stand on.

Reading is left to the standard library's scanner. Lines are looked up only when something is wrong,
by following the few paths asked for and jumping over everything else.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from sys import getsizeof
from typing import Any, cast

from greenroom.cases.files.bounds import Unreadable
from greenroom.cases.problems import Branches, Found, Key, shown
from greenroom.ledger.plain import Json

MAX_WEIGHT = 150 * 1024 * 1024
"""About how many bytes of memory the text and what is read from it may take."""


class _Twice(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(f"the key {shown(key)} is given twice")


def parsed_json(text: str) -> Json:
    """What the text says; keys given twice and numbers that are none are refused."""
    check_weight(text)
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"{error.msg} at column {error.colno}", error.lineno) from error
    except _Twice as error:
        raise Unreadable(str(error), _line_of_twice(text)) from error
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    except ValueError as error:
        raise Unreadable(str(error)) from error


def check_weight(text: str) -> None:
    """Refuse a text that would take too much memory to read."""
    if weight(text) > MAX_WEIGHT:
        raise Unreadable("it holds more values than are read at once; split it")


def weight(text: str) -> int:
    """An upper estimate of the memory that reading takes, from the marks in the text."""
    marks = 64 * (text.count(",") + text.count("[")) + 120 * (text.count(":") + text.count("{"))
    return getsizeof(text) + len(text) + marks


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if isfinite(number):
        return number
    raise ValueError(f"{digits[:40]} is too large for a number")


_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique
)


# Where things stand

_BLANK = re.compile(r"[ \t\n\r]*")
_LENIENT = json.JSONDecoder()
_QUICKLY = 4_000_000
_LEVELS = 20


def json_lines(text: str, branches: Branches) -> Found:
    """The lines of the places that `branches` lead to, as far as the text goes along with them."""
    following = _Following(text)
    following.follow(_skip(text, 0), branches, ())
    return following.found


class _Following:
    """Goes through a text once, from its first line to the last place that is wanted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: Found = {}
        self._at, self._line = 0, 1

    def follow(self, start: int, branches: Branches, way: tuple[Key, ...]) -> None:
        """Note the line of what begins at `start`, and of what is wanted inside it."""
        self._line += self.text.count("\n", self._at, start)
        self._at = start
        self.found[way] = self._line
        left = len(branches)
        for key, value in _members(self.text, start) if left else ():
            if key in branches:
                self.follow(value, branches[key], (*way, key))
                left -= 1
            if not left:
                return


def _members(text: str, start: int) -> Iterator[tuple[Key, int]]:
    """The key and the start of each part of the object or array at `start`."""
    if text[start] not in "{[":
        return
    count, position = 0, _skip(text, start + 1)
    while text[position] not in "}]":
        key: Key = count
        if text[start] == "{":
            key, position = _key(text, position)
        yield key, position
        count += 1
        position = _next(text, position)


def _key(text: str, position: int) -> tuple[str, int]:
    key, end = _LENIENT.raw_decode(text, position)
    return cast(str, key), _skip(text, _skip(text, end) + 1)


def _next(text: str, position: int) -> int:
    """Where the part after the one at `position` begins, or the closing bracket stands."""
    _, end = _LENIENT.raw_decode(text, position)
    end = _skip(text, end)
    return _skip(text, end + 1) if text[end] == "," else end


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _line_of_twice(text: str) -> int | None:
    """The line of the innermost object that has a key twice, if it is quickly found."""
    if len(text) > _QUICKLY:
        return None
    start = _skip(text, 0)
    for _ in range(_LEVELS):
        inner = next((at for _, at in _members(text, start) if _has_twice(text, at)), None)
        if inner is None:
            break
        start = inner
    return text.count("\n", 0, start) + 1


def _has_twice(text: str, start: int) -> bool:
    if text[start] not in "{[":
        return False
    try:
        _DECODER.raw_decode(text, start)
    except _Twice:
        return True
    except ValueError:
        return False
    return False
