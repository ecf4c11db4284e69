"""The parts of one trial: agent, ledger, world, user and fence, checked and assembled."""

import asyncio
import sys
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from greenroom.backends.answered import AnsweredBackend, with_model
from greenroom.backends.backend import Backend, check_declared, hooks_heard
from greenroom.backends.makers import PerCase
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.data import case_data
from greenroom.cases.users import UserAgents
from greenroom.errors import (
    BadAgent,
    BadCase,
    BadInput,
    BadLedger,
    FenceBreach,
    FenceNotHeld,
    NotFound,
)
from greenroom.ledger.events import (
    Event,
    Forked,
    RunEnded,
    RunResumed,
    RunStarted,
    Unseen,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.questions import started
from greenroom.models.model import Model
from greenroom.simulation.fence import (
    Breach,
    FencedScope,
    RunScope,
    not_held,
    put_up,
)
from greenroom.simulation.gate import RehearsalWorld
from greenroom.simulation.mock_names import check_names
from greenroom.simulation.outside_trials import CalledApart
from greenroom.simulation.refusals import Refusals
from greenroom.simulation.remedies import PERFORM, REHEARSAL, mend_breach
from greenroom.simulation.user.user_side import UserSide
from greenroom.simulation.user.users import user_of
from greenroom.world.call_context import carried
from greenroom.world.resources import Resources
from greenroom.world.visits import Visits
from greenroom.world.world import FixedClock

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

_SIDE: Final = carried(ContextVar[Voice]("greenroom_side", default="agent"))


class Visitors:
    """Hosts for agents of frameworks that run inside functions, steps, tools, mocks or users of one case.

    There is one host for each voice, made when it is first needed.
    """

    def __init__(self, world: RehearsalWorld) -> None:
        self._world = world
        self._hosts: dict[Voice, Visits] = {}

    def host(self) -> Visits:
        """The host for the side whose code runs here."""
        side = _SIDE.get()
        found = self._hosts.get(side)
        if found is None:
            world = self._world if side == "agent" else self._world.with_voice(side)
            found = self._hosts.setdefault(side, Visits(world))
        return found

    @contextmanager
    def of_the_user(self) -> Generator[None]:
        """Count agents that run inside as the user's side."""
        token = _SIDE.set("user")
        try:
            yield
        finally:
            _SIDE.reset(token)

    def check(self) -> None:
        """Raise the error of such an agent, even if the code around it has swallowed it."""
        for visits in self._hosts.values():
            if visits.broke is not None:
                raise visits.broke


class TrialContext(Struct, eq=False):
    """Everything one trial of a case needs, made fresh for it and shared with no other."""

    case: Case
    backend: Backend
    ledger: Ledger
    world: RehearsalWorld
    user: UserAgents
    refusals: Refusals
    visitors: Visitors
    number: int = 1
    scope: FencedScope | None = None
    _user_side: UserSide | None = None

    @property
    def user_side(self) -> UserSide:
        """The user's side, made when it is first needed; most cases are one message long."""
        if self._user_side is None:
            self._user_side = UserSide(self.case, self.user, self.ledger, self.world.user_world)
        return self._user_side

    @property
    def speaking(self) -> str:
        """Those who are working on an answer for the user, in words."""
        return ", ".join(self._user_side.speaking) if self._user_side is not None else ""

    def close(self) -> None:
        """End the trial: work that it left behind must no longer act."""
        self.refusals.close(self.case.id)
        if self.scope is not None:
            # Work that cannot be closed, or was interrupted while it cleaned up, must not keep the whole
            # process fenced.
            self.scope.close()


def set_up(
    case: Case,
    agent: Any,
    ledger: Ledger | None = None,
    *,
    allow_tools: Collection[Any] = (),
    on_event: Callable[[Event], None] | None = None,
    run_id: str = "",
    resources: Resources | None = None,
    world_kind: type[RehearsalWorld] = RehearsalWorld,
    approved: Collection[str] = (),
    model: Model | str | None = None,
) -> TrialContext:
    """Everything that a trial of `case` needs; any problem with it is raised now."""
    backend, mocks = _made(case, agent, model)
    if mocks:
        case = replace(case, mocks={**mocks, **case.mocks})
    allowed = (*case.allow_tools, *allow_tools)
    user = user_of(case.user, case.id)
    check_names(case, backend, allowed, approved)
    ledger = Ledger() if ledger is None else ledger
    refusals = Refusals()
    world = world_kind(
        ledger,
        refusals,
        case,
        backend.tools,
        allowed,
        run_id=run_id or case.id,
        clock=None if case.now is None else FixedClock(case.now),
        on_event=on_event,
        resources=resources,
    )
    world.seed = case.seed
    world.model = getattr(backend, "answered_by", None)
    world.check_resources()
    return TrialContext(case, backend, ledger, world, user, refusals, Visitors(world))


def on_breach(trial: TrialContext) -> Callable[[Breach], None]:
    """A function that refuses an attempt to reach the outside, and ends the case with it."""
    # It uses these and not `trial`: that holds the scope, and the cycle would outlive it.
    case, refusals = trial.case, trial.refusals
    instead: str = getattr(trial.backend, "way_out", "")

    def refuse(breach: Breach) -> None:
        where = f" at {breach.where}" if breach.where else ""
        if breach.route == PERFORM:
            tried = f"perform() was called inside case {case.id!r}{where}; it was refused"
        elif breach.route == REHEARSAL:
            tried = f"a rehearsal was begun inside case {case.id!r}{where}; it was refused"
        else:
            by = f"{breach.route} ({breach.target}){where}"
            tried = (
                f"code in case {case.id!r} tried to reach the outside by {by}; the fence refused"
            )
        why = f"{tried}. {mend_breach(breach.route)}"
        refusals.set(FenceBreach(f"{why} {instead}".rstrip()))

    return refuse


def attach(trial: TrialContext, stack: "MiddlewareStack") -> None:
    """Put middleware around the agent's side of a trial."""
    # Loaded where it is used: most trials have none.
    from greenroom.world.middleware.attachment import attach_to

    refuse = on_breach(trial)

    def fenced(event: Event) -> FencedScope | RunScope:
        put_up()
        if isinstance(event, RunEnded):
            # A breach while the end is recorded cannot change that end, so it is a fault of the run.
            return RunScope(FencedScope(trial.case.id, around="call"))
        return FencedScope(trial.case.id, refuse)

    attach_to(trial.world, stack, hooks_heard(trial.backend), trial.backend.name, fenced)


def backend_of(case: Case, agent: object, model: Model | str | None = None) -> Backend:
    """The backend of a trial of this case: for its own agent or the given one, or only for its target."""
    return _made(case, agent, model)[0]


def _made(
    case: Case, agent: object, model: Model | str | None
) -> tuple[Backend, Mapping[str, Any]]:
    """The backend of a trial, and the mocks that a per-case factory made with it."""
    chosen = case.agent if case.agent is not None else agent
    if chosen is None:
        raise BadCase(
            f"case {case.id!r} has no agent. Give one to `evaluate`, or to the case itself."
        )
    backend, mocks = backend_for(chosen), dict[str, Any]()
    given = case.model if model is None else model
    maker, instead = _maker_of(backend), given
    # A PerCase backend has no model; it only makes the one that runs.
    if given is None and not isinstance(backend, PerCase):
        instead = getattr(backend, "answered_by", None)
    if maker is not None:
        with _making(maker):
            backend, made = maker.made()
        mocks = dict(made)
    backend = target_of(case, backend)
    return backend if instead is None else with_model(backend, instead), mocks


def _maker_of(agent: object) -> PerCase | None:
    """The function that makes a new agent for each trial, if there is one."""
    inner = agent.inner if isinstance(agent, AnsweredBackend) else agent
    return inner if isinstance(inner, PerCase) else None


def make_sample(agent: object) -> None:
    """If the agent is made anew for each trial, make one now, so that it can be inspected."""
    if (maker := _maker_of(agent)) is not None:
        with _making(maker):
            _ = maker.sample


def _making(maker: PerCase) -> CalledApart:
    """Make an agent inside the fence: before a trial nothing connects, and no tool runs."""
    return CalledApart(f"{maker.function}()", "while it made the agent")


def preparing(case: Case) -> CalledApart:
    """Prepare a trial inside the fence: what is read and called before its first turn must not act."""
    return CalledApart(f"the code of case {case.id!r}", "before its first turn")


def target_of(case: Case, backend: Backend) -> Backend:
    """The one node that a case targets, to run alone; the whole agent if it names none."""
    if not case.target:
        return backend
    part: Any = getattr(backend, "part", None)
    if part is None:
        raise BadCase(
            f"case {case.id!r} targets {case.target!r}, but an agent run by {backend.name!r} has no "
            f"parts that can be run alone. Pass the part itself as the agent."
        )
    try:
        return part(case.target)
    except NotFound as error:
        raise BadCase(f"case {case.id!r} targets {case.target!r}: {error}") from error


def begin(trial: TrialContext, recorded_at: float | None = None) -> None:
    """Open a new ledger, or check that an old one belongs to this agent."""
    case, backend, ledger = trial.case, trial.backend, trial.ledger
    if not len(ledger):
        given: Any = case.state  # the ledger copies it as JSON, or names what is not JSON
        asked = case_data(case)
        asked.pop("history", None)  # its events follow in the ledger, so they are not repeated here
        seen: dict[Unseen, str] = {"models": backend.models, "tools": backend.tool_calls}
        trial.world.record(
            RunStarted(
                run_id=trial.world.run_id,
                case=asked,
                agent=backend.snapshot,
                digest=backend.digest,
                state=given,
                opaque=tuple([calls for calls, how in seen.items() if how == "opaque"]),
                observed=tuple([calls for calls, how in seen.items() if how == "observed"]),
                trial=trial.number,
                recorded_at=recorded_at,
            )
        )
        return
    first = started(ledger)
    forks = ledger.of(Forked)
    digest = forks[-1].digest if forks else first.digest if first else ""
    if first is None or digest != backend.digest:
        raise BadLedger(
            f"the ledger of case {case.id!r} was recorded with another agent "
            f"({digest or 'unknown'}, now {backend.digest}). Continue it with that "
            f"agent, or start again."
        )
    trial.world.record(RunResumed())


def check_loop() -> None:
    """Refuse to run where no loop of asyncio is running, such as on trio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        other = "trio" if "trio" in sys.modules else "another event loop"
        raise BadInput(
            f"Greenroom runs on asyncio, but it was awaited on {other}. Call `rehearse(agent, cases)` in "
            f"a thread instead: await trio.to_thread.run_sync(lambda: rehearse(agent, cases))."
        ) from error


def check_fence() -> None:
    """Refuse to run where the fence cannot hold."""
    reasons = not_held(asyncio.get_running_loop())
    if reasons:
        raise FenceNotHeld(
            f"the fence cannot hold here: {'; '.join(reasons)}. Use asyncio's own event loop, or "
            f"allow_unfenced=True to continue with the gate alone."
        )


def check_opaque(backend: Backend, allowed: bool) -> None:
    """Refuse an agent whose tools no gate can hold, unless that is allowed, or whose backend does not say."""
    if not isinstance(backend, NativeBackend):
        check_declared(backend)
    if backend.tool_calls == "opaque" and not allowed:
        raise BadAgent(
            f"the tools of an agent run by {backend.name!r} run where no gate can see or stop "
            f"them, so mocks cannot replace them. Make sure that they act on nothing real, then give "
            f"allow_opaque=True; every result will say so."
        )
