"""The callers for running agents and nodes, with their place in the ledger: a backend's run, or a host.

A call goes through several places of the framework; `PASSED` makes sure that the World is asked once.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from greenroom.backends.adk.state import StateWrites, name_of
from greenroom.backends.callers import HostCaller, RunCaller
from greenroom.backends.invocation import Invocation
from greenroom.ledger.events import Decided
from greenroom.ledger.paths import within
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.call_context import LetThrough, place_here, placed
from greenroom.world.world import Pending, Returned, SealedBody, ToolRequest

PASSED = LetThrough[tuple[object, object]]("greenroom_adk_passed")
"""The tool or toolset that may run here, and the context of that call.

So a call that a class passes to its base, or that checks its arguments first, is asked about once.
Another tool called from inside is another object, and an agent started inside has other contexts.
"""
# The framework runs concurrent work in separate tasks, so each task has its own value.
PLACE: ContextVar[str] = ContextVar("greenroom_adk_place", default="")


def has_passed(what: object, context: object) -> bool:
    """Whether the World was already asked about this call."""
    passed, its_context = PASSED.here() or (None, None)
    return passed is what and its_context is context


def passed_here() -> object:
    """The tool, toolset or node that may run here; None if none does."""
    return (PASSED.here() or (None, None))[0]


async def run_passed(what: object, context: object, run: Callable[[], Awaitable[Any]]) -> Any:
    """Run a call that the World allowed; calls that it makes are asked about separately."""
    with PASSED.during((what, context)):
        return await run()


class FrameworkRun(RunCaller):
    """The state that the gates of one advance share; each call is placed at its running agent or node."""

    __slots__ = ("_at_work", "_handed", "_writes")

    def __init__(self, invocation: Invocation) -> None:
        super().__init__(invocation)
        self._at_work: dict[str, str] = {}
        self._handed: dict[str, str] = {}
        self._writes = StateWrites()

    def begin(self, invocation: Invocation) -> None:
        """Begin the next invocation, or continue a paused one."""
        self.invocation = invocation
        self._at_work.clear()
        self._handed.clear()

    @property
    def place(self) -> str:
        """The path of the innermost agent or node that the running code belongs to."""
        return PLACE.get() or self.invocation.root

    def call_id(self, tool: str) -> str:
        """The id of a node's call; it is derived from the place, so that trials repeat exactly."""
        path = self.place
        before = sum(called.path == path for called in self.invocation.index.issued)
        return f"node-{self.new_id(path, tool, before)}"

    async def call_tool(self, request: ToolRequest, body: SealedBody) -> Returned | Pending:
        """The World's answer; an agent inside a mock is asked about too."""
        with PASSED.during(None):
            return await super().call_tool(request, body)

    def watch_state(self, context: Any) -> None:
        """Remember what a call looks at in the state."""
        self._writes.watch(context)

    def hand_over_state(self, call_id: str, context: Any) -> None:
        """Copy state that a mock changed in the ledger to the framework's session."""
        invocation = self.invocation
        event = invocation.index.results.get(call_id)
        for change in event.changes if event is not None else ():
            name = name_of(change.scope, change.path[0])
            if name is not None:
                state = invocation.ledger.fold(invocation.world.voice).get(change.scope, {})
                context.state[name] = state.get(change.path[0])
        self._writes.add(invocation, self.place, call_id, context)

    def last_of(self, node: str) -> str:
        """The path of the latest run of an agent or node, by its name."""
        started = self.invocation.index.started
        found = [path for path, begun in started.items() if begun.node == node]
        return found[-1] if found else self.invocation.root

    def enter(self, node: str, given: Json = None) -> None:
        """An agent or a node begins, unless it only continues after a pause."""
        around = self.place
        for path in self._handed:
            self._end(path)
        while around in self._handed:
            around = _parent(around)
        path = self.invocation.enter_node(node, around, given, self._at_work)
        self._at_work[path] = node
        PLACE.set(path)

    def leave(self, node: str) -> None:
        """What was entered here has ended."""
        path = self.place
        if self._at_work.get(path) == node:
            self._end(path)
            PLACE.set(_parent(path))

    def hand_over(self, to: str) -> None:
        """The running agent hands over to another one."""
        path = self.place
        self._handed[path] = to
        self.invocation.world.record(Decided(path=path, choice=to))

    def leave_all(self) -> None:
        """The invocation is over, and with it everything that was still open."""
        index, below = self.invocation.index, f"{self.invocation.root}/"
        for path, begun in reversed(list(index.started.items())):
            if path.startswith(below) and path not in index.ended:
                self._at_work[path] = begun.node
                self._end(path)

    def _end(self, path: str) -> None:
        node = self._at_work.pop(path, None)
        if node is not None:
            self.invocation.end_node(node, path)


class InnerCaller(HostCaller):
    """The caller for an agent inside other code, at the place of that code."""

    __slots__ = ()

    async def call_tool(self, request: ToolRequest, body: SealedBody) -> Returned | Pending:
        """The host's answer; an agent inside a mock is asked about too."""
        with placed(_place_around(self.agent)), PASSED.during(None):
            return await super().call_tool(request, body)

    async def call_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The host's reply."""
        with placed(_place_around(self.agent)):
            return await super().call_model(request, body)

    def watch_state(self, context: Any) -> None:
        """Do nothing: the session is not the case's."""

    def hand_over_state(self, call_id: str, context: Any) -> None:
        """Do nothing: the session belongs to the code that runs the agent, not to the case."""


AdkCaller = FrameworkRun | InnerCaller


def _place_around(agent: str) -> str:
    """The place of the code around the agent: inside an agent under test, the place of that agent.

    An agent that was created during that agent's own run has its own place there.
    """
    here, at_work = place_here(), PLACE.get()
    if here and not within(at_work, here):
        return here
    around, _, last = at_work.rpartition("/")
    return around if around and last.partition("#")[0] == agent else at_work


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
