"""Which backend runs an object: found by the module its class comes from, else by its methods."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from greenroom.agents.flow import Flow
from greenroom.agents.tool import Tool
from greenroom.backends.backend import Backend
from greenroom.backends.native import NativeBackend
from greenroom.errors import MissingExtra, NotFound

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "greenroom.backends"
# Modules whose names anybody might choose, with the package that is meant.
_COMMON_NAMES = {"agents": "openai-agents"}
_BY_METHOD = "*."
_LAST = "*.__call__"


def backend_for(agent: Any) -> Backend:
    """The backend for an agent of ours, of a framework with a plug-in, or a backend itself."""
    # What an evaluation made of its agent is asked about for every case.
    return agent if isinstance(agent, NativeBackend) else _chosen(agent)[0]


def explained(agent: Any) -> str:
    """Which backend runs this object and why, in one line for people."""
    backend, why = _chosen(agent)
    return f"using the {backend.name} backend: {why}"


def _chosen(agent: Any) -> tuple[Backend, str]:
    if isinstance(agent, Flow):
        return NativeBackend(agent), "it is made of Greenroom's own agents and steps"
    # Asked of the class: an object that has every attribute, as test doubles do, is no backend.
    cls = cast("type[Any]", type(agent))
    if hasattr(cls, "advance") and hasattr(cls, "snapshot"):
        return agent, "it is a backend itself"
    point, why = _entry_point(agent)
    return _load(point)(agent), why


def _entry_point(agent: Any) -> "tuple[EntryPoint, str]":
    """Entry points are named after the module prefix of the classes they run, or a method."""
    from importlib.metadata import entry_points  # slow to load, and only visitors need it

    points = sorted(entry_points(group=GROUP), key=lambda point: -len(point.name))
    if isinstance(agent, type | Tool):
        raise NotFound(_unknown(agent, points))
    for cls in type(agent).__mro__:
        for point in points:
            named = cls.__module__ == point.name or cls.__module__.startswith(f"{point.name}.")
            if named and is_really(point.name):
                return point, f"its class {cls.__qualname__} comes from {cls.__module__}"
    for point in sorted(points, key=lambda point: point.name == _LAST):
        method = point.name.removeprefix(_BY_METHOD)
        if method != point.name and callable(getattr(agent, method, None)):
            return point, "it is a function" if point.name == _LAST else f"it has {method}()"
    raise NotFound(_unknown(agent, points))


def is_really(name: str) -> bool:
    """Whether a module is what it is called, and not a package of the user's own by that name."""
    if name not in _COMMON_NAMES:
        return True
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        meant = distribution(_COMMON_NAMES[name]).locate_file(name)
    except PackageNotFoundError:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and Path(file).resolve().parent == Path(str(meant)).resolve()


def _unknown(agent: Any, points: "Iterable[EntryPoint]") -> str:
    kind = f"{type(agent).__module__}.{type(agent).__qualname__}"
    known = ", ".join(sorted(point.name for point in points))
    hint = ""
    if isinstance(agent, type):
        hint = f" It is a class: hand over an object, {agent.__name__}(...)."
    elif isinstance(agent, Tool):
        hint = " It is a tool: hand over the agent that calls it."
    return f"no backend can run {agent!r} of type {kind}.{hint} Known: {known}."


def _load(point: "EntryPoint") -> Any:
    try:
        return point.load()
    except ImportError as error:
        raise MissingExtra(
            f"the backend for {point.name!r} cannot be loaded: {error}. Install it with "
            f"pip install 'greenroom[{point.value.rsplit('.', 1)[-1].split(':')[0].replace('_', '-')}]'."
        ) from error
