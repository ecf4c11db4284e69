"""Names: placeholders that are not declared, and names that two things share."""

import inspect
import re
from collections.abc import Iterator

from greenroom.agents.agent import Agent
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.nearest import edits
from greenroom.agents.contracts.walk import Given
from greenroom.agents.graph import Graph, Node
from greenroom.agents.tools import Tool

_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_.]*)\}(?!\})")


def check_names(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Placeholders without a declared read, agents that share a name, tools that share one and differ."""
    agents: dict[str, Node] = {}
    tools: dict[str, tuple[Tool, str]] = {}
    for node in graph.nodes():
        if not isinstance(node.flow, Agent):
            continue
        yield from _placeholders(node, node.flow)
        first = agents.setdefault(node.flow.name, node)
        if first.flow is not node.flow:
            yield Issue(
                "SameName",
                "warning",
                node.id,
                "",
                f"is another agent than {first.id}, but both are named {node.flow.name!r}.",
                "Rename one; models, reports and prices tell them apart by name.",
            )
        for tool in node.flow.toolbox:
            known, where = tools.setdefault(tool.name, (tool, node.id))
            if known is not tool and _signature(known) != _signature(tool):
                yield Issue(
                    "SameName",
                    "warning",
                    node.id,
                    "",
                    f"has a tool {tool.name}{_signature(tool)}, but {where} has {known.name}{_signature(known)}.",
                    "Rename one: mocks and expectations name a tool only once.",
                )


def _signature(tool: Tool) -> str:
    return str(inspect.signature(tool.fn))


def _placeholders(node: Node, agent: Agent) -> Iterator[Issue]:
    """Words in braces that look like a key of the state, but will not be replaced."""
    declared = {name for place in agent.reads for name in (place, place.partition(".")[2])}
    for name in dict.fromkeys(_PLACEHOLDER.findall(agent.instructions)):
        if name in declared:
            continue
        near = min(declared, key=lambda known: edits(name, known), default="")
        if near and edits(name, near) <= max(1, len(name) // 3):
            severity, fix = "warning", f"Did you mean {{{near}}}?"
        else:
            severity, fix = (
                "note",
                f"Declare it with reads={name!r}, or leave it if that is intended.",
            )
        yield Issue(
            "UndeclaredPlaceholder",
            severity,
            node.id,
            "",
            f"says {{{name}}} in its instructions, which is not among its reads and stays as it is.",
            fix,
        )
