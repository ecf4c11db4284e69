"""A case as a conversation: the agent and its user take turns until something ends it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from greenroom.backends.backend import Advance, Failed, Finished, TurnOver, Waiting
from greenroom.cases.case import Case
from greenroom.errors import (
    AgentFailed,
    BadCase,
    BadValue,
    FailedBefore,
    FenceBreach,
    GreenroomError,
    GuardrailTripped,
    MockBroke,
    RunBroke,
    UserAgentFailed,
)
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.changes import Change, check_appends
from greenroom.ledger.events import EndReason, Event, RunEnded, UserSaid
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.query import matches_state
from greenroom.ledger.questions import ended, seconds, time_of_recording, turns
from greenroom.ledger.simulated import unanswered
from greenroom.models.model import Model
from greenroom.simulation.fence import Breach, FencedScope, opening_for, put_up
from greenroom.simulation.gate import BeforeLive
from greenroom.simulation.hangs.watchdog import Deadline, finish
from greenroom.simulation.hooked_turns import advance_hooked, as_stack
from greenroom.simulation.mock_names import answered_by_user, check_names_after
from greenroom.simulation.remedies import mend_breach
from greenroom.simulation.trial_context import (
    TrialContext,
    attach,
    begin,
    check_fence,
    check_loop,
    check_opaque,
    check_outermost,
    set_up,
)
from greenroom.simulation.user.user_side import Reply
from greenroom.simulation.user.users import turn_limit
from greenroom.world.presence import guarded
from greenroom.world.records import describe_error, record_conflicts
from greenroom.world.resources import Factories, Resources

if TYPE_CHECKING:
    from greenroom.world.known_answers import KnownAnswers
    from greenroom.world.middleware.stack import MiddlewareStack
    from greenroom.world.replayed import Recording

_CLOSING = 5.0
"""Seconds in which the resources and the middleware of a trial must be closed."""


async def simulate(
    case: Case,
    agent: object = None,
    *,
    ledger: Ledger | None = None,
    allow_tools: Collection[Any] = (),
    allow_unfenced: bool = False,
    allow_opaque: bool = False,
    on_event: Callable[[Event], None] | None = None,
    before_live: BeforeLive | None = None,
    run_id: str = "",
    trial: int = 1,
    stream: bool = False,
    resources: Factories | None = None,
    omit_questions: bool = False,
    middleware: "Iterable[Any] | MiddlewareStack" = (),
    max_seconds: float | None = None,
    recording: "Recording | KnownAnswers | None" = None,
    model: Model | str | None = None,
) -> Ledger:
    """Run `case` with every side effect mocked and return the ledger of what happened.

    A `ledger` of an unfinished trial is continued. The trial always ends in the ledger: with the
    reason, and with the error if it broke. `allow_unfenced` runs where the fence cannot hold, and
    `allow_opaque` an agent whose tools run where no gate can see them. `before_live` is asked to keep
    what `on_event` heard before a named tool runs for real. `resources` are functions by name that open
    what such a tool works with: called when it runs, and closed with the trial. `omit_questions` leaves
    out of the ledger what models were asked. `trial` says which trial of the case it is; the pieces of
    replies are cut by it. `stream` asks models for their words as they come, even if nothing takes
    them, so that the first ones can be timed. `middleware` stands around the agent's questions and calls,
    the first one outermost. `max_seconds` is a limit below that of the case. A `recording` answers for
    models, and for tools that would really run. `model` answers in place of every model of the agent,
    and of the case's.
    """
    check_loop()
    check_outermost()
    if not allow_unfenced:
        check_fence()
    stack = as_stack(middleware) if middleware else None
    approved = () if stack is None else stack.approved
    lent = Resources(resources)
    context = set_up(
        case,
        agent,
        ledger,
        allow_tools,
        on_event,
        run_id,
        lent,
        approved=approved,
        model=model,
    )
    context.number, context.world.listens = trial, stream
    context.world.before_live = before_live
    context.world.captures = not omit_questions
    context.world.recording = recording
    check_opaque(context.backend, allow_opaque)
    if stack is not None:
        attach(context, stack, on_breach(context))
    case = context.case
    left = min(case.stop.max_seconds, inf if max_seconds is None else max_seconds)
    if ledger is not None:
        if ended(ledger) is not None:
            return ledger
        left -= seconds(ledger)
    _begin(context)
    if left > 0:
        await run_within(left, context, allow_tools)
    else:
        context.world.record(RunEnded(reason="max_seconds"))
    return context.ledger


def _begin(trial: TrialContext) -> None:
    """Begin a trial, in the middle of a recorded session if its case goes on from one."""
    recording = trial.world.recording
    recorded_at = None if recording is None else recording.recorded_at
    if not trial.case.history or len(trial.ledger):
        begin(trial, recorded_at)
        return
    from greenroom.simulation.recorded.restored import past_of, restore  # few cases need it

    past = past_of(trial.case)
    begin(trial, recorded_at or time_of_recording(past.first))
    restore(trial, past)


async def run_within(limit: float, trial: TrialContext, allow_tools: Collection[Any]) -> None:
    """Run a trial for so many seconds at most, and record how it ended."""
    deadline = Deadline(limit, name=f"case {trial.case.id!r}", on_extended=trial.world.extend)
    trial.world.deadline = monotonic() + limit
    # SDKs swallow refusals and try again; a case that was refused something ends at once.
    trial.refusals.on_set = deadline.cut
    try:
        task = await finish(_run_fenced(trial, deadline), deadline, trial.case.id)
        not_closed = await _close_up(trial)
        late = limit if deadline.expired or not task.done() else None
        trial.world.record(_ending(trial, task, late, allow_tools, not_closed))
    finally:
        trial.close()


async def _close_up(trial: TrialContext) -> GreenroomError | None:
    """Close what bodies worked with and let middleware look back; the reason if one of them fails."""
    resources, hooks = trial.world.resources, trial.world.middleware
    not_closed = None
    if resources.is_open:
        not_closed = await _close_fenced(trial, resources.close, "resources", resources.hosts)
    if hooks is not None and hooks.listeners("after_run"):
        not_closed = not_closed or await _close_fenced(trial, hooks.after_run, "middleware")
    return not_closed


async def _close_fenced(
    trial: TrialContext,
    work: Callable[[], Awaitable[None]],
    what: str,
    hosts: Collection[str] = (),
) -> GreenroomError | None:
    """Do the last work of a trial, inside the fence and in time; the reason if that fails."""
    deadline = Deadline(_CLOSING, name=f"closing {what}")

    async def close() -> None:
        put_up()
        reached = opening_for(hosts=hosts) if hosts else nullcontext()
        with FencedScope(trial.case.id, on_breach(trial)), reached:
            await work()

    task = await finish(close(), deadline, f"closing {what} of {trial.case.id}")
    if not task.done() or task.cancelled():
        return RunBroke(f"{what} were not closed within {_CLOSING:g} s.")
    error = task.exception()
    return error if error is None or isinstance(error, RunBroke) else RunBroke(f"{error!r}")


def on_breach(trial: TrialContext) -> Callable[[Breach], None]:
    """Refuses what tried to reach the outside, and ends the case with it."""
    # It uses these and not `trial`: that holds the scope, and the cycle would outlive it.
    case, refusals = trial.case, trial.refusals
    instead: str = getattr(trial.backend, "way_out", "")

    def refuse(breach: Breach) -> None:
        where = f" at {breach.where}" if breach.where else ""
        why = (
            f"code in case {case.id!r} tried to reach the outside by {breach.route} "
            f"({breach.target}){where}; the fence refused. {mend_breach(breach.route)}"
        )
        refusals.set(FenceBreach(f"{why} {instead}".rstrip()))

    return refuse


async def _run_fenced(trial: TrialContext, deadline: Deadline) -> EndReason:
    """Hold the conversation inside the fence, with tool bodies closed to direct calls."""
    # The callback uses these and not `trial`: it holds the scope, and the cycle would outlive it.
    case, refusals = trial.case, trial.refusals

    def on_stray(breach: Breach) -> None:
        why = (
            f"while case {case.id!r} was open, work that belongs to no case tried {breach}; it was "
            f"refused. It may have come from any case that was open, so none of them is cleared. Start "
            f"threads and tasks from inside the case, or stop what does not belong to it."
        )
        refusals.set(FenceBreach(why))

    put_up()
    trial.scope = scope = FencedScope(case.id, on_breach(trial))
    scope.body_guard = trial.world.check_direct_call
    scope.host = trial.visitors.host
    scope.on_stray = on_stray
    scope.open(deadline.task)
    try:
        converse = trial.converse or _converse
        if trial.world.middleware is None:
            return await converse(trial)
        async with trial.world.middleware.around("around_run"):
            return await converse(trial)
    except SystemExit as error:
        # It would end the whole evaluation, and an exit code of 0 would look like a pass.
        raise AgentFailed(f"the code of the case tried to end the process: {error!r}") from error
    finally:
        scope.close()


async def _converse(trial: TrialContext) -> EndReason:
    """The agent advances, then the conversation stops or the user answers; and again."""
    outcome: Advance | None = None
    index = trial.ledger.indexes["agent"]
    if index.said or index.invocations:
        outcome = last_outcome(trial)
    else:
        await _say_first(trial)
    while True:
        if outcome is None:
            outcome = await advance(trial)
            trial.refusals.check()
            trial.visitors.check()
        match outcome:
            case TurnOver() | Waiting():
                if _goal_reached(trial):
                    return "state_matches"
                if _is_all_said(trial.case, outcome):
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
    """The agent's next move; the fence is open to the hosts of an agent that runs elsewhere."""
    hosts: tuple[str, ...] = getattr(trial.backend, "reaches", ())
    with opening_for(hosts=hosts) if hosts else nullcontext():
        if trial.world.middleware is None:
            return await trial.backend.advance(trial.ledger, trial.world)
        return await advance_hooked(trial.backend, trial.world, trial.world.middleware)


async def _say_first(trial: TrialContext) -> None:
    script = trial.case.script
    if script and not script[0].is_blank:
        if trial.case.user is not None:
            trial.user_side.remember(script[0].says, "", trial.world.new_id("first"))
        await say(trial, script[0].message)


async def say(trial: TrialContext, message: Json, changes: tuple[Change, ...] = ()) -> None:
    """Record what the agent hears of a message; middleware may have a say in its words."""
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
    if end.outcome == "failed":
        return Failed(FailedBefore(end.error, end.error_type, end.phase or "system"))
    return Finished(end.output) if end.outcome == "finished" else TurnOver(end.output)


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
    """Whether another round is due that the limit forbids."""
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


def _is_all_said(case: Case, outcome: TurnOver | Waiting) -> bool:
    """Whether the first message was all that this case's user ever says, and the agent asks nothing."""
    return case.user is None and len(case.script) < 2 and isinstance(outcome, TurnOver)


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


def _ending(
    trial: TrialContext,
    task: "asyncio.Task[EndReason]",
    late: float | None,
    allow_tools: Collection[Any],
    not_closed: GreenroomError | None,
) -> RunEnded:
    """Why the trial is over: safety comes first, then the clock, then the conversation itself.

    `late` is the number of seconds within which it was not done, if it was not.
    """
    case = trial.case
    if trial.refusals.refusal is not None:
        return _error(trial.refusals.refusal)
    if late is not None:
        if waits := ", ".join(unanswered(trial.ledger)):
            why = f"the model that simulates {waits} did not answer within {late:.3g} s."
            return _error(MockBroke(why))
        if not trial.speaking:
            return RunEnded(reason="max_seconds")
        why = f"the user agent for {trial.speaking!r} did not answer within {late:.3g} s."
        return _error(UserAgentFailed(why))
    if task.cancelled():
        return _error(RunBroke("the run was cancelled from inside; something cancelled its task."))
    error = task.exception()
    if (broke := error or not_closed) is not None:
        return _error(broke)
    recording = trial.world.recording
    if recording is not None and (drift := recording.unasked()) is not None:
        return _error(drift)
    allowed = (*case.allow_tools, *allow_tools)
    try:
        if case.mocks or allowed or answered_by_user(case):
            check_names_after(case, trial.backend, allowed, trial.ledger)
    except BadCase as unknown:
        return _error(unknown)
    return RunEnded(reason=task.result())


def _error(error: BaseException) -> RunEnded:
    phase = error.phase if isinstance(error, GreenroomError) else "system"
    return RunEnded(reason="error", phase=phase, **describe_error(error))
