"""Direct calls of tool bodies: whoever plays a run may forbid them where they would slip past it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
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


@contextmanager
def guarded(guard: Guard) -> Generator[None]:
    """Ask `guard` before any tool body runs that was called directly in this context."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


def watch_everywhere(guard: Guard) -> None:
    """Ask `guard` in every context that has none of its own, threads without context included."""
    if guard not in _everywhere:
        _everywhere.append(guard)
