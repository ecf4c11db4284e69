"""Graphs with `ainvoke(state, config)` or `invoke`: any object that takes a state and returns one.

The input is a dict with the conversation under `messages` and the rest of the state from earlier turns;
it is a copy, so the graph may change it. The answer is `response` in the returned state, else the last of
its `messages`. The graph's models and tools are not visible: `allow_opaque=True` must be given.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, cast

from pydantic import BaseModel

from greenroom.backends.backend import Feature, Interception
from greenroom.backends.foreign import ForeignBackend, jsonable, message_data
from greenroom.backends.invocation import Invocation, Progress
from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger.events import NodeEnded, Noted
from greenroom.ledger.identity import code_identity
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, as_text, plain
from greenroom.ledger.records import is_record
from greenroom.world.threads import in_thread
from greenroom.world.world import World

RECURSION_LIMIT = 100
_NODE = "graph"
_ROLES_GIVEN = frozenset({"user", "human", "system", "developer"})


class GraphBackend(ForeignBackend):
    """Runs a graph. `state` makes what goes in from the dict described above, if a dict will not do;
    `config` is added to what each call is given.

    It resumes only between turns: a graph that was interrupted while it ran may have acted.
    """

    name: ClassVar[str] = "graph"
    models: ClassVar[Interception] = "opaque"
    tool_calls: ClassVar[Interception] = "opaque"
    memory: ClassVar[str] = "graph.state"
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
            raise BadAgent(f"{graph!r} has neither ainvoke() nor invoke(), so it cannot be run.")
        self.graph = graph
        self._state = state
        self._config = dict(config or {})

    def describe(self) -> dict[str, Json]:
        """The graph by its class; its contents are unknown."""
        config = {key: jsonable(value) for key, value in self._config.items() if key != "callbacks"}
        return {"code": code_identity(self.graph), "config": config}

    async def run(self, invocation: Invocation) -> Progress:
        """Let the graph answer what the user said last."""
        world, path = invocation.world, invocation.begin_unseen(_NODE, "graph")
        history, said = invocation.history(), invocation.given
        if invocation.attached:
            raise AgentFailed(
                f"{invocation.attached[0]} is attached, but the graph takes only text."
            )
        held = cast("dict[str, Any]", history[0] if history else {})
        messages: list[Any] = list(held.get("messages") or [])
        if said:
            messages.append(message_data("user", said))
        result = await self._invoke({**held, "messages": messages}, self._run_config(world, path))
        answer = plain(answer_of(result), "the graph's answer")
        kept = state_kept(result, messages, answer)
        world.record(NodeEnded(path=path, node=_NODE, output=answer))
        return Progress([kept], answer)

    def _run_config(self, world: World, path: str) -> dict[str, Any]:
        def note(event: Any, *_: Any) -> None:
            world.record(Noted(path=path, name="graph_event", data=plain(jsonable(event))))

        own: list[Any] = list(self._config.get("callbacks") or [])
        return {
            "recursion_limit": RECURSION_LIMIT,
            **deepcopy({k: v for k, v in self._config.items() if k != "callbacks"}),
            "callbacks": [*own, note],
        }

    async def _invoke(self, given: dict[str, Any], config: dict[str, Any]) -> Any:
        state: Any = deepcopy(given)
        if self._state is not None:
            state = self._state(state)
        invoke = getattr(self.graph, "ainvoke", None)
        if callable(invoke):
            result = invoke(state, config=config)
        else:
            result = await in_thread(self.graph.invoke, state, config=config)
        return await result if inspect.isawaitable(result) else result


def answer_of(result: Any) -> Json:
    """The graph's answer: `response`, else the last message; AgentFailed if there is neither.

    A blank string is not an answer; a state often holds one until its graph has something to say.
    """
    for given in _possible_answers(result):
        said = _content(given)
        if not isinstance(said, str) or not is_blank(said):
            return said
    raise AgentFailed(
        f"cannot extract response from what the graph returned ({type(result).__name__}): it has "
        f"no `response`, and no message of its own at the end of `messages`. Let it return one, or "
        f"wrap it in a function that does."
    )


def _possible_answers(result: Any) -> Iterator[Any]:
    """The values that may be the answer, the likeliest first."""
    if isinstance(result, str):
        yield result
        return
    response = _part(result, "response")
    if response is not None:
        yield response
    messages: Sequence[Any] = _part(result, "messages") or ()
    if messages:
        # A message that the graph was given is not its answer.
        role = _part(messages[-1], "role") or _part(messages[-1], "type")
        if str(getattr(role, "value", role)).lower() not in _ROLES_GIVEN:
            yield messages[-1]


def state_kept(result: Any, messages: list[Any], answer: Json) -> dict[str, Json]:
    """The state for the next turn, as JSON, because another process may continue.

    A state that is made of data is kept completely; of other objects only the messages are.
    """
    state: dict[str, Json] = {}
    if isinstance(result, Mapping | BaseModel) or is_record(result):
        state = cast("dict[str, Json]", jsonable(cast(Any, result)))
    theirs: Sequence[Any] = _part(result, "messages") or ()
    said = [_message(one) for one in theirs] or [*messages, message_data("assistant", answer)]
    state.pop("response", None)
    return cast("dict[str, Json]", plain({**state, "messages": said}, "the graph's state"))


def _part(result: Any, name: str) -> Any:
    if isinstance(result, Mapping):
        return cast("Mapping[str, Any]", result).get(name)
    return getattr(result, name, None)


def _content(given: Any) -> Json:
    """The words of a message, or data as it is."""
    if isinstance(given, str):
        return given
    content = _part(given, "content")
    if content is None and not isinstance(given, Mapping):
        content = getattr(given, "text", None)
    if callable(content):
        content = content()
    if content is None:
        return jsonable(given)
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        parts = cast("Sequence[Any]", content)
        return "".join(p if isinstance(p, str) else str(_part(p, "text") or "") for p in parts)
    return as_text(jsonable(content))


def _message(given: Any) -> dict[str, Json]:
    if isinstance(given, Mapping):
        return cast("dict[str, Json]", jsonable(cast(Any, given)))
    role = _part(given, "role") or _part(given, "type") or "assistant"
    return {"role": str(role), "content": as_text(_content(given))}
