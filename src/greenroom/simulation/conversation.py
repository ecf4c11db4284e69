"""A case as a conversation: the agent and its user take turns until something ends it."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from math import inf
from typing import TYPE_CHECKING

from greenroom.backends.backend import Advance, Failed, Finished, TurnOver, Waiting
from greenroom.backends.turn_ends import recorded_end
from greenroom.cases.case import Case
from greenroom.errors import (
    BadValue,
    FailedBefore,
    GuardrailTripped,
    UserAgentFailed,
)
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.changes import Change, check_appends
from greenroom.ledger.events import EndReason, Event, RunEnded, UserSaid
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.query import matches_state
from greenroom.ledger.questions import ended, seconds, time_of_recording, turns
from greenroom.models.model import Model
from greenroom.simulation.fence import opening_for
from greenroom.simulation.fenced_run import run_within
from greenroom.simulation.gate import BeforeLive
from greenroom.simulation.hooked_turns import advance_hooked, as_stack
from greenroom.simulation.outside_trials import check_outermost
from greenroom.simulation.trial_context import (
    TrialContext,
    attach,
    begin,
    check_fence,
    check_loop,
    check_opaque,
    preparing,
    set_up,
)
from greenroom.simulation.user.user_side import Reply
from greenroom.simulation.user.users import turn_limit
from greenroom.world.call_context import guarded
from greenroom.world.records import record_conflicts
from greenroom.world.resources import Factories, Resources

if TYPE_CHECKING:
    from greenroom.world.known_answers import KnownAnswers
    from greenroom.world.middleware.stack import MiddlewareStack
    from greenroom.world.replayed import Recording


async def simulate(
    case: Case,
    agent: object = None,
    *,
    ledger: Ledger | None = None,
    allow_tools: Collection[object] = (),
    allow_unfenced: bool = False,
    allow_opaque: bool = False,
    on_event: Callable[[Event], None] | None = None,
    before_live: BeforeLive | None = None,
    run_id: str = "",
    trial: int = 1,
    stream: bool = False,
    resources: Factories | None = None,
    omit_questions: bool = False,
    middleware: "Iterable[object] | MiddlewareStack" = (),
    max_seconds: float | None = None,
    recording: "Recording | KnownAnswers | None" = None,
    model: Model | str | None = None,
) -> Ledger:
    """Run `case` with every side effect mocked and return the ledger of what happened.

    A `ledger` of an unfinished trial is continued. The trial always ends in the ledger: with the
    reason, and with the error if it broke. `allow_unfenced` runs where the fence cannot hold, and
    `allow_opaque` an agent whose tools run where no gate can see them. Before a named tool runs for real,
    `before_live` must save what `on_event` received. `resources` maps names to functions that open what
    such a tool needs: each is called when the tool runs, and closed with the trial. `omit_questions` leaves
    the requests to models out of the ledger. `trial` is the number of this trial of the case; it also seeds
    how replies are split into pieces. `stream` has models stream their replies even if nothing reads the
    pieces, so that the first words can be timed. `middleware` wraps the agent's model and tool calls, the
    first one outermost. `max_seconds` is a limit below that of the case. A `recording` answers for models,
    and for tools that would run for real. `model` replaces every model of the agent, and the case's.
    """
    check_loop()
    check_outermost()
    if not allow_unfenced:
        check_fence()
    with preparing(case):
        stack = as_stack(middleware) if middleware else None
        context = set_up(
            case,
            agent,
            ledger,
            allow_tools=allow_tools,
            on_event=on_event,
            run_id=run_id,
            resources=Resources(resources),
            approved=() if stack is None else stack.approved,
            model=model,
        )
        check_opaque(context.backend, allow_opaque)
        context.number, world = trial, context.world
        world.listens, world.captures = stream, not omit_questions
        world.before_live, world.recording = before_live, recording
        if stack is not None:
            attach(context, stack)
        left = min(case.stop.max_seconds, inf if max_seconds is None else max_seconds)
        if ledger is not None:
            if ended(ledger) is not None:
                return ledger
            left -= seconds(ledger)
        _begin(context)
    if left > 0:
        await run_within(left, context, _converse)
    else:
        world.record(RunEnded(reason="max_seconds"))
    return context.ledger


def _begin(trial: TrialContext) -> None:
    """Begin a trial, in the middle of a recorded session if its case continues one."""
    recording = trial.world.recording
    recorded_at = None if recording is None else recording.recorded_at
    if not trial.case.history or len(trial.ledger):
        begin(trial, recorded_at)
        return
    from greenroom.simulation.recorded.restored import past_of, restore  # few cases need it

    past = past_of(trial.case)
    begin(trial, recorded_at or time_of_recording(past.first))
    restore(trial, past)


async def _converse(trial: TrialContext) -> EndReason:
    """The agent advances, then the conversation stops or the user answers; and again."""
    case, script, index = trial.case, trial.case.script, trial.ledger.indexes["agent"]
    outcome: Advance | None = None
    if index.said or index.invocations:
        outcome = last_outcome(trial)
    elif script and not script[0].is_blank:
        if case.user is not None:
            trial.user_side.remember(script[0].says, "", trial.world.new_id("first"))
        await say(trial, script[0].message)
    while True:
        if outcome is None:
            outcome = await advance(trial)
        match outcome:
            case TurnOver() | Waiting():
                if _goal_reached(trial):
                    return "state_matches"
                if isinstance(outcome, TurnOver) and case.user is None and len(script) < 2:
                    # The first message was all that the user of this case ever says.
                    return "completed"
                if _limit_reached(trial, outcome):
                    return "max_turns"
                if not await answer(trial, outcome):
                    return "completed"
                if _goal_reached(trial):
                    return "state_matches"
            case Finished():
                return "finished"
            case Failed(error):
                if not _is_expected(trial, error):
                    raise error
                outcome = TurnOver()
                continue
        outcome = None


async def advance(trial: TrialContext) -> Advance:
    """Let the agent make its next move; a refusal is raised again, even if the agent has swallowed it."""
    backend, world = trial.backend, trial.world
    # An agent that runs elsewhere is reached through the fence.
    hosts: tuple[str, ...] = getattr(backend, "reaches", ())
    with opening_for(hosts=hosts) if hosts else nullcontext():
        if world.middleware is None:
            outcome = await backend.advance(trial.ledger, world)
        else:
            outcome = await advance_hooked(backend, world, world.middleware)
    trial.refusals.check()
    trial.visitors.check()
    return outcome


async def say(trial: TrialContext, message: Json, changes: tuple[Change, ...] = ()) -> None:
    """Record a message as the agent receives it; middleware may change it."""
    text, attached = text_and_attachments(message)
    hooks = trial.world.middleware
    if hooks is not None:
        text = await hooks.heard(text)
    trial.world.record(UserSaid(text=text, changes=changes, attachments=attached))


def last_outcome(trial: TrialContext) -> TurnOver | Finished | Failed | None:
    """How the last turn of a resumed trial ended, if the user has not answered it yet."""
    index = trial.ledger.index_of()
    if index.open_invocation is not None or not index.invocations:
        return None
    end = index.invocations_ended[next(reversed(index.invocations))]
    if index.said and index.said[-1].seq > end.seq:
        return None
    return recorded_end(end)


def _is_expected(trial: TrialContext, error: Exception) -> bool:
    """Whether the case expects its agent to be stopped in this turn; then the turn is over."""
    kind = error.error_type if isinstance(error, FailedBefore) else type(error).__name__
    if kind != GuardrailTripped.__name__:
        return False
    number = len(trial.ledger.index_of().said) - 1
    script = trial.case.script
    expect = script[number].expect if 0 <= number < len(script) else None
    return expect is not None and expect.stopped_by is not None


def _goal_reached(trial: TrialContext) -> bool:
    wanted = trial.case.stop.state_matches
    return wanted is not None and matches_state(trial.ledger.fold(), wanted)


def _limit_reached(trial: TrialContext, outcome: TurnOver | Waiting) -> bool:
    """Whether another round is due, but over the limit."""
    if turns(trial.ledger) < turn_limit(trial.case, trial.user):
        return False
    return isinstance(outcome, Waiting) or trial.user_side.would_speak


async def answer(trial: TrialContext, outcome: TurnOver | Waiting) -> bool:
    """Have the user answer; False when they have nothing more to say."""
    with guarded(trial.world.check_user_call), trial.visitors.of_the_user():
        if isinstance(outcome, Waiting):
            replies = await trial.user_side.answers(outcome.yields)
            if replies is None:
                return False
            _record_round(trial, outcome, replies)
            return True
        said = await trial.user_side.next_message()
    if said is None:
        return False
    _check_user_changes(trial, said[1])
    await say(trial, said[0], said[1])
    return True


def _check_user_changes(trial: TrialContext, changes: Sequence[Change]) -> None:
    try:
        check_appends(trial.world.ledger.fold(), changes, "the user's answer")
    except BadValue as error:
        raise UserAgentFailed(str(error)) from None


def _record_round(trial: TrialContext, outcome: Waiting, replies: list[Reply]) -> None:
    asked = [reply.asks for reply in replies]
    _check_user_changes(trial, [change for asks in asked for change in asks])
    record_conflicts(trial.world, f"answers@{outcome.yields[0].id}", asked)
    trial.world.record(trial.user_side.round_event(outcome.yields, replies))
