"""Graphs with `ainvoke(state, config)` or `invoke`: any object that takes a state and gives one.

The state that goes in is a dict with the conversation under `messages` and whatever the graph left
beside it in earlier turns; it is a copy, so the graph may do to it what it likes. The answer is
what comes out under `response`, else the last of its `messages`. What the graph's models and tools
do inside is not seen: `allow_opaque=True` must be given.
"""

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, ClassVar, cast

from greenroom.backends.agentflow.states import answer_of, kept_of
from greenroom.backends.backend import Advance, Feature, Interception, Resumption, ToolFacts
from greenroom.backends.foreign import Invocation, Played, digest_of, jsonable, message_data
from greenroom.errors import BadAgent
from greenroom.ledger.events import NodeEnded, Noted
from greenroom.ledger.identity import code_identity
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.world.threads import in_thread
from greenroom.world.world import World

MEMORY = "graph.state"
RECURSION_LIMIT = 100
_NODE = "graph"


class GraphBackend:
    """Runs a graph. `state` makes what goes in from the dict described above, if a dict will not do;
    `config` is added to what each call is given."""

    name: ClassVar[str] = "graph"
    models: ClassVar[Interception] = "opaque"
    tool_calls: ClassVar[Interception] = "opaque"
    # Between turns; a graph that was cut while it worked may have acted.
    resumes: ClassVar[Resumption] = "checkpoint"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {"speaks_first", "structured_output", "turns"}
    )

    def __init__(
        self,
        graph: Any,
        *,
        state: Callable[[dict[str, Any]], Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if not any(callable(getattr(graph, name, None)) for name in ("ainvoke", "invoke")):
            raise BadAgent(f"{graph!r} has neither ainvoke() nor invoke(), so nobody can run it.")
        self.graph = graph
        self._state = state
        self._config = dict(config or {})

    @cached_property
    def snapshot(self) -> Json:
        """The graph by its class; what is inside is not known."""
        told = {key: jsonable(value) for key, value in self._config.items() if key != "callbacks"}
        return {"framework": self.name, "code": code_identity(self.graph), "config": told}

    @cached_property
    def digest(self) -> str:
        """Changes whenever the code of the graph's class does."""
        return digest_of(self.snapshot)

    @property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """Unknown: they run inside the graph."""
        return None

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Let the graph answer what the user said last."""
        invocation = Invocation(ledger, world, MEMORY)
        return await invocation.play(lambda: self._play(invocation))

    async def _play(self, invocation: Invocation) -> Played:
        world, path = invocation.world, invocation.begin_unseen(_NODE, "graph")
        given = _with_message(invocation.history(), invocation.given)
        result = await self._invoked(given, self._given_config(world, path))
        answer = plain(answer_of(result), "the graph's answer")
        kept = kept_of(result, given["messages"], answer)
        world.record(NodeEnded(path=path, node=_NODE, output=answer))
        return Played([kept], answer)

    def _given_config(self, world: World, path: str) -> dict[str, Any]:
        def note(event: Any, *_: Any) -> None:
            world.record(Noted(path=path, name="graph_event", data=plain(jsonable(event))))

        own: list[Any] = list(self._config.get("callbacks") or [])
        return {
            "recursion_limit": RECURSION_LIMIT,
            **deepcopy({k: v for k, v in self._config.items() if k != "callbacks"}),
            "callbacks": [*own, note],
        }

    async def _invoked(self, given: dict[str, Any], config: dict[str, Any]) -> Any:
        state: Any = deepcopy(given)
        if self._state is not None:
            state = self._state(state)
        run = getattr(self.graph, "ainvoke", None)
        if callable(run):
            return await _awaited(run(state, config=config))
        return await _awaited(await in_thread(self.graph.invoke, state, config=config))


def _with_message(history: list[Json], said: Json) -> dict[str, Any]:
    held = cast("dict[str, Any]", history[0] if history else {})
    before: list[Any] = list(held.get("messages") or [])
    return {**held, "messages": [*before, *([message_data("user", said)] if said else [])]}


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
