"""The shapes an eval-set file may have: each is one entry in a table that plug-ins can extend.

A shape is recognised by what a file holds, never by its name. Exactly one has to fit.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, cast

from greenroom.cases.criteria import Criterion
from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadFile, MissingExtra
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record

GROUP = "greenroom.shapes"
OWN = "greenroom"
TABLE = "table"
_MODULES = {
    OWN: "own",
    "agentflow": "agentflow",
    "adk": "adk",
    "adk-flat": "adk_lists",
    "adk-named": "adk_lists",
    "queries": "queries",
    "sessions": "queries",
    "fluent": "fluent",
    "scenarios": "scenarios",
    TABLE: "tables",
}


@record
class Shape:
    """A kind of eval-set file.

    `recognises` says what in the data shows that it is of this shape, or None; `looks_for` is what
    it looks for, in words. `read` takes the data and the name of the file without its endings, and
    raises `BadFile`; `write` gives the data to be written. What a shape cannot hold it leaves out:
    whoever writes reads it back, and refuses to lose anything. `usual` is what the tool behind such
    files judges them by when no config says otherwise; None leaves it to what the cases expect.
    `lists` are the names of the lists that hold the cases, and the turns of a case.
    """

    name: str
    looks_for: str
    recognises: Callable[[Json], str | None]
    read: Callable[[Json, str], EvalSet]
    write: Callable[[EvalSet], Json]
    usual: tuple[Criterion, ...] | None = None
    lists: tuple[str, str] = ("cases", "turns")

    def place(self, where: str) -> str:
        """Where in such a file something stands that is `where` in our own shape, as nearly as known."""
        cases, turns = self.lists
        found = _PLACE.match(where)
        if self.name == OWN or found is None:
            return where
        case, turn, rest = found.groups()
        if not cases and not turns and turn:  # the turns of one conversation are all there is
            return f"[{turn}]"
        inside = f".{turns}[{turn}]" if turn else rest if self.name == TABLE else ""
        return f"{cases}[{case}]{inside}"


_PLACE = re.compile(r"cases\[(\d+)\](?:\.turns\[(\d+)\])?(.*)")
_REGISTERED: dict[str, Shape] = {}


def register_shape(shape: Shape) -> None:
    """Let files of this shape be read and written; a name that is taken is refused."""
    if shape.name in _MODULES or _REGISTERED.get(shape.name, shape) is not shape:
        raise BadFile(f"there is already a shape called {shape.name!r}; give yours another name.")
    _REGISTERED[shape.name] = shape


def shape_names() -> list[str]:
    """The names of all shapes that can be read here, with what is installed."""
    return [*_MODULES, *_REGISTERED, *_plugged_in()]


def shape_named(name: str) -> Shape:
    """The shape of this name: ours, a registered one, or a plug-in's."""
    if name in _MODULES:
        return _built_in(name)
    found = _REGISTERED.get(name) or _plugged_in().get(name)
    if found is None:
        known = shape_names()
        near = get_close_matches(name, known, 1)
        meant = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
        raise BadFile(f"there is no shape {name!r}. {meant}")
    return found


def recognised(data: Json, source: object) -> tuple[Shape, str]:
    """The one shape that fits the data, and why."""
    if sign := config_sign(data):
        raise BadFile(f"{source} is a config, no eval set: {sign}. Give it as the config.")
    fitting = _fitting(data, [_built_in(name) for name in _MODULES])
    fitting = fitting or _fitting(data, [*_REGISTERED.values(), *_plugged_in().values()])
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        signs = "; ".join(f"{shape.name}: {why}" for shape, why in fitting)
        raise BadFile(f"{source} could be several kinds of eval set ({signs}). Give shape=...")
    wanted = "\n".join(f"- {shape.name}: {shape.looks_for}" for shape in _all())
    raise BadFile(f"{source} is no eval set: {_seen(data)}. Looked for:\n{wanted}")


def config_sign(data: Json) -> str | None:
    """What shows that data is a config, or None."""
    if not isinstance(data, Mapping) or any(name in data for name in CASE_LISTS):
        return None
    given = cast("Mapping[str, Json]", data)
    if isinstance(given.get("criteria"), Mapping):
        return "it has `criteria` and no cases"
    if "version" in given and isinstance(given.get("metrics"), list):
        return "it has `metrics` and no cases"
    return None


CASE_LISTS = ("cases", "eval_cases", "data", "sessions", "scenarios")
"""What the shapes call their list of cases."""


def _fitting(data: Json, shapes: list[Shape]) -> list[tuple[Shape, str]]:
    signs = [(shape, shape.recognises(data)) for shape in shapes]
    return [(shape, why) for shape, why in signs if why]


def _seen(data: Json) -> str:
    match data:
        case {**fields}:
            return f"it is a mapping with {', '.join(map(repr, list(fields)[:8])) or 'nothing'}"
        case [first, *_] if isinstance(first, Mapping):
            names = list(cast("Mapping[str, Any]", first))[:8]
            return f"it is a list of mappings with {', '.join(map(repr, names)) or 'nothing'}"
        case [*items]:
            return f"it is a list of {len(items)} values"
        case _:
            return f"it is {type(data).__name__ if data is not None else 'nothing'}"


def _all() -> list[Shape]:
    shapes = [_built_in(name) for name in _MODULES if name != TABLE]
    return [*shapes, *_REGISTERED.values(), *_plugged_in().values()]


@cache
def _built_in(name: str) -> Shape:
    module = import_module(f"greenroom.cases.files.{_MODULES[name]}")
    return next(s for s in cast("tuple[Shape, ...]", module.SHAPES) if s.name == name)


@cache
def _plugged_in() -> dict[str, Shape]:
    from importlib.metadata import entry_points  # slow to load, and only unknown shapes need it

    found: dict[str, Shape] = {}
    for point in entry_points(group=GROUP):
        try:
            shape = point.load()
        except ImportError as error:
            raise MissingExtra(f"the shape {point.name!r} cannot be loaded: {error}.") from error
        if not isinstance(shape, Shape):
            raise BadFile(f"the plug-in {point.value!r} is no Shape, but {shape!r}.")
        found[shape.name] = shape
    return found
