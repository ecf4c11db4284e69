"""JSON read strictly, and the positions of its parts.

Reading is left to the standard library's scanner. Places are looked up only when something is wrong,
by following the few paths asked for and jumping over everything else.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from sys import getsizeof
from typing import Any, cast

from greenroom.cases.files.bounds import Unreadable
from greenroom.cases.problems import Branches, Found, Key, Problem, at, shown
from greenroom.ledger.plain import Json

MAX_WEIGHT = 150 * 1024 * 1024
"""About how many bytes the text and its parsed content may take."""


def parsed_json(text: str) -> Json:
    """The parsed text; duplicate keys and invalid numbers are refused."""
    data, flaws = json_with_flaws(text)
    for flaw in flaws:
        raise Unreadable(flaw.message, flaw.line, flaw.column)
    return data


def json_with_flaws(text: str) -> tuple[Json, list[Problem]]:
    """The parsed text, and all duplicate keys and invalid numbers with their positions."""
    check_weight(text)
    try:
        return _DECODER.decode(text), []
    except json.JSONDecodeError as error:
        raise Unreadable(_said(error), error.lineno, error.colno) from error
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    except ValueError as error:
        if len(text) > _QUICKLY:
            raise Unreadable(str(error)) from error
        return _in_spite_of(text, error)


def _in_spite_of(text: str, refused: ValueError) -> tuple[Json, list[Problem]]:
    """The parsed text despite what is refused in it, and all that is refused."""
    try:
        data, flaws = _READ_ON.decode(text), _flaws(text)
    except json.JSONDecodeError as error:
        raise Unreadable(_said(error), error.lineno, error.colno) from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error
    if not flaws:
        raise Unreadable(str(refused)) from refused
    return data, flaws


def _said(error: json.JSONDecodeError) -> str:
    """The error, with a hint if it is a common slip."""
    rest = error.doc[error.pos :].lstrip()[:1]
    before = error.doc[: error.pos].rstrip()[-1:]
    if before == "," and rest in ("}", "]"):
        return f"{error.msg}: there is a comma before the closing {rest!r}"
    if rest == "'":
        return f"{error.msg}: strings need double quotes"
    if rest in ("/", "#"):
        return f"{error.msg}: JSON has no comments"
    return error.msg


def check_weight(text: str) -> None:
    """Refuse a text that would take too much memory to read."""
    if weight(text) > MAX_WEIGHT:
        raise Unreadable("it holds too many values; split it")


def weight(text: str) -> int:
    """An upper estimate of the memory that reading takes, from the punctuation in the text."""
    marks = 64 * (text.count(",") + text.count("[")) + 120 * (text.count(":") + text.count("{"))
    return getsizeof(text) + len(text) + marks


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if isfinite(number):
        return number
    raise ValueError(f"{digits[:40]} is too large for a number")


_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique
)


def _or_zero(digits: str) -> float:
    """The number; 0 if it is none, so that nothing else seems wrong with it."""
    number = float(digits)
    return number if isfinite(number) else 0.0


# Positions in the text

_BLANK = re.compile(r"[ \t\n\r]*")
_LENIENT = json.JSONDecoder()
_READ_ON = json.JSONDecoder(parse_constant=_or_zero, parse_float=_or_zero)
_QUICKLY = 4_000_000
_MOST_FLAWS = 1000


def json_positions(text: str, branches: Branches) -> Found:
    """The positions of the places that `branches` lead to, as far as they exist in the text."""
    following = _Following(text)
    begin = _skip(text, 0)
    following.follow(begin, begin, branches, ())
    return following.found


class _Following:
    """Goes through a text once, from its first line to the last wanted place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: Found = {}
        self._at, self._line, self._start = 0, 1, 0

    def follow(self, name: int, value: int, branches: Branches, way: tuple[Key, ...]) -> None:
        """Note where something is named, and what is wanted inside its value."""
        self.found[way] = self.position(name)
        left = len(branches)
        for key, begin, inner in _members(self.text, value) if left else ():
            if key in branches:
                self.follow(begin, inner, branches[key], (*way, key))
                left -= 1
            if not left:
                return

    def position(self, at: int) -> tuple[int, int]:
        """The line and the column of a character; calls must go forward in the text."""
        self._line += self.text.count("\n", self._at, at)
        self._start = self.text.rfind("\n", self._at, at) + 1 or self._start
        self._at = at
        return self._line, at - self._start + 1


def _members(text: str, start: int) -> Iterator[tuple[Key, int, int]]:
    """The key of each part of the object or array at `start`, where it begins, and where its value begins."""
    if text[start] not in "{[":
        return
    count, position = 0, _skip(text, start + 1)
    while text[position] not in "}]":
        key: Key = count
        begin = position
        if text[start] == "{":
            key, position = _key(text, position)
        yield key, begin, position
        count += 1
        _, end = _LENIENT.raw_decode(text, position)
        end = _skip(text, end)
        position = _skip(text, end + 1) if text[end] == "," else end


def _key(text: str, position: int) -> tuple[str, int]:
    key, end = _LENIENT.raw_decode(text, position)
    return cast(str, key), _skip(text, _skip(text, end) + 1)


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _flaws(text: str) -> list[Problem]:
    """Everything that is refused in a text that can be parsed."""
    following = _Following(text)
    found: list[Problem] = []
    for position, place, message in _refused(text, _skip(text, 0), ""):
        line, column = following.position(position)
        found.append(Problem(place, message, line=line, column=column))
        if len(found) == _MOST_FLAWS:
            break
    return found


def _refused(text: str, start: int, place: str) -> Iterator[tuple[int, str, str]]:
    seen: set[Key] = set()
    for key, begin, value in _members(text, start):
        inner = at(place, key)
        if key in seen:
            yield begin, inner, f"the key {shown(key)} is given twice"
        seen.add(key)
        if text[value] in "{[":
            yield from _refused(text, value, inner)
        elif text[value] != '"':
            number, end = _LENIENT.raw_decode(text, value)
            if isinstance(number, float) and not isfinite(number):
                yield begin, inner, f"{text[value:end][:40]} is not a number that JSON can hold"
