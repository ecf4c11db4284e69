"""One advance of one graph: where its nodes are at work, and who answers for models and tools."""

from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from langgraph.errors import GraphBubbleUp, ParentCommand

from greenroom.backends.foreign import Invocation, Kept, call_tool
from greenroom.backends.langgraph.threads import Bridge
from greenroom.errors import GreenroomError
from greenroom.ledger.events import ModelReplied, NodeEnded, NodeFailed, NodeStarted
from greenroom.ledger.index import End
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.threads import Here, in_thread
from greenroom.world.world import Pending, Returned, ToolRequest

T = TypeVar("T")
Blocking = Callable[[Here], Coroutine[Any, Any, T]]

STAGE: ContextVar["FrameworkRun | None"] = ContextVar("greenroom_langgraph_stage", default=None)
PLACE: ContextVar[str] = ContextVar("greenroom_langgraph_place", default="")
IN_TOOL_NODE: ContextVar[bool] = ContextVar("greenroom_langgraph_in_tool_node", default=False)


class FrameworkRun:
    """What the gates of one advance share.

    A paused node begins again from its first line when its graph goes on. What its models and tools
    answered before the pause is answered from the ledger.
    """

    __slots__ = (
        "_asked",
        "_direct",
        "_done",
        "_repeated",
        "bridge",
        "invocation",
        "known",
        "name",
        "places",
        "twins",
    )

    def __init__(self, invocation: Invocation, name: str, places: dict[str, str]) -> None:
        self.invocation = invocation
        self.name = name
        self.bridge = Bridge()
        self.places = places
        """The ledger path of each unfinished task, by the framework's name for it."""
        self.twins: dict[int, tuple[Any, Any]] = {}
        """Each model met so far with its gated copy, by the model's identity."""
        self.known: dict[str, Json] = {}
        """The graph's own state as it was when it last went on."""
        self._asked: dict[str, int] = {}
        self._direct: dict[tuple[str, str], int] = {}
        self._done = invocation.index.issued.copy() if invocation.resumed else []
        self._repeated: dict[tuple[str, str], int] = {}

    @property
    def path(self) -> str:
        """Where in the ledger the running code is."""
        return PLACE.get() or self.invocation.root

    @property
    def agent(self) -> str:
        """The graph whose node is at work: the outermost one, or the node that holds it."""
        outer = self.invocation.index.started.get(self.path.rpartition("/")[0])
        return outer.node if outer else self.name

    @property
    def asker(self) -> dict[str, Any]:
        """Who asks a model now: the node at work, and how many replies its models had in the run."""
        index, path, agent = self.invocation.index, self.path, self.agent
        begun = index.started.get(path)
        node = begun.node if begun else self.name
        n = sum([reply.node == node and reply.agent == agent for reply in index.replied])
        return {"agent": agent, "node": node, "path": path, "n": n}

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Keep the error: it decides how the invocation ends."""
        return self.invocation.keep(error)

    def blocking(self, make: "Blocking[T]") -> T:
        """What a coroutine gives, for a caller who cannot await."""
        return self.bridge.wait(lambda: make(in_thread))

    async def ask_model(self, make: "Callable[..., ModelRequest]", body: ModelBody) -> ModelReply:
        """The World's reply to the node at work."""
        return await self.invocation.routed(
            self.invocation.world.call_model(make(**self.asker), body)
        )

    async def ask_tool(
        self, request: ToolRequest, run: Callable[[], Awaitable[Any]]
    ) -> tuple[Returned | Pending, Kept]:
        """The World's answer to a call of the node at work, and what the real tool gave."""
        return await call_tool(self.invocation, request, run)

    def placed(
        self, call_id: str | None, tool: str, args: dict[str, Json], origin: Any
    ) -> ToolRequest:
        """A call as the World is asked for it."""
        named = call_id or self.direct_id(tool)
        n = self.invocation.index.call_number(tool, named, self.path)
        return ToolRequest(named, tool, args, self.path, origin=origin, n=n)

    def begin(self, name: str, key: str) -> str:
        """A task of the framework begins, or goes on after a pause; its path."""
        return self.bridge.do(self._enter, name, key)

    def end(self, name: str, key: str, error: BaseException | None) -> None:
        """A task has ended, well or not; one that only pauses stays open."""
        if error is None or isinstance(error, ParentCommand):
            self.bridge.do(self._leave, name, key)
        elif isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            self.bridge.do(self._fail, name, key, str(error), type(error).__name__)

    def answered(self) -> ModelReplied | None:
        """The reply that this model call got before its node was paused, if it did."""
        path = self.path
        n = self._asked.get(path, 0)
        self._asked[path] = n + 1
        steps = self.invocation.index.steps.get(path, ())
        given = [step for step in steps if isinstance(step, ModelReplied)]
        return given[n] if n < len(given) else None

    def recorded(self, request: ToolRequest) -> End | None:
        """How a tool call ended before this advance began, if it had.

        Calls may share an id: those of one node are told apart by their order, others by their node.
        """
        ends = [
            end
            for called in self._done
            if called.call_id == request.id and called.tool == request.tool
            if (end := self.invocation.index.end_of(called)) is not None
            if called.path == request.path or end.source == "user"
        ]
        n = self._repeated.get((request.path, request.id), 0)
        self._repeated[request.path, request.id] = n + 1
        return ends[n] if n < len(ends) else None

    def direct_id(self, tool: str) -> str:
        """An id for a call that no model made; the same when its node begins again."""
        place = (self.path, tool)
        n = self._direct.get(place, 0)
        self._direct[place] = n + 1
        return self.invocation.world.new_id(self.path, "direct", tool, n)

    def _enter(self, name: str, key: str) -> str:
        known = self.places.get(key)
        if known is not None:
            self._asked.pop(known, None)
            self._repeated = {at: n for at, n in self._repeated.items() if at[0] != known}
            return known
        first = path = f"{self.path}/{name}"
        visit = 1
        while path in self.invocation.index.started:
            visit += 1
            path = f"{first}#{visit}"
        self.places[key] = path
        self.invocation.world.record(NodeStarted(path=path, node=name, input=None))
        return path

    def _leave(self, name: str, key: str) -> None:
        path = self.places.pop(key)
        steps = self.invocation.index.steps.get(path)
        output: Json = getattr(steps[-1], "text", None) if steps else None
        self.invocation.world.record(NodeEnded(path=path, node=name, output=output))

    def _fail(self, name: str, key: str, error: str, kind: str) -> None:
        path = self.places.pop(key)
        if self.invocation.broke is None:
            self.invocation.world.record(
                NodeFailed(path=path, node=name, attempt=1, error=error, error_type=kind)
            )


class AtWork:
    """A task of the framework at work: what is asked meanwhile is asked at its place."""

    __slots__ = ("_key", "_name", "_stage", "_token")

    def __init__(self, stage: FrameworkRun, task: Any) -> None:
        self._stage = stage
        self._name: str = task.name
        self._key = key_of(task)

    def __enter__(self) -> None:
        self._token = PLACE.set(self._stage.begin(self._name, self._key))

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:  # noqa: SIM105 - around every task, where `suppress` costs as much as the rest
            PLACE.reset(self._token)
        except ValueError:  # thrown away, and ended in another context: there is nothing to undo
            pass
        self._stage.end(self._name, self._key, error)


def key_of(task: Any) -> str:
    """The framework's name for a task, which stays the same over a pause."""
    return str(task.config["configurable"].get("checkpoint_ns") or task.id)
