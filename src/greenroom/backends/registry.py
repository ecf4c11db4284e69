"""Which backend plays an object, found by the module its class comes from."""

from typing import TYPE_CHECKING, Any

from greenroom.agents.flow import Flow
from greenroom.backends.backend import Backend
from greenroom.backends.native import NativeBackend
from greenroom.errors import MissingExtra, NotFound

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "greenroom.backends"


def backend_for(agent: Any) -> Backend:
    """The backend for an agent of ours, of a framework with a plug-in, or a backend itself."""
    if isinstance(agent, Flow):
        return NativeBackend(agent)
    if hasattr(agent, "advance") and hasattr(agent, "snapshot"):
        return agent
    return _foreign(agent)


def _foreign(agent: Any) -> Backend:
    """Entry points are named after the module prefix of the classes they play."""
    from importlib.metadata import entry_points  # slow to load, and only visitors need it

    modules = [cls.__module__ for cls in type(agent).__mro__]
    points = sorted(entry_points(group=GROUP), key=lambda point: -len(point.name))
    for point in points:
        if any(m == point.name or m.startswith(f"{point.name}.") for m in modules):
            return _load(point)(agent)
    raise NotFound(
        f"no backend can play {agent!r} of type {type(agent).__module__}.{type(agent).__qualname__}. "
        f"Known: {', '.join(sorted(point.name for point in points))}."
    )


def _load(point: "EntryPoint") -> Any:
    try:
        return point.load()
    except ImportError as error:
        raise MissingExtra(
            f"the backend for {point.name!r} cannot be loaded: {error}. Install it with "
            f"pip install 'greenroom[{point.value.rsplit('.', 1)[-1].split(':')[0].replace('_', '-')}]'."
        ) from error
