"""Parts that may cost money without limit."""

from collections.abc import Iterator

from greenroom.agents.agent import Agent
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given
from greenroom.agents.graph import Graph
from greenroom.agents.routes import Loop


def check_budgets(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Loops without a limit of their own, and models chosen by a budget that was not given."""
    for node in graph.nodes():
        flow = node.flow
        if isinstance(flow, Loop) and flow.until is not None and flow.max_rounds is None:
            limit = "any number of" if flow.awaits_input else "100"
            yield Issue(
                "NoLimit",
                "note" if flow.awaits_input else "warning",
                node.id,
                "",
                f"goes up to {limit} rounds if its `until` never holds.",
                "Give it max_rounds=.",
            )
        model: object = flow.model if isinstance(flow, Agent) else None
        if getattr(model, "by", "") == "budget" and getattr(model, "budget", None) is None:
            yield Issue(
                "NoBudget",
                "error",
                node.id,
                "",
                "chooses its model by a budget, but has none.",
                "Give choose(..., budget=) the dollars that a run may cost.",
            )
