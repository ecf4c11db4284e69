"""The callers for the models and tools of a graph: a backend's run, or a host."""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphBubbleUp, ParentCommand
from langgraph.types import Send

from greenroom.backends.callers import HostCaller, RunCaller
from greenroom.backends.invocation import Invocation
from greenroom.backends.langgraph.threads import Bridge
from greenroom.ledger.events import Decided, ModelReplied, NodeEnded, NodeStarted
from greenroom.ledger.index import End
from greenroom.ledger.plain import Json
from greenroom.world.call_context import Host
from greenroom.world.threads import Here, call_blocking, in_thread
from greenroom.world.world import ToolRequest

T = TypeVar("T")
Blocking = Callable[[Here], Coroutine[Any, Any, T]]

RUN: ContextVar["FrameworkRun | None"] = ContextVar("greenroom_langgraph_run", default=None)
PLACE: ContextVar[str] = ContextVar("greenroom_langgraph_place", default="")
_TO = "branch:to:"
"""The prefix of the channel that starts a node, before the node's name."""
IN_TOOL_NODE: ContextVar[bool] = ContextVar("greenroom_langgraph_in_tool_node", default=False)


class FrameworkRun(RunCaller):
    """The state that the gates of one advance share.

    A paused node starts again from its first line when its graph continues. What its models and tools
    answered before the pause is answered from the ledger.
    """

    __slots__ = (
        "_asked",
        "_direct",
        "_done",
        "_looked_at",
        "_repeated",
        "bridge",
        "known",
        "name",
        "places",
        "twins",
    )

    def __init__(self, invocation: Invocation, name: str, places: dict[str, str]) -> None:
        super().__init__(invocation)
        self.name = name
        self.bridge = Bridge()
        self.places = places
        """The ledger path of each unfinished task, by the framework's name for it."""
        self.twins: dict[int, tuple[Any, Any]] = {}
        """Each model used so far with its gated copy, by the model's id()."""
        self.known: dict[str, Json] = {}
        """The graph's own state when it last continued."""
        self._looked_at = len(invocation.ledger)
        self._asked: dict[str, int] = {}
        self._direct: dict[tuple[str, str], int] = {}
        self._done = invocation.index.issued.copy() if invocation.resumed else []
        self._repeated: dict[tuple[str, str], int] = {}

    @property
    def place(self) -> str:
        """Where in the ledger the running code is."""
        return PLACE.get() or self.invocation.root

    @property
    def agent(self) -> str:
        """The graph whose node is running: the outermost one, or the node that contains it."""
        outer = self.invocation.index.started.get(self.place.rpartition("/")[0])
        return outer.node if outer else self.name

    @property
    def node(self) -> str:
        """The running node."""
        begun = self.invocation.index.started.get(self.place)
        return begun.node if begun else self.name

    def blocking(self, make: "Blocking[T]") -> T:
        """The result of a coroutine, for a caller that cannot await."""
        return self.bridge.wait(lambda: make(in_thread))

    def begin(self, name: str, key: str) -> str:
        """A task of the framework begins, or continues after a pause; returns its path."""

        def enter() -> str:
            known = self.places.get(key)
            if known is not None:
                self._asked.pop(known, None)
                self._repeated = {at: n for at, n in self._repeated.items() if at[0] != known}
                return known
            path = self.places[key] = self.invocation.begin_node(name, self.place)
            return path

        return self.bridge.do(enter)

    def end(
        self, name: str, key: str, error: BaseException | None, went_to: Sequence[str] = ()
    ) -> None:
        """A task has ended, well or not; one that only pauses stays open.

        `went_to` are the nodes that it chose to run next.
        """

        def leave() -> None:
            path = self.places.pop(key)
            if went_to:
                self.invocation.world.record(Decided(path=path, choice=", ".join(went_to)))
            self.invocation.end_node(name, path)

        def fail() -> None:
            path = self.places.pop(key)
            self.invocation.fail_node(path, error or RuntimeError(), attempt_of(path))

        if error is None or isinstance(error, ParentCommand):
            self.bridge.do(leave)
        elif isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            self.bridge.do(fail)

    def retry(self, error: Exception, max_attempts: int) -> None:
        """The running task has failed and is tried again, unless it was its last attempt."""

        def begin_again() -> str:
            path, attempt = PLACE.get(), attempt_of(PLACE.get())
            key = next((key for key, at in self.places.items() if at == path), None)
            if key is None or attempt >= max_attempts or self.invocation.broke is not None:
                return path
            self.invocation.fail_node(path, error, attempt)
            first = path if attempt == 1 else path.rpartition("~")[0]
            again = self.places[key] = f"{first}~{attempt + 1}"
            node = self.invocation.index.started[path].node
            self.invocation.world.record(NodeStarted(path=again, node=node))
            return again

        PLACE.set(self.bridge.do(begin_again))

    def ended_nodes(self) -> list[str]:
        """The paths of the outermost nodes that have ended since this was last asked."""
        ledger, root = self.invocation.ledger, self.invocation.root
        events, self._looked_at = ledger[self._looked_at :], len(ledger)
        ended = [event.path for event in events if isinstance(event, NodeEnded)]
        return [path for path in ended if path.rpartition("/")[0] == root]

    def answered(self) -> ModelReplied | None:
        """The reply that this model call got before its node was paused, if it did."""
        path = self.place
        n = self._asked.get(path, 0)
        self._asked[path] = n + 1
        steps = self.invocation.index.steps.get(path, ())
        given = [step for step in steps if isinstance(step, ModelReplied)]
        return given[n] if n < len(given) else None

    def recorded(self, request: ToolRequest) -> End | None:
        """How a tool call ended before this advance began, if it had.

        Calls may share an id: those of one node are distinguished by their order, others by their node.
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

    def has_paused(self, request: ToolRequest) -> bool:
        """Whether the body of this call asked its user something and now starts again."""
        index = self.invocation.index
        called = index.called.get(request.id)
        if called is None or (called.tool, called.path) != (request.tool, request.path):
            return False
        return index.end_of(called) is None

    def call_id(self, tool: str) -> str:
        """An id for a call that no model made; the same when its node starts again."""
        place = self.place
        n = self._direct.get((place, tool), 0)
        self._direct[place, tool] = n + 1
        return self.new_id(place, "direct", tool, n)


class InnerCaller(HostCaller):
    """The caller for a graph, model or tool inside a function, a step, a tool or a thread."""

    __slots__ = ("twins",)

    def __init__(self, host: Host) -> None:
        config = var_child_runnable_config.get() or {}
        metadata = config.get("metadata") or {}
        agent = metadata.get("lc_agent_name") or metadata.get("langgraph_node") or "model"
        super().__init__(host, str(agent))
        self.twins: dict[int, tuple[Any, Any]] = {}

    @property
    def node(self) -> str:
        """The running agent, as far as the framework says."""
        return self.agent

    def blocking(self, make: Blocking[T]) -> T:
        """The result of a coroutine, for a caller that cannot await; bodies run in the caller's thread."""
        return call_blocking(make)

    def answered(self) -> None:
        """What was answered before is the host's to know."""

    def recorded(self, _: ToolRequest) -> None:
        """What was answered before is the host's to know."""

    def has_paused(self, _: ToolRequest) -> bool:
        """False: a pause belongs to the author's code, which runs the graph."""
        return False


class AtWork:
    """A running task of the framework: requests made meanwhile are placed at its path."""

    __slots__ = ("_key", "_name", "_run", "_task", "_token")

    def __init__(self, run: FrameworkRun, task: Any) -> None:
        self._run = run
        self._task = task
        self._name: str = task.name
        # The framework's name for a task stays the same across a pause.
        self._key = str(task.config["configurable"].get("checkpoint_ns") or task.id)

    def __enter__(self) -> None:
        self._token = PLACE.set(self._run.begin(self._name, self._key))

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        with suppress(ValueError):  # discarded, and ended in another context: nothing to undo
            PLACE.reset(self._token)
        self._run.end(self._name, self._key, error, decisions_of(self._task))


def attempt_of(path: str) -> int:
    """The number of the attempt in a path."""
    _, mark, number = path.rpartition("/")[2].rpartition("~")
    return int(number) if mark and number.isdecimal() else 1


def decisions_of(task: Any) -> list[str]:
    """The nodes that a task chose to run next, by a conditional edge or a command of the author's.

    Edges that are always taken are not decisions, and neither is how the framework's own agents run their
    tools.
    """
    writers = getattr(task, "writers", ())
    entries = [entry for one in writers for entry in getattr(one, "writes", ())]
    always = {getattr(entry, "channel", "") for entry in entries}
    if any(_is_own(one) for one in writers):
        return []
    chosen: list[str] = []
    for channel, value in task.writes:
        if channel.startswith(_TO) and channel not in always:
            chosen.append(channel.removeprefix(_TO))
        elif channel == "__pregel_tasks" and isinstance(value, Send):
            chosen.append(value.node)
    return list(dict.fromkeys(chosen))


def _is_own(writer: Any) -> bool:
    """Whether a conditional edge is decided by a function of the framework's."""
    branch: Any = getattr(getattr(writer, "func", None), "__self__", None)
    path: Any = getattr(branch, "path", None)
    function: Any = getattr(path, "afunc", None) or getattr(path, "func", None)
    return str(getattr(function, "__module__", "")).startswith(("langchain.", "langgraph."))
