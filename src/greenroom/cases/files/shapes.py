"""The shapes an eval-set file may have: built in or from plug-ins, which are registered the same way.

A shape is recognised by what a file holds, never by its name. Exactly one has to fit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, cast

from greenroom.cases.criteria import Criterion
from greenroom.cases.evalset import EvalSet
from greenroom.cases.names import near_name
from greenroom.cases.problems import Problem
from greenroom.errors import BadFile, BadPlugin
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.plugins import Plugins, suggest

OWN = "greenroom"
TABLE = "table"


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of eval-set file.

    `recognises` says what in the data shows that it is of this shape, or None; `looks_for` describes
    that in words. `read` takes the data and the name of the file without its endings, and raises
    `BadFile`; `write` gives the data to be written, without what the shape cannot hold: `write_evalset`
    reads it back, and refuses to lose anything. `usual` is how the tool behind such files judges them
    without a config; None leaves it to what the cases expect. `lists` are the names of the lists that
    hold the cases, and the turns of a case; `inside` gives the place of a part of a case that has
    another name there; `names` are the fields by which a misspelt file is recognised.
    `called_by_file` says that its set, or its one case too, takes its id from the file's name.
    """

    name: str
    looks_for: str
    recognises: Callable[[Json], str | None]
    read: Callable[[Json, str], EvalSet]
    write: Callable[[EvalSet], Json]
    usual: tuple[Criterion, ...] | None = None
    lists: tuple[str, str] = ("cases", "turns")
    inside: Callable[[str], str] | None = None
    names: tuple[str, ...] = ()
    called_by_file: Literal["", "set", "case"] = ""

    def place(self, where: str) -> str:
        """The place in such a file of what is at `where` in our own shape, as precisely as possible."""
        cases, turns = self.lists
        found = _PLACE.match(where)
        if self.name == OWN or found is None:
            return where
        case, turn, rest = found.groups()
        if not cases and not turns and turn:  # the file is the turns of one conversation
            return f"[{turn}]"
        if self.inside is not None:
            turn_place = f".{turns}[{turn}]" if turn else ""
            return self.inside(f"{cases}[{case}]{turn_place}{rest}")
        inside = f".{turns}[{turn}]" if turn else ""
        return f"{cases}[{case}]{inside}"


_PLACE = re.compile(r"cases\[(\d+)\](?:\.turns\[(\d+)\])?(.*)")
_LOOKED_AT = 200
"""This many matching field names show what a misspelt file is meant to be."""
_REGISTERED: dict[str, Shape] = {}


def _accept(found: object, name: str) -> Shape | None:
    return found if isinstance(found, Shape) and found.name == name else None


SHAPES = Plugins(
    "greenroom.shapes",
    "shape",
    accept=_accept,
    wanted="a Shape of that name",
    unknown=BadFile,
)


def register_shape(shape: Shape) -> None:
    """Let files of this shape be read and written; a name that is taken is refused."""
    if shape.name in SHAPES.names() or _REGISTERED.get(shape.name, shape) is not shape:
        raise BadFile(f"there is already a shape called {shape.name!r}; give yours another name.")
    _REGISTERED[shape.name] = shape


def shape_names() -> list[str]:
    """The names of all shapes that can be read, given what is installed."""
    return list(dict.fromkeys([*SHAPES.names(), *_REGISTERED]))


def shape_named(name: str) -> Shape:
    """The shape of this name: built in, registered, or a plug-in's.

    A name under which one is registered and a package offers another is a BadPlugin.
    """
    registered = _REGISTERED.get(name)
    if name not in SHAPES.names():
        if registered is None:
            raise BadFile(f"there is no shape {name!r}. {suggest(name, shape_names())}")
        return registered
    offered = SHAPES.load(name)
    if registered is not None and registered is not offered:
        raise BadPlugin(
            f"the shape {name!r} is registered in Python, and an installed package offers another of "
            f"that name. Register it under another name, or uninstall that package."
        )
    return offered


def recognised(data: Json, source: object) -> tuple[Shape, str]:
    """The one shape that fits the data, and why."""
    if sign := config_sign(data):
        why = f"is a config, not an eval set: {sign}. Give it as the config."
        raise BadFile(f"{source} {why}", [Problem("", f"this {why}")])
    fitting: list[tuple[Shape, str]] = []
    wanted: list[str] = []
    for name in shape_names():
        try:
            shape = shape_named(name)
            why = shape.recognises(data)
        except Exception as error:  # noqa: BLE001 - a broken plug-in must not keep the others from reading
            wanted.append(f"- {name}: failed: {type(error).__name__}: {error}")
            continue
        if why:
            fitting.append((shape, why))
        elif name != TABLE:
            wanted.append(f"- {name}: {shape.looks_for}")
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        signs = "; ".join(f"{shape.name}: {why}" for shape, why in fitting)
        raise BadFile(f"{source} could be several kinds of eval set ({signs}). Give shape=...")
    listed = "\n".join(wanted)
    why = f"is not an eval set: {_seen(data)}. Looked for:\n{listed}"
    raise Unrecognised(f"{source} {why}", [Problem("", f"this {why}")])


class Unrecognised(BadFile):
    """A file of no known shape."""


def likeliest(data: Json) -> Shape | None:
    """The shape whose fields a misspelt file has most of; None if it has hardly any of them."""
    if not is_array(data) and not _lists_cases(data):
        return None
    found = list(_field_names(data))[:_LOOKED_AT]
    shapes = [shape_named(name) for name in SHAPES.names()]
    known = {
        shape.name: sum(bool(near_name(name, shape.names)) for name in found) for shape in shapes
    }
    best = max(shapes, key=lambda shape: known[shape.name])
    return best if known[best.name] > 1 else None


def _lists_cases(data: Json) -> bool:
    """Whether a field of a mapping is named like a list of cases, even if misspelt."""
    names = islice(data, _LOOKED_AT) if is_object(data) else ()
    return any(near_name(name, CASE_LISTS) for name in names)


def _field_names(data: Json, depth: int = 6) -> set[str]:
    """The names of the fields in data, a few levels deep."""
    found: set[str] = set()
    if depth and is_object(data):
        found.update(islice(data, _LOOKED_AT))
    inner = data.values() if is_object(data) else data if is_array(data) else ()
    for value in islice(inner, _LOOKED_AT) if depth else ():
        found |= _field_names(value, depth - 1)
    return found


def config_sign(data: Json) -> str | None:
    """What shows that data is a config, or None."""
    if not isinstance(data, Mapping) or any(name in data for name in CASE_LISTS):
        return None
    given = cast("Mapping[str, Json]", data)
    if isinstance(given.get("criteria"), Mapping):
        return "it has `criteria` and no cases"
    if "version" in given and isinstance(given.get("metrics"), list) and not _lists_cases(data):
        return "it has `metrics` and no cases"
    return None


CASE_LISTS = ("cases", "eval_cases", "data", "sessions", "scenarios")
"""What the shapes call their list of cases."""


def _seen(data: Json) -> str:
    match data:
        case {**fields}:
            names = ", ".join(map(repr, list(fields)[:8]))
            return f"it is a mapping with {names}" if names else "it is an empty mapping"
        case [first, *_] if isinstance(first, Mapping):
            names = list(cast("Mapping[str, Any]", first))[:8]
            return f"it is a list of mappings with {', '.join(map(repr, names)) or 'nothing'}"
        case [*items]:
            return f"it is a list of {len(items)} values" if items else "it is an empty list"
        case _:
            return f"it is {type(data).__name__ if data is not None else 'null'}"
