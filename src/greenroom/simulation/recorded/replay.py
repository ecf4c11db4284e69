"""A recorded trial run once more with an agent: its ledger answers for the user, the models and the tools."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from greenroom.backends.backend import Advance, Failed, Finished, Waiting
from greenroom.cases.case import Case
from greenroom.errors import (
    BadInput,
    BadLedger,
    Refusal,
    ReplayDrifted,
    ToolRefused,
)
from greenroom.ledger.events import (
    Answered,
    EndReason,
    Event,
    InvocationStarted,
    ModelCalled,
    RunEnded,
    RunStarted,
    StateConflicted,
    ToolBlocked,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.questions import ended, started, time_of_recording
from greenroom.ledger.simulated import is_simulation
from greenroom.simulation.conversation import advance
from greenroom.simulation.fenced_run import run_within
from greenroom.simulation.gate import RehearsalWorld
from greenroom.simulation.hooked_turns import as_stack
from greenroom.simulation.outside_trials import check_outermost
from greenroom.simulation.trial_context import (
    TrialContext,
    attach,
    check_fence,
    preparing,
    set_up,
)
from greenroom.world.records import answer_tool, begin_call, error_of
from greenroom.world.replayed import Recording, copied, drifted, repeat_call
from greenroom.world.world import Pending, Returned, ToolBody, ToolRequest

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

OnDrift = Literal["error", "live"]
_SECONDS = 600.0


async def replay(
    ledger: Ledger,
    agent: Any,
    *,
    on_drift: OnDrift = "error",
    case: Case | None = None,
    middleware: "Iterable[object] | MiddlewareStack" = (),
) -> Ledger:
    """Run the agent on what a ledger recorded: no model is asked, and no tool runs.

    Where the agent asks for something that is not recorded, `ReplayDrifted` says what differs first.
    With `on_drift="live"` the model is asked instead, and tools are answered by the mocks of `case`;
    without one they are refused. Answers from the ledger have the source "replayed". Replies, results and
    messages were recorded as `middleware` had changed them, so it does not change them again.
    """
    if on_drift not in ("error", "live"):
        raise BadInput(f"on_drift={on_drift!r} should be 'error' or 'live'.")
    check_outermost()
    check_fence()
    first = check_recorded(ledger)
    case = case or _case_of(first)
    with preparing(case):
        stack = as_stack(middleware) if middleware else None
        trial = set_up(case, agent, run_id=first.run_id, world_kind=ReplayedWorld)
        world = trial.world
        assert isinstance(world, ReplayedWorld)
        world.recording = recording = Recording(ledger, asks_live=on_drift == "live")
        world.captures = True
        if stack is not None:
            attach(trial, stack)
        backend, at = trial.backend, recording.recorded_at
        opening = structs.replace(
            first, seq=-1, agent=backend.snapshot, digest=backend.digest, recorded_at=at
        )
        world.record(opening)
    await run_within(_SECONDS, trial, _converse_again)
    if isinstance(trial.refusals.refusal, ReplayDrifted):
        raise trial.refusals.refusal
    if (drift := recording.unasked()) is not None:
        raise drift
    # A conversation that is still open has no end to repeat.
    return trial.ledger if ended(ledger) is not None else Ledger(trial.ledger[:-1])


def check_recorded(ledger: Ledger) -> RunStarted:
    """How a trial began that can be replayed; BadLedger if it cannot."""
    first = started(ledger)
    if first is None:
        raise BadLedger("this ledger has no beginning, so it cannot be replayed.")
    if first.opaque:
        unseen = " and ".join(first.opaque)
        raise BadLedger(
            f"the {unseen} of this agent were not seen when it was recorded, so the ledger "
            f"cannot answer for them. Replay an agent whose calls are seen."
        )
    if any(called.question is None for called in ledger.of(ModelCalled)):
        raise BadLedger(
            "this ledger does not say what its models were asked, so their answers cannot be matched: "
            "it was recorded with omit_questions, or by an earlier version. Record the trial again."
        )
    return first


def _case_of(first: RunStarted) -> Case:
    """The case as far as a replay needs it: its user, models and tools are in the ledger."""
    data: dict[str, Json] = first.case if is_object(first.case) else {}
    target, now, seed = data.get("target"), data.get("now"), data.get("seed")
    return Case(
        str(data.get("id") or first.run_id),
        says="(replayed)",
        target=target if isinstance(target, str) else "",
        now=now if isinstance(now, int | float) else time_of_recording(first),
        seed=seed if isinstance(seed, int) else None,
    )


class ReplayedWorld(RehearsalWorld):
    """A rehearsal in which a ledger answers for models and for tools, mocked or not."""

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """How this call ended in the ledger; a call that waited for the user waits again."""
        self.refusals.check()
        recording = self.recording
        assert isinstance(recording, Recording)
        found = recording.call(request)
        if found is None:
            if recording.asks_live or request.delegates:
                return await super().call_tool(request, body)
            raise self.drift(recording.drift_of_call(request))
        found.is_used = True
        if isinstance(found.called, ToolBlocked):
            self.record(copied(found.called))
            end = ended(recording.ledger)
            why = end.error if end is not None and end.error else found.called.why
            raise self.refusals.set(ToolRefused(why))
        end = found.end
        if request.yields and (end is None or end.source == "user"):
            begin_call(self, request)
            return Pending(request.id)
        if request.delegates and (end is None or end.is_live):
            return await answer_tool(self, request, body, "live")
        return repeat_call(self, request, found, recording.ledger)

    def drift(self, words: str) -> Refusal:
        """The error, to be raised, that ends the replay because the agent left the recorded path."""
        return self.refusals.set(drifted(words))


# The conversation


async def _converse_again(trial: TrialContext) -> EndReason:
    """Repeat what the user said, and let the agent answer."""
    world = trial.world
    assert isinstance(world, ReplayedWorld)
    assert isinstance(world.recording, Recording)
    recorded = world.recording.ledger
    rounds = _rounds(recorded)
    said = next(rounds)
    begun = next((event.seq for event in recorded.of(InvocationStarted)), len(recorded))
    if said and said[-1].seq < begun and isinstance(said[-1], UserSaid):
        _say(trial, said)
        said = next(rounds)
    while True:
        outcome = await advance(trial)
        if isinstance(outcome, Finished):
            return "finished"
        if isinstance(outcome, Failed):
            raise outcome.error
        is_last = not said or not isinstance(said[-1], UserSaid | Answered)
        _say(trial, said if is_last else _as_awaited(world, outcome, said))
        if is_last:
            end: RunEnded | None = ended(recorded)
            if end is None:
                return "completed"
            if end.reason == "error":
                raise error_of(end)
            return end.reason
        said = next(rounds)


def _rounds(recorded: Ledger) -> Iterator[list[Event]]:
    """The events of the user's side up to and including each round; then the rest, without a round."""
    found: list[Event] = []
    for event in recorded:
        is_round = isinstance(event, UserSaid | Answered) and event.voice == "agent"
        is_conflict = isinstance(event, StateConflicted) and event.path.startswith("answers@")
        if is_round or is_conflict or (event.voice == "user" and not is_simulation(event)):
            found.append(event)
        if is_round:
            yield found
            found = []
    yield found


def _say(trial: TrialContext, said: list[Event]) -> None:
    for event in said:
        trial.ledger.append(copied(event), event.at)


def _as_awaited(world: ReplayedWorld, outcome: Advance, said: list[Event]) -> list[Event]:
    """A round with the ids of the agent's current waits; drift if it does not wait for the same.

    Some frameworks draw the ids of their pauses at random.
    """
    last = said[-1]
    waits = list(outcome.yields) if isinstance(outcome, Waiting) else []
    if isinstance(last, UserSaid):
        if waits:
            names = ", ".join(wait.tool or "a message" for wait in waits)
            raise world.drift(f"it waits for {names}, but the user said {last.text[:80]!r} next.")
        return said
    assert isinstance(last, Answered)
    ids: dict[str, str] = {}
    for answer in last.answers:
        alike = [wait for wait in waits if wait.id == answer.yield_id]
        alike += [wait for wait in waits if wait.tool == answer.tool]
        if not alike:
            name = answer.tool or "a message"
            raise world.drift(
                f"it does not wait for {name}, which the user answered next (event {last.seq})."
            )
        waits.remove(alike[0])
        ids[answer.yield_id] = alike[0].id
    answers = tuple(structs.replace(a, yield_id=ids[a.yield_id]) for a in last.answers)
    return [*(_moved(event, ids) for event in said[:-1]), structs.replace(last, answers=answers)]


def _moved(event: Event, ids: dict[str, str]) -> Event:
    """An event of the user's side, moved to the wait that it answers now."""
    who, at, rest = event.path.partition("@")
    old, sign, more = rest.partition("/")
    own, tilde, attempt = old.partition("~")
    if not at or ids.get(own, own) == own:
        return event
    return structs.replace(event, path=f"{who}@{ids[own]}{tilde}{attempt}{sign}{more}")
