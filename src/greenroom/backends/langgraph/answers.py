"""A graph's answer to its user, found in its last state."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.pregel import Pregel

from greenroom.errors import AgentFailed


def answer_in(result: Any, graph: Pregel[Any, Any, Any, Any]) -> Any:
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
