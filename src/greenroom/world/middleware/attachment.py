"""How middleware is attached to the World of a run."""

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext

from greenroom.ledger.events import Event, RunEnded, RunResumed, RunStarted
from greenroom.ledger.ledger import Ledger
from greenroom.world.live import LiveWorld
from greenroom.world.middleware.redaction import redaction_by
from greenroom.world.middleware.run import RunMiddleware
from greenroom.world.middleware.stack import MiddlewareStack


def attach_to(
    world: LiveWorld,
    given: "Iterable[object] | MiddlewareStack",
    heard: Collection[str],
    backend: str,
    fenced: Callable[[Event], AbstractContextManager[object]] = nullcontext,
) -> RunMiddleware | None:
    """Put middleware around a world; its backend calls the hooks in `heard`.

    A rehearsal begins and ends outside of its fence; the hooks for these events run inside `fenced`.
    """
    stack = MiddlewareStack.of(given)
    if stack is None:
        return None
    stack.check_heard(heard, backend)
    hooks = world.middleware = RunMiddleware(stack, world, backend)

    def inside(event: Event) -> AbstractContextManager[object]:
        is_outside = isinstance(event, RunStarted | RunResumed | RunEnded)
        return fenced(event) if is_outside else nullcontext()

    redact = redaction_by(hooks)
    if redact is not None:

        def redacted(event: Event) -> Event:
            with inside(event):
                return redact(event)

        world.redact = redacted
    if hooks.listeners("on_event"):
        observed = world.on_event

        def on_event(event: Event) -> None:
            if observed is not None:
                observed(event)
            with inside(event):
                hooks.on_event(event)

        world.on_event = on_event
    return hooks


def observe_user(world: LiveWorld, agents: RunMiddleware) -> None:
    """Let middleware that observes users see the model calls of a simulated user; it gets the events anyway."""
    observers = agents.stack.observers()
    if observers is not None:
        world.middleware = RunMiddleware(observers, world, agents.backend)


def observe_judges(world: LiveWorld, stack: MiddlewareStack, judged: Ledger) -> None:
    """Let middleware that observes judges see their model calls; nothing is recorded that `redact` hides."""
    world.redact = redaction_by(RunMiddleware(stack, world, "", judged))
    observers = stack.observers()
    if observers is None:
        return
    hooks = world.middleware = RunMiddleware(observers, world, "", judged)
    recorded = world.on_event

    def on_event(event: Event) -> None:
        if recorded is not None:
            recorded(event)
        hooks.on_event(event)

    world.on_event = on_event
