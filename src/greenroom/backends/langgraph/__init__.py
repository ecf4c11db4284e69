"""LangGraph graphs and LangChain agents, advanced on a World with a memory of our own.

The graph is copied only to give it that memory. Its models and tools are led to the World where
their classes do the work, so that middleware, callbacks and error policies run as ever.
"""

# The framework is half typed, and its seams are its own affair.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, ClassVar, cast

from langchain_core.messages import HumanMessage
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Interrupt
from langsmith.run_helpers import tracing_context
from langsmith.utils import tracing_is_enabled

from greenroom.backends.backend import Advance, Feature, Interception, Resumption, ToolFacts
from greenroom.backends.foreign import Invocation, Played, digest_of, held, jsonable
from greenroom.backends.langgraph.facts import check_agent, described_graph, name_of, tool_facts
from greenroom.backends.langgraph.memory import THREAD, Memory
from greenroom.backends.langgraph.pauses import Pause, checked_decision, resumption, waits_for
from greenroom.backends.langgraph.run import STAGE, FrameworkRun
from greenroom.backends.langgraph.seam import install
from greenroom.backends.langgraph.state import answer_in, changed_state, known_state, state_given
from greenroom.ledger.events import StateChanged
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.world.world import World

MEMORY = "langgraph.checkpoint"
_STEPS = 100


class LangGraphBackend:
    """Runs a compiled graph, an agent of `create_agent`, or a chat model or chain by itself.

    `input` makes the graph's input of what the user said, `output` the answer of its last state;
    without them both are its messages. `context`, if given, is called for each run.
    """

    name: ClassVar[str] = "langgraph"
    models: ClassVar[Interception] = "routed"
    tool_calls: ClassVar[Interception] = "routed"
    # Exact at pauses and between turns; a run cut while the framework works must start again.
    resumes: ClassVar[Resumption] = "checkpoint"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {
            "approvals",
            "argument_checks",
            "error_handlers",
            "handoffs",
            "message_waits",
            "parallel_calls",
            "questions",
            "speaks_first",
            "state",
            "streaming",
            "structured_output",
            "turns",
            "usage",
        }
    )

    def __init__(
        self,
        agent: Any,
        *,
        input: Callable[[str], Any] | None = None,
        output: Callable[[Any], Json] | None = None,
        context: Callable[[], Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.graph: Pregel[Any, Any, Any, Any] = check_agent(agent, input is not None)
        self._input = input
        self._output = output
        self._context = context
        self._config = dict(config or {})

    @cached_property
    def snapshot(self) -> Json:
        """The graph with its nodes, models and tools."""
        return {"framework": self.name, **described_graph(self.graph)}

    @cached_property
    def digest(self) -> str:
        """Changes whenever the graph does."""
        return digest_of(self.snapshot)

    @cached_property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools, or None if nodes of the user's own may call others."""
        return tool_facts(self.graph)

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Go on with the open invocation, or begin the next one with what the user said last."""
        install()
        invocation = Invocation(ledger, world, MEMORY, check=checked_decision)
        return await invocation.play(lambda: self._run(invocation))

    async def _run(self, invocation: Invocation) -> Played:
        memory = Memory()
        history = invocation.history()
        kept = memory.load(history) if history else {}
        stage = FrameworkRun(invocation, name_of(self.graph), dict(kept.get("places", {})))
        pauses = [Pause(**told) for told in kept.get("pauses", ())]
        given = self._given(invocation, memory, pauses)
        fold = invocation.ledger.fold(invocation.world.voice)
        stage.known = known_state(self.graph, memory.values, fold)
        graph, config = self._copy(memory), self._run_config()
        context = self._context() if self._context else None
        try:
            with held(STAGE, stage), _untraced():
                while True:
                    state, found = await _at_rest(graph, given, config, context)
                    played = await self._played(stage, memory, state, found)
                    if isinstance(played, Played):
                        return played
                    given = Command(resume=played)
        finally:
            stage.bridge.close()

    def _copy(self, memory: Memory) -> Pregel[Any, Any, Any, Any]:
        """The graph with a memory of its own; a store or cache would be shared between cases."""
        parts: dict[str, Any] = {"checkpointer": memory, "cache": None}
        if self.graph.store is not None:
            parts["store"] = InMemoryStore()
        # A shallow copy is all that Graph.copy gives, without building the graph anew.
        twin = object.__new__(type(self.graph))
        vars(twin).update(vars(self.graph), **parts)
        return twin

    def _run_config(self) -> Any:
        own = cast("dict[str, Any]", self.graph.config or {})
        steps = {} if "recursion_limit" in own else {"recursion_limit": _STEPS}
        configurable = {**self._config.get("configurable", {}), "thread_id": THREAD}
        return {**steps, **self._config, "configurable": configurable}

    def _given(self, invocation: Invocation, memory: Memory, pauses: list[Pause]) -> Any:
        """What the user said, or the answers to everything that waits, with changes of state."""
        world = invocation.world
        state = state_given(self.graph, memory.values, invocation.ledger.fold(world.voice))
        if pauses and invocation.resumed:
            answers = resumption(invocation, pauses)
            return Command(resume=answers, update=state) if state else Command(resume=answers)
        said = invocation.given or ""
        if self._input is not None:
            own = self._input(said)
            return {**state, **own} if isinstance(own, dict) else own
        return {**state, "messages": [HumanMessage(said)] if said else []}

    async def _played(
        self, stage: FrameworkRun, memory: Memory, state: Any, found: list[Interrupt[Any]]
    ) -> Played | dict[str, Any]:
        """How far the graph came; or the answers to its questions, if the World had them all."""
        invocation, world = stage.invocation, stage.invocation.world
        fold = invocation.ledger.fold(world.voice)
        changes = changed_state(self.graph, memory.values, fold, stage.known)
        if changes:
            world.record(StateChanged(path=invocation.root, changes=changes))
        stage.known = known_state(self.graph, memory.values, {})
        if found:
            pauses, yields = await waits_for(invocation, found, _nodes_of(memory, stage))
            if not yields:
                return resumption(invocation, pauses)
            more = {"places": dict(stage.places), "pauses": [jsonable(pause) for pause in pauses]}
            return Played(memory.dump(more), yields=tuple(yields))
        answer = self._output(state) if self._output else answer_in(state, self.graph)
        text = type(answer) is str
        output = answer if text else plain(jsonable(answer), "the graph's output")
        return Played(memory.dump({"places": {}, "pauses": []}), output, is_fresh=True)


def _untraced() -> AbstractContextManager[Any]:
    """Traces would be sent to their collector by a thread of the framework's own."""
    return tracing_context(enabled=False) if tracing_is_enabled() else nullcontext()


async def _at_rest(
    graph: Pregel[Any, Any, Any, Any], given: Any, config: Any, context: Any
) -> tuple[Any, list[Interrupt[Any]]]:
    """The state a graph came to rest with, and what it waits for there."""
    state: Any = None
    found: list[Interrupt[Any]] = []
    # All that `ainvoke` does, without the updates between two states, which are not read.
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
    return state, found


def _nodes_of(memory: Memory, stage: FrameworkRun) -> dict[str, str]:
    """The node that each pending interrupt comes from."""
    started = stage.invocation.index.started
    named = {key.rpartition(":")[2]: path for key, path in stage.places.items()}
    found: dict[str, str] = {}
    for writes in memory.pending.values():
        for task, channel, value, _ in writes.values():
            if channel == "__interrupt__" and task in named:
                found |= {one.id: started[named[task]].node for one in value}
    return found
