"""Who asks for the agents and nodes at work, and where in the ledger: a backend's run, or a host.

A call goes through several places of the framework; `PASSED` sees to it that it is asked about once.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from greenroom.backends.adk.state import StateWrites, name_of
from greenroom.backends.callers import (
    HostCaller,
    Kept,
    Run,
    RunCaller,
    RunModel,
    T,
    ToJson,
    ToReply,
)
from greenroom.backends.foreign import jsonable
from greenroom.backends.invocation import Invocation
from greenroom.ledger.events import Decided
from greenroom.ledger.paths import within
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.call_context import ContextSetting, place_here, placed
from greenroom.world.world import Pending, Returned, ToolRequest

_NOTHING: tuple[object, object] = (None, None)

PASSED: ContextVar[tuple[object, object]] = ContextVar("greenroom_adk_passed", default=_NOTHING)
"""The tool or toolset that may run here, and the context of that very call.

What a class hands on to its base, and what checks its arguments first, is asked about once. Another
tool called from inside has another object, and an agent started inside other contexts.
"""
# The framework runs what works at the same time in tasks of its own, so each sees its own place.
PLACE: ContextVar[str] = ContextVar("greenroom_adk_place", default="")


def has_passed(what: object, context: object) -> bool:
    """Whether this very call was asked about."""
    passed, its_context = PASSED.get()
    return passed is what and its_context is context


async def run_passed(what: object, context: object, run: Callable[[], Awaitable[Any]]) -> Any:
    """Run what was asked about; whatever it starts is asked about by itself."""
    with ContextSetting(PASSED, (what, context)):
        return await run()


class FrameworkRun(RunCaller):
    """What the gates of one advance share; each call stands where its agent or node is at work."""

    __slots__ = ("_at_work", "_handed", "_writes")

    def __init__(self, invocation: Invocation) -> None:
        super().__init__(invocation)
        self._at_work: dict[str, str] = {}
        self._handed: dict[str, str] = {}
        self._writes = StateWrites()

    def begin(self, invocation: Invocation) -> None:
        """Go on with the next invocation, or with one that has paused."""
        self.invocation = invocation
        self._at_work.clear()
        self._handed.clear()

    @property
    def place(self) -> str:
        """The path of the innermost agent or node that the running code belongs to."""
        return PLACE.get() or self.invocation.root

    def call_id(self, tool: str) -> str:
        """The id of a node's call; it follows from the place, so runs repeat exactly."""
        path = self.place
        before = sum(called.path == path for called in self.invocation.index.issued)
        return f"node-{self.new_id(path, tool, before)}"

    async def ask_tool(
        self, request: ToolRequest, run: Run, to_json: ToJson = jsonable
    ) -> tuple[Returned | Pending, Kept]:
        """The World's answer; an agent inside a mock is asked about too."""
        with ContextSetting(PASSED, _NOTHING):
            return await super().ask_tool(request, run, to_json)

    def watch_state(self, context: Any) -> None:
        """Remember what a call looks at in the state."""
        self._writes.watch(context)

    def hand_over_state(self, call_id: str, context: Any) -> None:
        """State that a mock changed in the ledger is changed in the framework's session too."""
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
        """An agent or a node begins, unless it only goes on after a pause."""
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
        """The agent at work lets another take its place."""
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
    """Asks for an agent inside something else, at the place of the code around it."""

    __slots__ = ()

    async def ask_tool(
        self, request: ToolRequest, run: Run, to_json: ToJson = jsonable
    ) -> tuple[Returned, Kept]:
        """The host's answer; an agent inside a mock is asked about too."""
        with placed(_place_around(self.agent)), ContextSetting(PASSED, _NOTHING):
            return await super().ask_tool(request, run, to_json)

    async def ask_model(
        self, request: ModelRequest, run: RunModel[T], to_reply: ToReply[T]
    ) -> tuple[ModelReply, Kept]:
        """The host's reply."""
        with placed(_place_around(self.agent)):
            return await super().ask_model(request, run, to_reply)

    def watch_state(self, context: Any) -> None:
        """Nothing: the session is not the case's."""

    def hand_over_state(self, call_id: str, context: Any) -> None:
        """Nothing: the session belongs to the code that runs the agent, not to the case."""


AdkCaller = FrameworkRun | InnerCaller


def _place_around(agent: str) -> str:
    """Where the code around the agent stands: inside a handed-over agent that is the agent at work.

    An agent that came up while that one ran, but in its run, has a place of its own there.
    """
    here, at_work = place_here(), PLACE.get()
    if here and not within(at_work, here):
        return here
    around, _, last = at_work.rpartition("/")
    return around if around and last.partition("#")[0] == agent else at_work


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
