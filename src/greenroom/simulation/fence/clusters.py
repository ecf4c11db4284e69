"""Ray: work handed to another process without a connection that Python would hear of.

Its client speaks in C, so no audit event tells of it. What hands work over is wrapped instead; a
case that wants a cluster needs leave to start processes, which only hooks have.
"""

# The framework is half typed, and what is wrapped of it has no public name.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

import functools
from collections.abc import Callable
from typing import Any

from greenroom.backends.seams import original
from greenroom.simulation.fence.routes import starting
from greenroom.simulation.fence.scope import fenced

Call = Callable[..., Any]
_installed: list[bool] = []


def install() -> None:
    """Put the seams in, once."""
    if _installed:
        return
    import ray
    from ray._private import worker
    from ray.actor import ActorClass, ActorMethod
    from ray.remote_function import RemoteFunction

    places: list[tuple[Any, str, str]] = [
        (RemoteFunction, "_remote", "ray.remote"),
        (ActorClass, "_remote", "ray.remote"),
        (ActorMethod, "_remote", "ray.remote"),
        *((owner, name, f"ray.{name}") for name in ("init", "put") for owner in (worker, ray)),
    ]
    found = [(owner, name, _seam(original(owner, name), route)) for owner, name, route in places]
    for owner, name, seam in found:
        setattr(owner, name, seam)
    _installed.append(True)


def _seam(real: Call, route: str) -> Call:
    @functools.wraps(real)
    def seam(*args: Any, **given: Any) -> Any:
        if fenced():
            starting(route, (_name(args),))
        return real(*args, **given)

    return seam


def _name(args: tuple[Any, ...]) -> str:
    """What was to run elsewhere, as far as it has a name."""
    thing: Any = args[0] if args else None
    for attribute in ("_function_name", "_method_name", "__name__"):
        if isinstance(found := getattr(thing, attribute, None), str):
            return found
    return thing if isinstance(thing, str) else type(thing).__name__
