"""Places in data, such as `cases[3].expect.tools[0]`, and what is wrong there."""

import json
import re
from collections.abc import Mapping, Sequence
from reprlib import Repr
from typing import Any, cast

from greenroom.cases.problems import Problem
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import Json

Key = str | int
"""A step into data: a name, or a position in a list."""

_PLAIN = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_STEP = re.compile(r'\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]', re.ASCII)
_LONGEST = 400

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlist = _SHORT.maxdict = 4
_SHORT.maxlevel = 3


def at(place: str, *keys: Key) -> str:
    """The place these steps further in."""
    for key in keys:
        if isinstance(key, int):
            place = f"{place}[{key}]"
        elif _PLAIN.fullmatch(key):
            place = f"{place}.{key}" if place else key
        else:
            place = f"{place}[{json.dumps(key)}]"
    return place


def keys_of(place: str) -> list[Key]:
    """The steps that lead to a place."""
    keys: list[Key] = []
    for name, index, quoted in cast("list[tuple[str, str, str]]", _STEP.findall(place)):
        keys.append(int(index) if index else name or json.loads(quoted))
    return keys


def put(data: Json, place: str, value: Json) -> bool:
    """Set the value at a place, unless something else stands in the way; whether it was set."""
    *way, last = keys_of(place) or [0]
    for key in way:
        inside = _inside(data, key)
        if inside is None and isinstance(data, dict) and key not in data:
            inside = data[key] = {}
        if not isinstance(inside, dict | list):
            return False
        data = cast(Json, inside)
    if not isinstance(data, dict) or not isinstance(last, str) or last in data:
        return False
    data[last] = value
    return True


def _inside(data: Json, key: Key) -> Json:
    if isinstance(data, dict):
        return cast("dict[Key, Json]", data).get(key)
    if isinstance(data, list) and isinstance(key, int):
        items = cast("list[Json]", data)
        return items[key] if key < len(items) else None
    return None


def shown(value: object) -> str:
    """A value for an error message, however large it is."""
    return _SHORT.repr(value)


def wrong(place: str, told: str, fix: str = "") -> BadFile:
    """The error that says what is wrong at one place."""
    problem = Problem(place, told if len(told) <= _LONGEST else f"{told[:_LONGEST]}...", fix)
    return BadFile(str(problem), [problem])


def problems_of(error: BadInput, place: str) -> list[Problem]:
    """What an error says is wrong; it happened at `place` unless it says better."""
    if isinstance(error, BadFile) and error.problems:
        return list(error.problems)
    told = str(error).removeprefix(place).lstrip(": ").rstrip(".")
    return list(wrong(place, told).problems)


def mapping_at(place: str, data: object, known: Sequence[str] = ()) -> Mapping[str, Any]:
    """The mapping that should stand at a place."""
    if isinstance(data, Mapping):
        return cast("Mapping[str, Any]", data)
    holds = f" with {', '.join(known)}" if known else ""
    raise wrong(place, f"{shown(data)} should be a mapping{holds}")
