"""How an agent's turn ends or waits, in the ledger and for the caller; shared by all backends that record it."""

from collections.abc import Iterable

from greenroom.backends.backend import Failed, Finished, TurnOver, Yield
from greenroom.errors import AgentFailed, GreenroomError
from greenroom.ledger.events import AgentSaid, InvocationEnded, YieldOpened, agent_words
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.origin import summarize_error
from greenroom.ledger.plain import Json
from greenroom.world.records import describe_error, error_of
from greenroom.world.world import World


def end_turn(
    world: World, index: VoiceIndex, root: str, output: Json, *, finished: bool = False
) -> TurnOver | Finished:
    """Record the end of the invocation at `root`, and its output as words if the agent said none."""
    if output is not None and root not in index.spoken:
        world.record(agent_words(root, output))
    outcome = "finished" if finished else "turn_over"
    world.record(InvocationEnded(path=root, outcome=outcome, output=output))
    return Finished(output) if finished else TurnOver(output)


def say_questions(world: World, index: VoiceIndex, waits: Iterable[Yield]) -> None:
    """Record the messages with which the agent waits for its user.

    This is done when nothing else can go on: until then, another branch may stop the one that asks, and
    then its user never hears the question.
    """
    for wait in waits:
        if wait.type == "message" and (path := index.yields[wait.id].path) not in index.spoken:
            world.record(AgentSaid(path=path, text=wait.prompt, attachments=wait.attachments))


def fail_turn(world: World, root: str, error: Exception) -> Failed:
    """Record that the invocation at `root` failed; a foreign error becomes one of the agent."""
    if not isinstance(error, GreenroomError):
        name = describe_error(error)["error_type"]
        wrapped = AgentFailed(f"the agent raised {summarize_error(error, name)}")
        wrapped.__cause__ = error
        error = wrapped
    world.record(
        InvocationEnded(path=root, outcome="failed", phase=error.phase, **describe_error(error))
    )
    return Failed(error)


def wait_opened(wait: Yield, path: str) -> YieldOpened:
    """The event of a turn that waits for its user."""
    return YieldOpened(
        path=path,
        yield_id=wait.id,
        type=wait.type,
        tool=wait.tool,
        call_id=wait.call_id,
        args=wait.args,
        prompt=wait.prompt,
    )


def recorded_end(end: InvocationEnded) -> TurnOver | Finished | Failed:
    """The end of a turn, as the ledger has it."""
    if end.outcome == "failed":
        return Failed(error_of(end))
    return Finished(end.output) if end.outcome == "finished" else TurnOver(end.output)
