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
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from msgspec.structs import replace

from greenroom.agents.remote import Remote
from greenroom.agents.tools import Tool
from greenroom.backends.backend import ToolFacts
from greenroom.cases.case import Case
from greenroom.cases.mocks import Live, Simulated
from greenroom.cases.problems import as_yaml_line
from greenroom.errors import GreenroomError, Refusal, ReplayDrifted, ToolRefused
from greenroom.ledger.events import Noted, Source, ToolBlocked
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import JSON_TYPES, Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.simulation.fence import Opening, mocking_var, opening_for
from greenroom.simulation.mock_answers import is_simulated, mocked
from greenroom.simulation.refusals import Refusals
from greenroom.simulation.remedies import run_by_name, run_with_hosts
from greenroom.simulation.simulated_tools import SimulatedTools
from greenroom.simulation.tool_identity import ABSENT, is_origin, is_the_tool, names_tool
from greenroom.world.call_context import ContextSetting
from greenroom.world.live import LiveWorld, WorldOptions, cannot_wait
from greenroom.world.records import answer_constant, answer_model, answer_tool, begin_call
from greenroom.world.threads import expected
from greenroom.world.world import FixedClock, Pending, Returned, ToolBody, ToolRequest

if TYPE_CHECKING:
    from greenroom.world.known_answers import KnownAnswers
    from greenroom.world.replayed import Recording

BeforeLive = Callable[[str, Callable[[GreenroomError | None], None]], None]
"""Called before a real tool acts, to save what was recorded so far, including its call.

Takes the id of the call, and a function to call, in any thread, with None once that is saved, or with
the reason why it is not. So whatever happens to the process, it is known which tools may have acted.
"""

_ACTING: Final = ContextVar["Ledger | None"]("greenroom_acting", default=None)
"""The ledger that has the call, around a body that its author named."""
_OWN: Final = ContextVar[object]("greenroom_own_tool", default=None)
"""The tool of a user agent whose body runs here."""
CALLED_DIRECTLY: Final = "called_directly"
"""The note that code of the case called a named tool itself, bypassing the gate."""


def _drop(_: str) -> None:
    """Take a piece of a reply of which only the time matters."""


class FencedWorld(LiveWorld):
    """A live world inside the fence: asking a model is the only way out."""

    recording: "Recording | KnownAnswers | None" = None
    """Answers for models, where it can."""
    seed: int | None = None
    """Passed to models that accept a seed."""
    starting_processes = staticmethod(partial(opening_for, processes=True))
    """Opens the fence for a process in which code of the case runs, itself inside the fence."""

    def __init__(self, ledger: Ledger, refusals: Refusals, **options: Unpack[WorldOptions]) -> None:
        super().__init__(ledger, **options)
        self.refusals = refusals
        self.listens = False
        """Whether models stream their replies even if nothing reads the pieces."""

    @property
    def refused(self) -> Refusal | None:
        """The first refusal of the trial."""
        return self.refusals.refusal

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask the real model, with the fence open for this call, unless a recording answers."""
        self.refusals.check()
        if self.recording is not None:
            try:
                reply = await self.recording.reply(self, request, on_delta)
            except ReplayDrifted as drift:
                raise self.refusals.set(drift) from None
            if reply is not None:
                return reply
        now = self._clock.now() if isinstance(self._clock, FixedClock) else None
        if self.seed is not None or now is not None:
            request = replace(request, seed=self.seed, now=now)
        if self.listens and on_delta is None:
            on_delta = _drop
        return await answer_model(self, request, body, on_delta, opening=Opening)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """Run the real tool inside the fence."""
        self.refusals.check()
        if request.yields:
            return await super().call_tool(request, body)
        self._refuse_doubt(request)
        with ContextSetting(_OWN, request.origin):
            return await answer_tool(self, request, body, "live")


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
        self.simulated = SimulatedTools(case)
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
        issued_at = self.ledger.index_of(self.voice).called[request.id].seq
        return self.simulated.answer(mock, request, self.user_world, issued_at)

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask the real model; the simulated tools also see the tool descriptions it gets."""
        self.simulated.show(request.tools)
        return await super().call_model(request, body, on_delta)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """Mock, else the body its author named, else a violation."""
        self.refusals.check()
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
        if mock is ABSENT and not self._is_allowed(request.tool, request.origin):
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
        if never_runs or not (
            is_named or is_the_tool(mock, origin) or self._is_allowed(name, origin)
        ):
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
        if is_agents or origin is None or _OWN.get() is not origin:
            self.check_direct_call(origin, name)

    def _refused(self, request: ToolRequest) -> ToolRefused:
        why = _explained(request, self._case, self._lacking(request))
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
        why = (
            f"code in case {self._case.id!r} called the tool {name!r} itself, bypassing the gate, so it "
            f"was not run.\n  Let the agent's model call it, where a mock can answer; or, "
            f"{run_by_name(name)}."
        )
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


def _explained(request: ToolRequest, case: Case, lacking: list[ToolFacts]) -> str:
    mocks = "\n".join(
        f"        {facts.name!r}: ...,  # {facts.name}({', '.join(facts.parameters)})"
        f"{' (read only)' if facts.read_only else ''}"
        for facts in lacking
    )
    safe = next((facts.name for facts in lacking if facts.read_only), request.tool)
    instead = f", {run_by_name(safe)}"
    if isinstance(request.origin, Remote):
        named = run_with_hosts(request.tool, request.origin.address.place)
        instead = f" ask the remote agent for real, so that its own tools act: {named}"
    return (
        f"tool {request.tool!r} was called in case {case.id!r}, but has no mock, so it was not run.\n"
        f"  called with: {dict(request.args)!r}\n  add a mock for each tool:\n"
        f"    mocks={{\n{mocks}\n    }}\n"
        f"  in an eval-set file: {as_yaml_line({'mocks': {request.tool: {'value': '...'}}})}\n"
        f"  or{instead}."
    )
