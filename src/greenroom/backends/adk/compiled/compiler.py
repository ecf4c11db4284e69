"""Makes a node of google-adk for each node of a graph."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from google.adk.events import Event

from greenroom.agents.agent import Agent
from greenroom.agents.flow import Flow, Step
from greenroom.agents.graph import Node
from greenroom.backends.adk.compiled.layout import Layout
from greenroom.backends.adk.compiled.past import given_of
from greenroom.backends.adk.compiled.visit import Visit
from greenroom.backends.adk.versions import BaseNode, Context, FunctionNode
from greenroom.ledger.plain import Json

START = "START"
Made = Callable[["Compiler", Node, str], BaseNode]
Events = AsyncGenerator[Event, None]
Act = Callable[[Visit, Json], Events]
"""What a node does, given the output before it."""


class Compiler:
    """Makes a node of google-adk for every node of a graph."""

    def __init__(self, kinds: Mapping[type[Flow], Made]) -> None:
        self.layout = Layout()
        self._kinds = kinds

    def part(self, node: Node, joint: str, *, counts: bool = False) -> BaseNode:
        """The node of this part; `joint` is what joins it to the path of the node around it."""
        flow = node.flow
        wanted = node.segment if isinstance(flow, Agent | Step) else flow.kind
        name = self.layout.place(node, joint, wanted=wanted, counts=counts)
        return self._kinds[type(flow)](self, node, name)

    def children(self, node: Node) -> dict[str, BaseNode]:
        """The parts of a node by their keys."""
        return {key: self.part(one, f".{key}") for key, one in node.children.items()}

    def code(self, wanted: str, node: Node, act: Act, *, name: str = "") -> FunctionNode:
        """A node that runs code of ours for this part."""
        layout = self.layout

        async def run(ctx: Context, node_input: Any) -> Events:
            async for event in act(Visit(layout, node, ctx), given_of(node_input)):
                yield event

        return FunctionNode(func=run, name=name or layout.name(wanted), rerun_on_resume=True)


def is_compiled(function: object) -> bool:
    """Whether a node with this function was made from a part of a flow."""
    return getattr(function, "__module__", None) == __name__
