"""What an agent is: `Agent`, `tool`, `step`, flow, and the frozen graph they compile to."""

from greenroom.agents.agent import Agent
from greenroom.agents.context import ContextRule, Scene, history, persona
from greenroom.agents.flow import Flow, Step, loop, route, step
from greenroom.agents.graph import Graph, Node, compile_flow
from greenroom.agents.signature import resource
from greenroom.agents.tool import Tool, tool

__all__ = [
    "Agent",
    "ContextRule",
    "Flow",
    "Graph",
    "Node",
    "Scene",
    "Step",
    "Tool",
    "compile_flow",
    "history",
    "loop",
    "persona",
    "resource",
    "route",
    "step",
    "tool",
]
