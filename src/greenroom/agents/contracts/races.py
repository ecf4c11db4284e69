"""Racing branches whose tools act: a loser is stopped half-way."""

from collections.abc import Iterator

from greenroom.agents.agent import Agent
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given
from greenroom.agents.flow import Flow
from greenroom.agents.graph import Graph
from greenroom.agents.remote import Remote


def check_races(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Tools in a race that are not declared to be read-only."""
    for race in graph.nodes():
        if race.flow.kind != "race":
            continue
        for node in Graph(race).nodes():
            acting = _acting(node.flow)
            if acting:
                yield Issue(
                    "RacingTools",
                    "warning",
                    node.id,
                    "",
                    f"races in {race.id} with {', '.join(acting)}: if another branch wins, a call may "
                    f"have acted all the same, or have been interrupted half-way.",
                    "Declare the tools that only look with @tool(read_only=True), and let the winner act behind the race.",
                )


def _acting(flow: Flow) -> list[str]:
    """The tools of a part that may act; what a remote agent does is not known."""
    if isinstance(flow, Remote):
        return [flow.name]
    tools = flow.toolbox if isinstance(flow, Agent) else ()
    return [tool.name for tool in tools if not tool.read_only and not tool.yields]
