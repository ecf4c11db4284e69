"""How middleware comes around the World of a run."""

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from greenroom.ledger.events import Event, RunEnded, RunResumed, RunStarted
from greenroom.world.live import LiveWorld
from greenroom.world.middleware.redacting import redaction_by
from greenroom.world.middleware.run import RunMiddleware
from greenroom.world.middleware.stack import MiddlewareStack


def attach_to(
    world: LiveWorld,
    given: "Iterable[Any] | MiddlewareStack",
    heard: Collection[str],
    backend: str,
    fenced: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> RunMiddleware | None:
    """Put middleware around a world; its backend calls the hooks that are `heard`.

    A rehearsal begins and ends outside of its fence; hooks hear of that inside `fenced`.
    """
    stack = MiddlewareStack.of(given)
    if stack is None:
        return None
    stack.check_heard(heard, backend)
    hooks = world.middleware = RunMiddleware(stack, world, backend)
    world.redact = redaction_by(hooks)
    if hooks.listeners("on_event"):
        observed = world.on_event

        def on_event(event: Event) -> None:
            if observed is not None:
                observed(event)
            is_outside = isinstance(event, RunStarted | RunResumed | RunEnded)
            with fenced() if is_outside else nullcontext():
                hooks.on_event(event)

        world.on_event = on_event
    return hooks
