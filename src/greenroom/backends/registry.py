"""Which backend runs an object: found by the module its class comes from, else by its methods."""

from collections.abc import Callable
from typing import Any, cast

from greenroom.agents.flow import Flow
from greenroom.agents.tools import Tool
from greenroom.backends.backend import Backend
from greenroom.backends.native import NativeBackend
from greenroom.backends.seams import is_really
from greenroom.errors import NotFound
from greenroom.plugins import Plugins

_BY_METHOD = "*."
_LAST = "*.__call__"


def _accept(found: object, _name: str) -> Callable[[object], Backend] | None:
    return found if isinstance(found, type) and _is_backend(found) else None


def _is_backend(cls: type[Any]) -> bool:
    return hasattr(cls, "advance") and hasattr(cls, "snapshot")


BACKENDS = Plugins(
    "greenroom.backends",
    "backend for",
    accept=_accept,
    wanted="a class with `advance` and `snapshot` that is made with the agent",
)


def backend_for(agent: Any) -> Backend:
    """The backend for a Greenroom agent, for an agent of a framework with a plug-in, or a backend itself."""
    # Fast path: an evaluation passes its backend here for every case.
    return agent if isinstance(agent, NativeBackend) else _chosen(agent)[0]


def explained(agent: Any) -> str:
    """Which backend runs this object and why, in one line for people."""
    backend, why = _chosen(agent)
    return f"using the {backend.name} backend: {why}"


def _chosen(agent: Any) -> tuple[Backend, str]:
    if isinstance(agent, Flow):
        return NativeBackend(agent), "it is made of Greenroom's own agents and steps"
    # Checked on the class: an object that has every attribute, like some test doubles, is not a backend.
    if _is_backend(cast("type[Any]", type(agent))):
        return agent, "it is a backend itself"
    name, why = _name_for(agent)
    return BACKENDS.load(name)(agent), why


def _name_for(agent: Any) -> tuple[str, str]:
    """The entry point for an agent, and why: it is named after a module of its classes, or a method."""
    names = sorted(BACKENDS.names(), key=lambda name: (name == _LAST, -len(name)))
    hint = ""
    if isinstance(agent, type):
        hint = f" It is a class: pass an object, {agent.__name__}(...)."
    elif isinstance(agent, Tool):
        hint = " It is a tool: pass the agent that calls it."
    possible = [] if hint else names
    for cls in cast("type[Any]", type(agent)).__mro__:
        for name in possible:
            if f"{cls.__module__}.".startswith(f"{name}.") and is_really(name):
                return name, f"its class {cls.__qualname__} comes from {cls.__module__}"
    for name in possible:
        method = name.removeprefix(_BY_METHOD)
        if method != name and callable(getattr(agent, method, None)):
            return name, "it is a function" if name == _LAST else f"it has {method}()"
    kind = f"{type(agent).__module__}.{type(agent).__qualname__}"
    known = ", ".join(sorted(names))
    raise NotFound(f"no backend can run {agent!r} of type {kind}.{hint} Known: {known}.")
