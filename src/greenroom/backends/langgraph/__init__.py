"""LangGraph graphs and LangChain agents, run on a World with a memory that Greenroom keeps.

The graph is copied only to give it that memory. Its models and tools ask the World from inside their own
classes, so that middleware, callbacks and error policies run as usual.
"""

# The framework is only partly typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import copy
from functools import partial
from typing import Any, ClassVar, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Interrupt
from langsmith.run_helpers import tracing_context
from langsmith.utils import tracing_is_enabled

from greenroom.backends.attached import content_attachments
from greenroom.backends.backend import FEATURES, Feature, ToolFacts
from greenroom.backends.foreign import ForeignBackend, jsonable
from greenroom.backends.invocation import Check, Invocation, Progress
from greenroom.backends.langgraph.facts import (
    Graph,
    check_agent,
    described_graph,
    name_of,
    part_of,
    tool_facts,
)
from greenroom.backends.langgraph.memory import THREAD, Memory
from greenroom.backends.langgraph.pauses import Pause, checked_decision, resumption, waits_for
from greenroom.backends.langgraph.run import RUN, FrameworkRun
from greenroom.backends.langgraph.seam import install
from greenroom.backends.langgraph.translation import content_of
from greenroom.errors import AgentFailed
from greenroom.ledger.attachments import message_value
from greenroom.ledger.changes import State
from greenroom.ledger.plain import Json, plain
from greenroom.world.call_context import ContextSetting

_STEPS = 100


class LangGraphBackend(ForeignBackend):
    """Runs a compiled graph, an agent of `create_agent`, or a chat model or chain by itself.

    `input` makes the graph's input from what the user said, `output` the answer from its last state; by
    default both use its messages. `context`, if given, is called for each run.
    """

    name: ClassVar[str] = "langgraph"
    memory: ClassVar[str] = "langgraph.checkpoint"
    check_approval: ClassVar[Check | None] = checked_decision
    supports: ClassVar[frozenset[Feature]] = frozenset(FEATURES)

    def __init__(
        self,
        agent: Any,
        *,
        input: Callable[[str], Any] | None = None,
        output: Callable[[Any], Json] | None = None,
        context: Callable[[], Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.graph: Graph = check_agent(agent, input is not None)
        self._input = input
        self._output = output
        self._context = context
        self._config = dict(config or {})

    def part(self, name: str) -> "LangGraphBackend":
        """One node alone, or the graph inside it; `helper/model` is a node of the graph in `helper`."""
        return LangGraphBackend(
            part_of(self.graph, name),
            input=self._input,
            output=self._output,
            context=self._context,
            config=self._config,
        )

    def describe(self) -> dict[str, Json]:
        """The graph with its nodes, models and tools."""
        return described_graph(self.graph)

    def list_tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools, or None if nodes of the user's own may call others."""
        return tool_facts(self.graph)

    def install_seam(self) -> None:
        """Gate the framework's innermost calls."""
        install()

    async def run(self, invocation: Invocation) -> Progress:
        """Run the graph until it has ended, or waits for answers that only the user can give."""
        memory, history = Memory(), invocation.history()
        kept = memory.load(history) if history else {}
        run = FrameworkRun(invocation, name_of(self.graph), dict(kept.get("places", {})))
        pauses = [Pause(**pause) for pause in kept.get("pauses", ())]
        given = self._given(invocation, memory, pauses)
        fold = invocation.ledger.fold(invocation.world.voice)
        run.known = known_state(self.graph, memory.values, fold)
        graph, config = self._copy(memory), self._run_config()
        context = self._context() if self._context else None
        # The framework would send traces to their collector from its own thread.
        untraced = tracing_context(enabled=False) if tracing_is_enabled() else nullcontext()
        try:
            with ContextSetting(RUN, run), untraced:
                while True:
                    note = partial(self._note_step, run)
                    state, found = await _at_rest(graph, given, config, context, note)
                    progress = await self._progress(run, memory, state, found)
                    if isinstance(progress, Progress):
                        return progress
                    given = Command(resume=progress)
        finally:
            run.bridge.close()

    def _copy(self, memory: Memory) -> Graph:
        """The graph with its own memory; its store or cache would be shared between cases."""
        twin = copy(self.graph)
        twin.checkpointer, twin.cache = memory, None
        if twin.store is not None:
            twin.store = InMemoryStore()
        return twin

    def _run_config(self) -> Any:
        own = cast("dict[str, Any]", self.graph.config or {})
        steps = {} if "recursion_limit" in own else {"recursion_limit": _STEPS}
        configurable = {**self._config.get("configurable", {}), "thread_id": THREAD}
        return {**steps, **self._config, "configurable": configurable}

    def _given(self, invocation: Invocation, memory: Memory, pauses: list[Pause]) -> Any:
        """The graph's input: what the user said, or the answers to everything that waits, with state changes."""
        world = invocation.world
        state = state_given(self.graph, memory.values, invocation.ledger.fold(world.voice))
        if pauses and invocation.resumed:
            answers = resumption(invocation, pauses)
            return Command(resume=answers, update=state) if state else Command(resume=answers)
        said = invocation.given or ""
        if self._input is not None and invocation.attached:
            raise AgentFailed(
                f"{invocation.attached[0]} is attached, but input=... is given the text alone; leave "
                f"input= out, so that the graph gets a message with all of it."
            )
        if self._input is not None:
            own = self._input(said)
            return {**state, **own} if isinstance(own, dict) else own
        content = content_of(said, invocation.attached)
        return {**state, "messages": [HumanMessage(content)] if content else []}

    def _note_step(self, run: FrameworkRun, state: Any) -> None:
        """Record what the nodes that have just ended changed; of several, at the last one."""
        if isinstance(state, dict):
            ended = run.ended_nodes()
            self._record_state(run, cast("dict[str, Any]", state), ended[-1] if ended else "")

    def _record_state(self, run: FrameworkRun, values: dict[str, Any], path: str = "") -> None:
        invocation, state = run.invocation, _state_as_json(self.graph, values)
        changes = invocation.record_state(state, run.known, path or invocation.root)
        run.known |= {change.path[0]: change.value for change in changes}

    async def _progress(
        self, run: FrameworkRun, memory: Memory, state: Any, found: list[Interrupt[Any]]
    ) -> Progress | dict[str, Any]:
        """The progress of the graph; or the answers to its questions, if the World had them all."""
        invocation = run.invocation
        self._record_state(run, memory.values)
        run.known = known_state(self.graph, memory.values, {})
        if found:
            pauses, yields = await waits_for(invocation, found, _asking_nodes(memory, run))
            if not yields:
                return resumption(invocation, pauses)
            waits: list[Json] = [jsonable(pause) for pause in pauses]
            more: dict[str, Json] = {"places": {**run.places}, "pauses": waits}
            return Progress(memory.dump(more), yields=tuple(yields))
        answer = self._output(state) if self._output else answer_in(state, self.graph)
        if type(answer) is not str:
            answer = plain(jsonable(answer), "the graph's output")
        return Progress(memory.dump({"places": {}, "pauses": []}), answer, is_fresh=True)


async def _at_rest(
    graph: Graph, given: Any, config: Any, context: Any, note: Callable[[Any], None]
) -> tuple[Any, list[Interrupt[Any]]]:
    """The state in which a graph stopped, and what it waits for; intermediate states are recorded."""
    state: Any = None
    found: list[Interrupt[Any]] = []
    try:
        async for state in graph.astream(
            given,
            config,
            context=context,
            stream_mode="values",
            output_keys=graph.output_channels,
            durability="exit",
        ):
            if isinstance(state, dict) and "__interrupt__" in state:
                found += state["__interrupt__"]
            else:
                note(state)
    except NotImplementedError as error:
        if "awrap_" not in str(error):
            raise
        raise AgentFailed(
            f"a middleware of graph {graph.name!r} is sync only, and a rehearsal runs graphs "
            f"asynchronously. Make its function async, or rehearse a function that invokes the graph: "
            f"def agent(message): return graph.invoke(...)."
        ) from error
    return state, found


def _asking_nodes(memory: Memory, run: FrameworkRun) -> dict[str, str]:
    """The node that each pending interrupt comes from, or the tool whose body asks there."""
    index = run.invocation.index
    tools = {call.path: call.tool for call in index.issued if index.end_of(call) is None}
    paths = {key.rpartition(":")[2]: path for key, path in run.places.items()}
    found: dict[str, str] = {}
    for writes in memory.pending.values():
        for task, channel, value, _ in writes.values():
            if channel == "__interrupt__" and task in paths:
                path = paths[task]
                found |= {one.id: tools.get(path) or index.started[path].node for one in value}
    return found


def state_given(graph: Graph, values: dict[str, Any], fold: State) -> dict[str, Any]:
    """The part of the session's state that the graph does not know yet."""
    known = _state_as_json(graph, values)
    return {
        key: plain(value)  # a copy: the graph may edit what it is given
        for key, value in fold.get("session", {}).items()
        if _is_state(graph, key) and (key not in known or known[key] != value)
    }


def known_state(graph: Graph, values: dict[str, Any], fold: State) -> dict[str, Json]:
    """The graph's state when it continues."""
    return {**_state_as_json(graph, values), **state_given(graph, values, fold)}


def answer_in(result: Any, graph: Graph) -> Any:
    """Structured data, else the last message's text, else a field called response or output."""
    state = cast("dict[str, Any]", result if isinstance(result, dict) else {"output": result})
    if state.get("structured_response") is not None:
        return state["structured_response"]
    if (last := _last_message(state)) is not None:
        # A graph may end with a tool's answer, which is then its own (`return_direct`).
        if not isinstance(last, AIMessage | ToolMessage):
            return None
        return message_value(str(last.text), content_attachments(last.content))
    for name in ("response", "output"):
        if state.get(name) is not None:
            return state[name]
    raise AgentFailed(
        f"cannot extract a response from the state of graph {graph.name!r}, which has "
        f"{sorted(state)}. Say where it is: LangGraphBackend(graph, output=lambda state: ...)."
    )


def _last_message(state: Mapping[str, Any]) -> BaseMessage | None:
    """The last message, parsed as LangChain does: a state may hold dicts and pairs of strings as messages."""
    messages = state.get("messages")
    if not isinstance(messages, list) or not messages:
        return None
    try:
        return convert_to_messages(cast("list[Any]", messages)[-1:])[0]
    except (ValueError, NotImplementedError):
        return None


def _state_as_json(graph: Graph, values: dict[str, Any]) -> dict[str, Json]:
    return {
        key: plain(jsonable(value), f"state {key!r}")
        for key, value in values.items()
        if _is_state(graph, key) and not _holds_messages(key, value) and value is not None
    }


def _is_state(graph: Graph, key: str) -> bool:
    """Whether a channel is part of the author's state schema."""
    own = ("__", "branch:", "join:")
    return key in graph.channels and not key.startswith(own) and key != "structured_response"


def _holds_messages(key: str, value: Any) -> bool:
    """Whether a channel is the conversation, which the ledger has already and the graph's memory keeps."""
    if isinstance(value, list | tuple):
        held = cast("list[Any] | tuple[Any, ...]", value)
        return key == "messages" or any(isinstance(item, BaseMessage) for item in held)
    return isinstance(value, BaseMessage)
