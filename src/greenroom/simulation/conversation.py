"""A case played out: the agent and its user take turns until something ends it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from time import monotonic
from typing import Any

from greenroom.backends.backend import (
    Advance,
    Backend,
    Failed,
    Finished,
    Interception,
    TurnOver,
    Waiting,
)
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.data import case_data
from greenroom.errors import (
    AgentFailed,
    BadCase,
    BadLedger,
    BadValue,
    FailedBefore,
    FenceBreach,
    GreenroomError,
    NotFound,
    RunBroke,
    UserAgentFailed,
)
from greenroom.ledger.changes import Change, check_appends
from greenroom.ledger.events import (
    Calls,
    EndReason,
    Event,
    InvocationEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.query import matches_state
from greenroom.ledger.questions import ended, seconds, started, turns
from greenroom.ledger.records import record
from greenroom.simulation.checks import check_fence, check_opaque, check_outermost
from greenroom.simulation.durable_calls import BeforeLive
from greenroom.simulation.fence import Breach, FencedScope, opening_for, put_up
from greenroom.simulation.gate import FencedWorld, Refusals, RehearsalWorld
from greenroom.simulation.inner_agents import Visitors
from greenroom.simulation.mock_names import answered_by_user, check_names, check_names_after
from greenroom.simulation.user_side import Reply, UserSide
from greenroom.simulation.users import UserAgents, turn_limit, user_of
from greenroom.simulation.watchdog import Deadline, finish
from greenroom.world.bodies import guarded
from greenroom.world.clock import FixedClock
from greenroom.world.records import described, record_conflicts


@record(frozen=False, eq=False)
class TrialContext:
    """Everything one run of a case needs, made fresh for it and shared with no other."""

    case: Case
    backend: Backend
    ledger: Ledger
    world: RehearsalWorld
    user: UserAgents
    latch: Refusals
    visitors: Visitors
    on_event: Callable[[Event], None] | None = None
    clock: FixedClock | None = None
    enclosure: FencedScope | None = None
    seated: UserSide | None = None
    user_world: FencedWorld | None = None

    @property
    def audience(self) -> UserSide:
        """The user's side, made when it is first needed; most cases are one message long."""
        if self.seated is None:
            world = FencedWorld(
                self.ledger,
                self.latch,
                voice="user",
                run_id=self.world.run_id,
                clock=self.clock,
                on_event=self.on_event,
            )
            world.deadline = self.world.deadline
            self.user_world = world
            self.seated = UserSide(self.case, self.user, self.ledger, world)
        return self.seated

    def extend(self, seconds: float) -> None:
        """The run may take longer, because others held up the event loop."""
        for world in (self.world, self.user_world):
            if world is not None and world.deadline is not None:
                world.deadline += seconds

    def close(self) -> None:
        """The run is over, or somebody broke it off: what was left behind must not act any more."""
        self.latch.close(self.case.id)
        if self.enclosure is not None:
            # What cannot even be closed, or was broken off while it put its things away, must not
            # keep the whole process fenced.
            self.enclosure.close()


async def simulate(
    case: Case,
    agent: Any = None,
    *,
    ledger: Ledger | None = None,
    allow_tools: Collection[Any] = (),
    allow_unfenced: bool = False,
    allow_opaque: bool = False,
    on_event: Callable[[Event], None] | None = None,
    before_live: BeforeLive | None = None,
    run_id: str = "",
) -> Ledger:
    """Play `case` with every side effect mocked and return the ledger of what happened.

    A `ledger` of an unfinished run is continued. The run always ends in the ledger: with the reason,
    and with the error if it broke. `allow_unfenced` plays where the fence cannot hold, and
    `allow_opaque` an agent whose tools run where no gate can see them. `before_live` is asked to keep
    what `on_event` heard before a tool that was named runs for real.
    """
    check_outermost()
    if not allow_unfenced:
        check_fence()
    stage = _set_stage(case, agent, ledger, allow_tools, on_event, run_id)
    stage.world.before_live = before_live
    check_opaque(stage.backend, allow_opaque)
    left = case.stop.max_seconds
    if ledger is not None:
        if ended(ledger) is not None:
            return ledger
        left -= seconds(ledger)
    _begin(stage)
    if left <= 0:
        stage.world.record(RunEnded(reason="max_seconds"))
        return stage.ledger
    deadline = Deadline(left, name=f"case {case.id!r}", on_extended=stage.extend)
    stage.world.deadline = monotonic() + left
    # SDKs swallow refusals and try again; a case that was refused something ends at once.
    stage.latch.on_set = deadline.cut
    try:
        task = await finish(_enclosed(stage, deadline), deadline, case.id)
        stage.world.record(_ending(stage, task, deadline.expired, allow_tools))
    finally:
        stage.close()
    return stage.ledger


def _declared(backend: Backend, what: Interception) -> tuple[Calls, ...]:
    """Which calls of its agent a backend declares to be seen in this way."""
    if what not in (backend.models, backend.tool_calls):
        return ()
    declared: dict[Calls, str] = {"models": backend.models, "tools": backend.tool_calls}
    return tuple(calls for calls, seen in declared.items() if seen == what)


def _set_stage(
    case: Case,
    agent: Any,
    ledger: Ledger | None,
    allow_tools: Collection[Any],
    on_event: Callable[[Event], None] | None,
    run_id: str,
) -> TrialContext:
    chosen = case.agent if case.agent is not None else agent
    if chosen is None:
        raise BadCase(
            f"case {case.id!r} has no agent to play; give one to evaluate or to the case."
        )
    backend = backend_for(chosen)
    if case.target:
        backend = _part(backend, case)
    tools, allowed = backend.tools, (*case.allow_tools, *allow_tools)
    user = user_of(case.user, case.id)
    if case.mocks or allowed or answered_by_user(case):
        check_names(case, backend, allowed)
    ledger = Ledger() if ledger is None else ledger
    latch = Refusals()
    clock = None if case.now is None else FixedClock(case.now)
    world = RehearsalWorld(ledger, latch, case, tools, allowed, run_id or case.id, clock, on_event)
    return TrialContext(case, backend, ledger, world, user, latch, Visitors(world), on_event, clock)


def _part(backend: Backend, case: Case) -> Backend:
    """The one node a case is about."""
    if not isinstance(backend, NativeBackend):
        raise BadCase(
            f"case {case.id!r} targets the node {case.target!r}, but only nodes of our own graphs "
            f"can be played alone, not those of {backend.name}."
        )
    try:
        return backend.part(case.target)
    except NotFound as error:
        raise BadCase(f"case {case.id!r} targets {case.target!r}: {error}") from error


def _begin(stage: TrialContext) -> None:
    """Open a new ledger, or make sure that an old one is this agent's."""
    case, backend, ledger = stage.case, stage.backend, stage.ledger
    if not len(ledger):
        stage.world.record(
            RunStarted(
                run_id=stage.world.run_id,
                case=case_data(case),
                agent=backend.snapshot,
                digest=backend.digest,
                state=case.state,
                opaque=_declared(backend, "opaque"),
                observed=_declared(backend, "observed"),
            )
        )
        return
    first = started(ledger)
    if first is None or first.digest != backend.digest:
        raise BadLedger(
            f"the ledger of case {case.id!r} was begun by another agent "
            f"({first.digest if first else 'unknown'}, now {backend.digest}). Continue it with the "
            f"agent that began it, or start again."
        )
    stage.world.record(RunResumed())


async def _enclosed(stage: TrialContext, deadline: Deadline) -> EndReason:
    """Play inside the fence, with tool bodies closed to direct calls."""
    # Not the stage itself: it holds the enclosure, and a ring of the two would outlive the run.
    case, latch = stage.case, stage.latch
    instead: str = getattr(stage.backend, "way_out", "")

    def on_breach(breach: Breach) -> None:
        latch.set(FenceBreach(f"{_breached(case, breach)} {instead}".rstrip()))

    def on_stray(breach: Breach) -> None:
        latch.set(FenceBreach(_not_cleared(case, breach)))

    put_up()
    stage.enclosure = enclosure = FencedScope(case.id, on_breach)
    enclosure.body_guard = stage.world.check_direct_call
    enclosure.host = stage.visitors.host
    enclosure.on_stray = on_stray
    enclosure.open(deadline.task)
    try:
        return await _play(stage)
    except SystemExit as error:
        # It would end the whole evaluation, and an exit code of 0 would look like a pass.
        raise AgentFailed(f"the code of the case tried to end the process: {error!r}") from error
    finally:
        enclosure.close()
        deadline.conclude()


def _breached(case: Case, breach: Breach) -> str:
    where = f" at {breach.where}" if breach.where else ""
    way = "" if _starts_process(breach) else ", or name it: mocks={...: live(tool, hosts=[...])}"
    return (
        f"code in case {case.id!r} tried to reach the outside by {breach.route} "
        f"({breach.target}){where}; the fence refused. Mock the tool that does it{way}."
    )


def _not_cleared(case: Case, breach: Breach) -> str:
    return (
        f"while case {case.id!r} was open, work that belongs to no case tried {breach}; it was "
        f"refused. Nobody can tell which case it came from, so none that was open is cleared. Start "
        f"threads and tasks from inside the case, or stop what does not belong to it."
    )


def _starts_process(breach: Breach) -> bool:
    return not breach.route.startswith(("socket.", "ssl.", "asyncio."))


async def _play(stage: TrialContext) -> EndReason:
    """The story of a run: advance, stop or answer, and again."""
    outcome: Advance | None = None
    index = stage.ledger.indexes["agent"]
    if index.said or index.invocations:
        outcome = _standing(stage)
    else:
        _say_first(stage)
    while True:
        if outcome is None:
            outcome = await _advance(stage)
            if stage.latch.is_set:
                stage.latch.check()
            stage.visitors.check()
        match outcome:
            case TurnOver() | Waiting():
                if _goal_reached(stage):
                    return "state_matches"
                if _is_all_said(stage.case, outcome):
                    return "completed"
                if _limit_reached(stage, outcome):
                    return "max_turns"
                if not await _answer(stage, outcome):
                    return "completed"
                if _goal_reached(stage):
                    return "state_matches"
            case Finished():
                return "finished"
            case Failed(error):
                raise error
        outcome = None


def _advance(stage: TrialContext) -> Awaitable[Advance]:
    """The agent's next move, with the fence open to where it lives, if it lives outside."""
    places: tuple[str, ...] = getattr(stage.backend, "reaches", ())
    if places:
        return _advance_outside(stage, places)
    return stage.backend.advance(stage.ledger, stage.world)


async def _advance_outside(stage: TrialContext, places: tuple[str, ...]) -> Advance:
    with opening_for(hosts=places):
        return await stage.backend.advance(stage.ledger, stage.world)


def _say_first(stage: TrialContext) -> None:
    script = stage.case.script
    if script and script[0].says:
        if stage.case.user is not None:
            stage.audience.remember(script[0].says, "", stage.world.new_id("first"))
        stage.world.record(UserSaid(text=script[0].says))


def _standing(stage: TrialContext) -> TurnOver | Finished | Failed | None:
    """Where a resumed run stands: at a finished turn that nobody answered, or in the middle."""
    index = stage.ledger.index_of()
    if index.open_invocation is not None or not index.invocations:
        return None
    end = index.invocations_ended[next(reversed(index.invocations))]
    if index.said and index.said[-1].seq > end.seq:
        return None
    return _recorded(end)


def _recorded(end: InvocationEnded) -> TurnOver | Finished | Failed:
    if end.outcome == "failed":
        return Failed(FailedBefore(end.error, end.error_type, end.phase or "system"))
    return Finished(end.output) if end.outcome == "finished" else TurnOver(end.output)


def _goal_reached(stage: TrialContext) -> bool:
    wanted = stage.case.stop.state_matches
    return wanted is not None and matches_state(stage.ledger.fold(), wanted)


def _limit_reached(stage: TrialContext, outcome: TurnOver | Waiting) -> bool:
    """Whether another round is due that the limit forbids."""
    if turns(stage.ledger) < turn_limit(stage.case, stage.user):
        return False
    return isinstance(outcome, Waiting) or stage.audience.would_speak


async def _answer(stage: TrialContext, outcome: TurnOver | Waiting) -> bool:
    """Let the user answer; False when they have nothing more to say."""
    with guarded(stage.world.check_user_call), stage.visitors.of_the_user():
        if isinstance(outcome, Waiting):
            replies = await stage.audience.answers(outcome.yields)
            if replies is None:
                return False
            _record_round(stage, outcome, replies)
            return True
        said = await stage.audience.next_message()
    if said is None:
        return False
    _check_user_changes(stage, said[1])
    stage.world.record(UserSaid(text=said[0], changes=said[1]))
    return True


def _is_all_said(case: Case, outcome: TurnOver | Waiting) -> bool:
    """Whether the first message was all that this case's user ever says, and nobody asks them."""
    return case.user is None and len(case.script) < 2 and isinstance(outcome, TurnOver)


def _check_user_changes(stage: TrialContext, changes: Sequence[Change]) -> None:
    try:
        check_appends(stage.world.ledger.fold(), changes, "the user's answer")
    except BadValue as error:
        raise UserAgentFailed(str(error)) from None


def _record_round(stage: TrialContext, outcome: Waiting, replies: list[Reply]) -> None:
    asked = [reply.asks for reply in replies]
    _check_user_changes(stage, [change for asks in asked for change in asks])
    record_conflicts(stage.world, f"answers@{outcome.yields[0].id}", asked)
    stage.world.record(stage.audience.round_event(outcome.yields, replies))


def _ending(
    stage: TrialContext,
    task: "asyncio.Task[EndReason]",
    expired: bool,
    allow_tools: Collection[Any],
) -> RunEnded:
    """Why the run is over. Safety speaks first, then the clock, then the run itself."""
    if stage.latch.refusal is not None:
        return _error(stage.latch.refusal)
    if expired or not task.done():
        if stage.seated is not None and stage.seated.speaking:
            who = ", ".join(stage.seated.speaking)
            limit = stage.case.stop.max_seconds
            return _error(
                UserAgentFailed(f"the user agent for {who!r} did not answer within {limit:g} s.")
            )
        return RunEnded(reason="max_seconds")
    if task.cancelled():
        return _error(RunBroke("the run was cancelled from inside; something cancelled its task."))
    error = task.exception()
    if error is not None:
        return _error(error)
    case = stage.case
    try:
        if case.mocks or case.allow_tools or allow_tools or answered_by_user(case):
            allowed = (*case.allow_tools, *allow_tools)
            check_names_after(case, stage.backend, allowed, stage.ledger)
    except BadCase as unknown:
        return _error(unknown)
    return RunEnded(reason=task.result())


def _error(error: BaseException) -> RunEnded:
    phase = error.phase if isinstance(error, GreenroomError) else "system"
    return RunEnded(reason="error", phase=phase, **described(error))
