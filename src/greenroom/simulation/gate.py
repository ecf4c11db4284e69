"""The tool gate: in a rehearsal no tool body runs unless its author named it.

A call resolves to a mock, else to a real body that was named for this case or run, else it is a
violation. After a violation every later call is refused, and the case ends as an error whatever the
framework did with the exception.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any, Final, Unpack

from greenroom.agents.tools import Tool
from greenroom.backends.backend import ToolFacts
from greenroom.cases.case import Case
from greenroom.cases.mocks import Live, Simulated, simulated_in
from greenroom.errors import GreenroomError, ReplayDrifted, ToolRefused
from greenroom.ledger.events import Noted, Source, ToolBlocked
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import JSON_TYPES, Json
from greenroom.simulation.fence import (
    mocking_var,
    note_late_call,
    opening_for,
    without_opening,
)
from greenroom.simulation.fenced_world import OWN_TOOL, FencedWorld
from greenroom.simulation.mock_answers import is_simulated, mocked
from greenroom.simulation.refusals import Refusals, why_refused, why_refused_directly
from greenroom.simulation.simulated_tools import SimulatedTools
from greenroom.simulation.tool_identity import ABSENT, is_origin, is_the_tool, names_tool
from greenroom.world.call_context import carried
from greenroom.world.live import WorldOptions, cannot_wait
from greenroom.world.records import answer_constant, answer_tool, begin_call
from greenroom.world.threads import expected
from greenroom.world.world import Pending, Returned, ToolBody, ToolRequest

BeforeLive = Callable[[str, Callable[[GreenroomError | None], None]], None]
"""Called before a real tool acts, to save what was recorded so far, including its call.

Takes the id of the call, and a function to call, in any thread, with None once that is saved, or with
the reason why it is not. So whatever happens to the process, it is known which tools may have acted.
"""

_ACTING: Final = carried(ContextVar["Ledger | None"]("greenroom_acting", default=None))
"""The ledger that has the call, around a body that its author named."""
CALLED_DIRECTLY: Final = "called_directly"
"""The note that code of the case called a named tool itself, bypassing the gate."""


class RehearsalWorld(FencedWorld):
    """The agent's world in a rehearsal: mocks answer, the named run, everything else is refused."""

    def __init__(
        self,
        ledger: Ledger,
        refusals: Refusals,
        case: Case,
        tools: Mapping[str, ToolFacts] | None,
        allowed: Collection[Any] = (),
        **options: Unpack[WorldOptions],
    ) -> None:
        super().__init__(ledger, refusals, **options)
        self.before_live: BeforeLive | None = None
        if worlds := list(simulated_in(case.mocks.values())):
            self.simulated = SimulatedTools(case.id, worlds)
        self._user_world: FencedWorld | None = None
        self._case = case
        self._tools = tools or {}
        self.allowed = allowed
        """The tools that were named for this case or for the whole run, so that they may run for real."""

    def with_voice(self, voice: Voice) -> "RehearsalWorld":
        """This world's gate for the other side of the conversation."""
        gate = self.refusals, self._case, self._tools, self.allowed
        twin = RehearsalWorld(self.ledger, *gate, **self._options(voice))
        self._share_with(twin)
        twin.before_live = self.before_live
        twin.simulated, twin._user_world = self.simulated, self.user_world
        return twin

    def _options(self, voice: Voice) -> WorldOptions:
        """The options of this world, for another voice."""
        return {
            "voice": voice,
            "run_id": self.run_id,
            "clock": self._clock,
            "on_event": self.on_event,
            "resources": self.resources,
        }

    def _share_with(self, other: FencedWorld) -> None:
        """Copy to another world of this trial what was set on this one after it was made."""
        other.deadline = self.deadline
        other.captures, other.redact = self.captures, self.redact
        other.recording, other.seed = self.recording, self.seed

    @property
    def user_world(self) -> FencedWorld:
        """The World of the simulation, which speaks for the user and for simulated tools."""
        if self._user_world is None:
            world = FencedWorld(self.ledger, self.refusals, **self._options("user"))
            self._share_with(world)
            if self.middleware is not None:
                # Loaded where it is used: most trials have none.
                from greenroom.world.middleware.attachment import observe_user

                observe_user(world, self.middleware)
            self._user_world = world
        return self._user_world

    def extend(self, seconds: float) -> None:
        """Allow the trial more time, because another one blocked the event loop."""
        for world in (self, self._user_world):
            if world is not None and world.deadline is not None:
                world.deadline += seconds

    def simulate(self, mock: Simulated, request: ToolRequest) -> Awaitable[Json]:
        """The answer of a model that simulates a tool."""
        assert self.simulated is not None
        issued_at = self.ledger.index_of(self.voice).called[request.id].seq
        return self.simulated.answer(mock, request, self.user_world, issued_at)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """Mock, else the body its author named, else a violation."""
        if self.refusals.left_behind and self._is_violation(request):
            note_late_call(request.tool, self._case.id)
        self.refusals.check()
        with without_opening():
            if self.middleware is None:
                return await self._answer_call(request, body)
            return await self.middleware.held(request, self._answer_call(request, body))

    async def _answer_call(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        mock: Any = self._case.mocks.get(request.tool, ABSENT)
        if self.middleware is not None:
            answer = await self.middleware.before_tool(request)
            if answer is not None:
                return answer
            self.refusals.check()
        if type(mock) in JSON_TYPES:  # it is never taken for the tool itself, even if it is None
            if self.middleware is None:
                return answer_constant(self, request, mock, "mock")
            return await answer_tool(self, request, lambda _: mock, "mock")
        if request.tool in mocking_var.get():
            # A mock that calls the tool it replaces would call itself.
            raise self.refusals.set(self._refused_directly(request.tool))
        if mock is not ABSENT and not is_origin(mock, request):
            token = mocking_var.set((*mocking_var.get(), request.tool))
            try:
                source: Source = "simulated" if is_simulated(mock, request, self) else "mock"
                answer = self._recorded(request) if source == "simulated" else None
                if answer is not None:
                    return answer
                return await answer_tool(
                    self, request, lambda context: mocked(mock, request, context), source
                )
            finally:
                mocking_var.reset(token)
        # To name a tool whose body never runs is to leave the answer to the user.
        if request.yields and (mock is ABSENT or isinstance(request.origin, Tool)):
            if request.visits:
                raise self.refusals.set(ToolRefused(cannot_wait(request)))
            begin_call(self, request)
            return Pending(request.id)
        if mock is ABSENT and request.delegates:
            return await answer_tool(self, request, body, "live")
        if self._is_violation(request):
            raise self.refusals.set(self._refused(request))
        return await self._run_named(mock, request, body)

    async def _run_named(self, mock: object, request: ToolRequest, body: ToolBody) -> Returned:
        """Run a body its author named; only `live(...)` opens the fence, and only meanwhile."""
        if (answer := self._recorded(request)) is not None:
            return answer
        self._refuse_doubt(request)
        hosts = mock.hosts if isinstance(mock, Live) else None
        self.resources.hosts.update(hosts or ())
        acting = _ACTING.set(self.ledger)
        try:
            with opening_for(hosts=hosts) if hosts else nullcontext():
                return await answer_tool(self, request, body, "live", self._keep_call)
        finally:
            _ACTING.reset(acting)

    def _recorded(self, request: ToolRequest) -> Returned | None:
        """How this call ended in the recording; None without a recording, or if it is not recorded."""
        if self.recording is None:
            return None
        try:
            return self.recording.returned(self, request)
        except ReplayDrifted as drift:
            raise self.refusals.set(drift) from None

    async def _keep_call(self, request: ToolRequest) -> None:
        """Let no real tool act before its call is on disk, if the run is recorded."""
        if self.before_live is not None:
            await expected(asyncio.wrap_future(_kept(request.id, self.before_live)))
            self.refusals.check()

    def _is_allowed(self, name: str, origin: object) -> bool:
        """Named by its name or by the very object, for this case or for the whole run."""
        return any(names_tool(allowed, name, origin) for allowed in self.allowed)

    def _is_violation(self, request: ToolRequest) -> bool:
        """Whether nothing may answer this call: it has no mock, and its body was not named."""
        return (
            request.tool not in self._case.mocks
            and not (request.yields or request.delegates)
            and not self._is_allowed(request.tool, request.origin)
        )

    def check_resources(self) -> None:
        """Refuse a case that lets a real tool run without its resources."""
        for name, facts in self._tools.items():
            mock = self._case.mocks.get(name, ABSENT)
            if isinstance(facts.origin, Tool) and facts.origin.resources:
                runs = self._is_allowed(name, facts.origin) if mock is ABSENT else False
                if runs or isinstance(mock, Live) or is_the_tool(mock, facts.origin):
                    self.resources.check(facts.origin.required_resources, name)

    def check_direct_call(self, origin: object, name: str) -> None:
        """Refuse a tool body that is called without the World, unless its author named that tool."""
        mock = self._case.mocks.get(name, ABSENT)
        is_named = isinstance(mock, Live) and names_tool(mock, name, origin)
        never_runs = isinstance(origin, Tool) and origin.yields
        is_violation = never_runs or not (
            is_named or is_the_tool(mock, origin) or self._is_allowed(name, origin)
        )
        if self.refusals.left_behind:
            if is_violation:
                note_late_call(name, self._case.id)
            self.refusals.check()
        if is_violation:
            raise self.refusals.set(self._refused_directly(name))
        if _ACTING.get() is not self.ledger:
            # A tool that a named body calls is part of that call; this one is a call by itself.
            self.record(Noted(name=CALLED_DIRECTLY, data={"tool": name}))
            if self.before_live is not None:
                _kept("", self.before_live).result()  # this code cannot await

    def check_user_call(self, origin: object, name: str) -> None:
        """Let a tool run that a user agent was given, unless the agent has it too; and no other."""
        facts = self._tools.get(name)
        is_agents = facts is not None and facts.origin is origin
        if is_agents or origin is None or OWN_TOOL.get() is not origin:
            self.check_direct_call(origin, name)

    def _refused(self, request: ToolRequest) -> ToolRefused:
        why = why_refused(request, self._case.id, self._lacking(request))
        self.record(
            ToolBlocked(
                path=request.path,
                call_id=request.id,
                tool=request.tool,
                args=request.args,
                why=why.splitlines()[0],
            )
        )
        return ToolRefused(why)

    def _refused_directly(self, name: str) -> ToolRefused:
        why = why_refused_directly(name, self._case.id)
        self.record(ToolBlocked(tool=name, args={}, why=why.splitlines()[0]))
        return ToolRefused(why)

    def _lacking(self, request: ToolRequest) -> list[ToolFacts]:
        """Every tool that would be refused, so that the case can be fixed in one go."""
        known = dict(self._tools)
        known.setdefault(request.tool, ToolFacts(request.tool, tuple(request.args)))
        return [
            facts
            for name, facts in known.items()
            if name not in self._case.mocks
            and not facts.yields
            and not self._is_allowed(name, facts.origin)
        ]


def _kept(call_id: str, before_live: BeforeLive) -> "Future[None]":
    """A future that is done when what was recorded so far is saved, and fails if it cannot be."""
    kept: Future[None] = Future()
    kept.set_running_or_notify_cancel()  # a waiter that is cancelled must not cancel this

    def tell(error: GreenroomError | None) -> None:
        if error is None:
            kept.set_result(None)
        else:
            kept.set_exception(error)

    before_live(call_id, tell)
    return kept
