"""Direct calls of tool bodies: whoever plays a run may forbid them where they would slip past it."""

from collections.abc import Callable
from contextvars import ContextVar

Guard = Callable[[object, str], None]

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


class guarded:  # noqa: N801 - read as a verb: `with guarded(...)`
    """Ask `guard` before any tool body runs that was called directly in this context."""

    __slots__ = ("_guard", "_token")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._token = _guard.set(self._guard)

    def __exit__(self, *_: object) -> None:
        _guard.reset(self._token)


def watch_everywhere(guard: Guard) -> None:
    """Ask `guard` in every context that has none of its own, threads without context included."""
    if guard not in _everywhere:
        _everywhere.append(guard)
