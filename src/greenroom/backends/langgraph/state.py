"""A graph's state and the session's: what goes in, what came out of it, and the answer in it."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.pregel import Pregel

from greenroom.backends.foreign import jsonable
from greenroom.errors import AgentFailed
from greenroom.ledger.changes import Change, State
from greenroom.ledger.plain import Json, plain, same

Graph = Pregel[Any, Any, Any, Any]


def state_given(graph: Graph, values: dict[str, Any], held: State) -> dict[str, Any]:
    """What the session holds and the graph does not know yet."""
    known = _state_as_json(graph, values)
    return {
        key: plain(value)  # a copy: the graph may edit what it is given
        for key, value in held.get("session", {}).items()
        if _is_state(graph, key) and (key not in known or known[key] != value)
    }


def known_state(graph: Graph, values: dict[str, Any], held: State) -> dict[str, Json]:
    """What the graph's state is when it goes on."""
    return {**_state_as_json(graph, values), **state_given(graph, values, held)}


def changed_state(
    graph: Graph, values: dict[str, Any], held: State, known: Mapping[str, Json]
) -> tuple[Change, ...]:
    """What the graph's state holds and the session does not.

    What the graph has left as it knew it may have changed in the session meanwhile, by an answer.
    """
    session = held.get("session", {})
    return tuple(
        Change("session", (key,), "set", value)
        for key, value in _state_as_json(graph, values).items()
        if (key not in session or session[key] != value)
        and not (key in known and same(known[key], value))
    )


def answer_in(result: Any, graph: Graph) -> Any:
    """Structured data, else the last message's text, else a field called response or output."""
    state = cast("dict[str, Any]", result if isinstance(result, dict) else {"output": result})
    if state.get("structured_response") is not None:
        return state["structured_response"]
    messages = state.get("messages") or []
    if messages and isinstance(last := messages[-1], BaseMessage):
        # A graph may end with a tool's answer, which is then its own (`return_direct`).
        return str(last.text) if isinstance(last, AIMessage | ToolMessage) else None
    for name in ("response", "output"):
        if state.get(name) is not None:
            return state[name]
    raise AgentFailed(
        f"cannot extract a response from the state of graph {graph.name!r}, which has "
        f"{sorted(state)}. Say where it is: LangGraphBackend(graph, output=lambda state: ...)."
    )


def _state_as_json(graph: Graph, values: dict[str, Any]) -> dict[str, Json]:
    return {
        key: plain(jsonable(value), f"state {key!r}")
        for key, value in values.items()
        if _is_state(graph, key) and not _holds_messages(value) and value is not None
    }


def _is_state(graph: Graph, key: str) -> bool:
    """Whether a channel is part of what the author called the state."""
    own = ("__", "branch:", "join:")
    return key in graph.channels and not key.startswith(own) and key != "structured_response"


def _holds_messages(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], BaseMessage)
    return isinstance(value, BaseMessage)
