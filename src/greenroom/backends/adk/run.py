"""One advance of one invocation: which agents and nodes are at work, and where in the ledger."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from greenroom.backends.adk.meeting import Meeting
from greenroom.backends.adk.routed import asking
from greenroom.backends.adk.state import name_of
from greenroom.backends.foreign import Invocation, Kept, call_tool
from greenroom.errors import GreenroomError
from greenroom.ledger.events import Decided, NodeEnded, NodeStarted, ToolReturned
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.world import Pending, Returned, ToolRequest

# The framework runs what works at the same time in tasks of its own, so each sees its own place.
PLACE: ContextVar[str] = ContextVar("greenroom_adk_place", default="")


class FrameworkRun:
    """What the gates of one advance share; it puts their calls to the World of the run."""

    __slots__ = ("_at_work", "_handed", "_meeting", "invocation")

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self._at_work: dict[str, str] = {}
        self._handed: dict[str, str] = {}
        self._meeting = Meeting()

    def begin(self, invocation: Invocation) -> None:
        """Go on with the next invocation, or with one that has paused."""
        self.invocation = invocation
        self._at_work.clear()
        self._handed.clear()

    @property
    def place(self) -> str:
        """The path of the innermost agent or node that the running code belongs to."""
        return PLACE.get() or self.invocation.root

    def number(self, tool: str, call_id: str) -> int:
        """How many calls of this tool came before, as seen from here."""
        return self.invocation.index.call_number(tool, call_id, self.place)

    def replies(self, agent: str) -> int:
        """How many replies this agent's model has given in the whole run."""
        return self.invocation.replies(agent)

    def node_call_id(self, name: str) -> str:
        """An id for a call that no model wanted; it follows from the place, so runs repeat exactly."""
        path = self.place
        before = sum(called.path == path for called in self.invocation.index.issued)
        return f"node-{self.new_id(path, name, before)}"

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run comes to the same place."""
        return self.invocation.world.new_id(*parts)

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the invocation."""
        return self.invocation.keep(error)

    async def ask_tool(
        self,
        request: ToolRequest,
        run: Callable[[], Awaitable[Any]],
        told: Callable[[Any], Json] | None = None,
    ) -> tuple[Returned | Pending, Kept]:
        """The World's answer."""
        with asking():
            return await call_tool(self.invocation, request, run, told)

    async def ask_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The World's answer."""
        return await self.invocation.routed(self.invocation.world.call_model(request, body))

    def watch_state(self, context: Any) -> None:
        """Remember what a call looks at in the state."""
        self._meeting.watch(context)

    def hand_over_state(self, call_id: str, context: Any) -> None:
        """State that a mock changed in the ledger is changed in the framework's session too."""
        invocation = self.invocation
        event = invocation.index.results.get(call_id)
        for change in event.changes if isinstance(event, ToolReturned) else ():
            name = name_of(change.scope, change.path[0])
            if name is not None:
                held = invocation.ledger.fold(invocation.world.voice).get(change.scope, {})
                context.state[name] = held.get(change.path[0])
        self._meeting.take(invocation, self.place, call_id, context)

    def last_of(self, node: str) -> str:
        """The path of the latest run of an agent or node, by its name."""
        started = self.invocation.index.started
        found = [path for path, begun in started.items() if begun.node == node]
        return found[-1] if found else self.invocation.root

    def enter(self, node: str, given: Json = None) -> None:
        """An agent or a node begins, unless it only goes on after a pause."""
        within = self.place
        for path in self._handed:
            self._end(path)
        while within in self._handed:
            within = _parent(within)
        index, first = self.invocation.index, f"{within}/{node}"
        path, visit = first, 1
        while path in index.ended or path in self._at_work:
            visit += 1
            path = f"{first}#{visit}"
        self._at_work[path] = node
        PLACE.set(path)
        if path not in index.started:
            self.invocation.world.record(NodeStarted(path=path, node=node, input=given))

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
        index, within = self.invocation.index, f"{self.invocation.root}/"
        for path, begun in reversed(list(index.started.items())):
            if path.startswith(within) and path not in index.ended:
                self._at_work[path] = begun.node
                self._end(path)

    def _end(self, path: str) -> None:
        node = self._at_work.pop(path, None)
        if node is not None:
            steps = self.invocation.index.steps.get(path)
            output = getattr(steps[-1], "text", None) if steps else None
            self.invocation.world.record(NodeEnded(path=path, node=node, output=output))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
