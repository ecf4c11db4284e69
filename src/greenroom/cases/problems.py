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
"""At most this many problems are shown in a message; `BadFile.problems` has all of them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at a place in a file or a set.

    `where` is a path such as `cases[3].turns[0].says`, `line` and `column` its position in the
    file, both counted from 1, if known. `fix` says what to do about it, and `meant` the name that a
    misspelt field seems to mean. `example` is what to write, as data; a caller that knows the
    file's language puts it into the fix. A `hint` may be fine, depending on the settings of the run.
    """

    where: str
    message: str
    fix: str = ""
    line: int | None = None
    hint: bool = False
    column: int | None = None
    meant: str = ""
    example: Json = None

    def __str__(self) -> str:
        parts = (("line", self.line), ("column", self.column))
        known = [f"{name} {number}" for name, number in parts if number is not None]
        place = ", ".join([*known, self.where] if self.where else known)
        message = f"{place}: {self.message}" if place else self.message
        fix = f"{self.fix} {as_json(self.example)}" if self.example is not None else self.fix
        return f"{message.rstrip('.')}. {fix}" if fix else message


def as_json(example: Json) -> str:
    """An example as it is written in JSON; "..." in it is for the reader to fill in."""
    return json.dumps(example, ensure_ascii=False).replace('"..."', "...")


def as_yaml_line(example: Json) -> str:
    """An example as a line of a YAML file."""
    written = as_yaml(example)
    return written[1:-1] if isinstance(example, dict) and len(example) == 1 else written


def as_yaml(example: Json) -> str:
    """An example as it is written inside a line of YAML."""
    if isinstance(example, dict):
        return f"{{{', '.join(f'{key}: {as_yaml(value)}' for key, value in example.items())}}}"
    if isinstance(example, list):
        return f"[{', '.join(map(as_yaml, cast('list[Json]', example)))}]"
    if isinstance(example, str) and (example == "..." or _PLAIN.fullmatch(example)):
        return example
    return json.dumps(example, ensure_ascii=False)


def listed(problems: Iterable[Problem]) -> str:
    """Problems for a person, one per line."""
    return "\n".join(f"- {problem}" for problem in problems)


def invalid(source: object, problems: Sequence[Problem], format: str) -> str:
    """The message for a file that is not valid; `format` says how it was read."""
    if len(problems) == 1:
        return f"{source}: {problems[0]} ({format})"
    more = f"\n- and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return f"{source} has {len(problems)} problems ({format}):\n{listed(problems[:_SHOWN])}{more}"


Key = str | int
"""A step into data: a name, or a position in a list."""

_PLAIN = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_STEP = re.compile(r'\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]', re.ASCII)
_LONGEST = 400


class _Written(Repr):
    """Values as files write them, however large they are."""

    def repr_bool(self, value: bool, _level: int) -> str:
        """true or false, as JSON and YAML write them."""
        return "true" if value else "false"

    def repr_NoneType(self, _value: None, _level: int) -> str:  # noqa: N802
        """null, as JSON and YAML write it."""
        return "null"


_SHORT = _Written()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlist = _SHORT.maxdict = 4
_SHORT.maxlevel = 3


def at(place: str, *keys: Key) -> str:
    """The place reached by these further steps."""
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
    """Set the value at a place, unless something else is in the way; return whether it was set."""
    *way, last = keys_of(place) or [0]
    for key in way:
        inner = inside(data, key)
        if inner is None and isinstance(data, dict) and key not in data:
            inner = data[key] = {}
        if not isinstance(inner, dict | list):
            return False
        data = cast(Json, inner)
    if not isinstance(data, dict) or not isinstance(last, str) or last in data:
        return False
    data[last] = value
    return True


def inside(data: Json, key: Key) -> Json:
    """The value one step further in; None if there is none."""
    if isinstance(data, dict):
        return cast("dict[Key, Json]", data).get(key)
    if isinstance(data, list) and isinstance(key, int):
        items = cast("list[Json]", data)
        return items[key] if key < len(items) else None
    return None


def shown(value: object) -> str:
    """A value for an error message, however large it is."""
    return _SHORT.repr(value)


def wrong(
    place: str, message: str, fix: str = "", *, meant: str = "", example: Json = None
) -> BadFile:
    """The error that says what is wrong at one place."""
    short = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    problem = Problem(place, short, fix, meant=meant, example=example)
    return BadFile(str(problem), [problem])


def problems_of(error: BadInput, place: str) -> list[Problem]:
    """The problems of an error, at `place` unless the error names a place itself."""
    if isinstance(error, BadFile) and error.problems:
        return list(error.problems)
    message = str(error).removeprefix(place).lstrip(": ").rstrip(".")
    return list(wrong(place, message).problems)


def mapping_at(place: str, data: object, known: Sequence[str] = ()) -> Mapping[str, Any]:
    """The data at a place, which must be a mapping."""
    if isinstance(data, Mapping):
        return cast("Mapping[str, Any]", data)
    holds = f" with {', '.join(known)}" if known else ""
    raise wrong(place, f"{shown(data)} should be a mapping{holds}")


Branches = dict[Key, "Branches"]
"""Places as a tree: each step leads to the steps after it."""

Position = tuple[int, int]
"""A line and a column, both counted from 1."""

Found = dict[tuple[Key, ...], Position]
"""The position of each place found, by the steps to it: of a field its name, of an item itself."""


def branches_to(places: Iterable[str]) -> Branches:
    """The tree of all steps that lead to these places."""
    tree: Branches = {}
    for place in places:
        branch = tree
        for key in keys_of(place):
            branch = branch.setdefault(key, {})
    return tree


def position_of(place: str, found: Found) -> Position | tuple[None, None]:
    """The position of a place, or of the nearest container that exists."""
    keys = tuple(keys_of(place))
    while keys and keys not in found:
        keys = keys[:-1]
    return found.get(keys, (None, None))
