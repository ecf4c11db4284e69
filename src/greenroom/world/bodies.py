"""Direct calls of tool bodies: whoever plays a run may forbid them, or answer them itself."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

Guard = Callable[[object, str], None]
Route = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""Takes a tool and the arguments it was called with, and gives what the call returns."""

_route: ContextVar[Route | None] = ContextVar("greenroom_body_route", default=None)

_guard: ContextVar[Guard | None] = ContextVar("greenroom_body_guard", default=None)
_everywhere: list[Guard] = []


def check_direct_call(origin: object, name: str) -> None:
    """Let whoever watches this context, or all of them, object to a body called past the World."""
    guard = _guard.get()
    if guard is not None:
        guard(origin, name)
        return
    for watching in _everywhere:
        watching(origin, name)


def guard_here() -> Guard | None:
    """Who is asked about tools that are called directly in this context, and no other."""
    return _guard.get()


class guarded:  # noqa: N801 - read as a verb: `with guarded(...)`
    """Ask `guard` before any tool body runs that was called directly in this context."""

    __slots__ = ("_guard", "_token")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._token = _guard.set(self._guard)

    def __exit__(self, *_: object) -> None:
        _guard.reset(self._token)


def route_of_calls() -> Route | None:
    """Who answers tools that are called directly in this context, if anybody does."""
    return _route.get()


class answered_by:  # noqa: N801 - read as words: `with answered_by(route)`
    """Let `route` answer every tool that is called directly in this context; None: nobody."""

    __slots__ = ("_route", "_token")

    def __init__(self, route: Route | None) -> None:
        self._route = route

    def __enter__(self) -> None:
        self._token = _route.set(self._route)

    def __exit__(self, *_: object) -> None:
        _route.reset(self._token)


def watch_everywhere(guard: Guard) -> None:
    """Ask `guard` in every context that has none of its own, threads without context included."""
    if guard not in _everywhere:
        _everywhere.append(guard)
