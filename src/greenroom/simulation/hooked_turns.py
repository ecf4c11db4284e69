"""Turns of an agent with middleware around them, in a rehearsal and in a live conversation."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from greenroom.backends.backend import Advance, Backend, TurnOver
from greenroom.ledger.events import InvocationEnded, InvocationStarted, agent_words
from greenroom.ledger.plain import Json
from greenroom.world.world import World

if TYPE_CHECKING:
    from greenroom.world.middleware.run import RunMiddleware
    from greenroom.world.middleware.stack import MiddlewareStack


def as_stack(middleware: "Iterable[object] | MiddlewareStack") -> "MiddlewareStack | None":
    """Middleware in its order; None for none at all."""
    # Loaded where it is used: most trials have none.
    from greenroom.world.middleware.stack import MiddlewareStack

    return MiddlewareStack.of(middleware)


async def advance_hooked(backend: Backend, world: World, hooks: "RunMiddleware") -> Advance:
    """Let the agent make its next move, inside the `around_turn` hooks."""
    async with hooks.around("around_turn"):
        answer = await _before_run(world, hooks)
        outcome = (
            await backend.advance(world.ledger, world)
            if answer is None
            else _answered(world, answer[0])
        )
    hooks.check()
    return outcome


async def _before_run(world: World, hooks: "RunMiddleware") -> tuple[Json] | None:
    """A reply of middleware in the agent's place; asked for only before the agent has done anything."""
    index = world.ledger.index_of(world.voice)
    if index.invocations_ended or index.replied or index.called or index.started:
        return None
    return await hooks.before_run("@1")


def _answered(world: World, output: Json) -> TurnOver:
    """Record that the first turn was answered; what was recorded before an interruption is not repeated."""
    index = world.ledger.index_of(world.voice)
    if "@1" not in index.invocations:
        said = index.said[-1].value if index.said else None
        world.record(InvocationStarted(path="@1", input=said))
    if "@1" not in index.spoken:
        world.record(agent_words("@1", output))
    world.record(InvocationEnded(path="@1", outcome="turn_over", output=output))
    return TurnOver(output)
