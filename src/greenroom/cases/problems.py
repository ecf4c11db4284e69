"""What is wrong with an eval set: where, such as `cases[3].expect.tools[0]`, and what to write."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, cast

from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import Json

_SHOWN = 10
"""So many problems of a file are shown in its message; `BadFile.problems` has all of them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at a place in a file or a set.

    `where` is a path such as `cases[3].turns[0].says`, `line` its line in the file if that is known.
    `fix` says what to do about it. A `hint` may be all right in a run with settings of its own.
    """

    where: str
    message: str
    fix: str = ""
    line: int | None = None
    hint: bool = False

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        place = ", ".join(part for part in (line, self.where) if part)
        message = f"{place}: {self.message}" if place else self.message
        return f"{message.rstrip('.')}. {self.fix}" if self.fix else message


def listed(problems: Iterable[Problem]) -> str:
    """Problems for a person, one a line."""
    return "\n".join(f"- {problem}" for problem in problems)


def invalid(source: object, problems: Sequence[Problem], format: str) -> str:
    """The message for a file that is not valid; `format` says as what it was read."""
    if len(problems) == 1:
        return f"{source}: {problems[0]} ({format})"
    more = f"\n- and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return f"{source} has {len(problems)} problems ({format}):\n{listed(problems[:_SHOWN])}{more}"


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


def wrong(place: str, message: str, fix: str = "") -> BadFile:
    """The error that says what is wrong at one place."""
    problem = Problem(
        place, message if len(message) <= _LONGEST else f"{message[:_LONGEST]}...", fix
    )
    return BadFile(str(problem), [problem])


def problems_of(error: BadInput, place: str) -> list[Problem]:
    """What an error says is wrong; it happened at `place` unless it says better."""
    if isinstance(error, BadFile) and error.problems:
        return list(error.problems)
    message = str(error).removeprefix(place).lstrip(": ").rstrip(".")
    return list(wrong(place, message).problems)


def mapping_at(place: str, data: object, known: Sequence[str] = ()) -> Mapping[str, Any]:
    """The mapping that should stand at a place."""
    if isinstance(data, Mapping):
        return cast("Mapping[str, Any]", data)
    holds = f" with {', '.join(known)}" if known else ""
    raise wrong(place, f"{shown(data)} should be a mapping{holds}")


Branches = dict[Key, "Branches"]
"""Places as a tree: each step leads to the steps after it."""

Found = dict[tuple[Key, ...], int]
"""The line of each place that was found, by the steps to it."""


def branches_to(places: Iterable[str]) -> Branches:
    """The tree of all steps that lead to these places."""
    tree: Branches = {}
    for place in places:
        branch = tree
        for key in keys_of(place):
            branch = branch.setdefault(key, {})
    return tree


def line_of(place: str, found: Found) -> int | None:
    """The line of a place, or of the nearest thing around it that is there."""
    keys = tuple(keys_of(place))
    while keys and keys not in found:
        keys = keys[:-1]
    return found.get(keys)
