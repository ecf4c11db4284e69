"""Agents: `Agent`, `tool`, `step`, flow, and the frozen graph they compile to.

Code that inspects agents instead of running them is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import approved
from greenroom.agents.boundaries import apart
from greenroom.agents.context import ContextRule, Scene, history, persona
from greenroom.agents.flow import Flow, Step, step
from greenroom.agents.forks import map_over, race
from greenroom.agents.graph import Graph, Node, compile_flow
from greenroom.agents.guards import fallback, tap, timeout
from greenroom.agents.remote import Remote, remote
from greenroom.agents.routes import loop, route
from greenroom.agents.schema import (
    AppScoped,
    Field,
    SchemaConflict,
    SessionScoped,
    StateKeyError,
    StateSchema,
    Temp,
    UserScoped,
    scoped,
)
from greenroom.agents.signature import resource
from greenroom.agents.tools import Tool, tool
from greenroom.agents.transforms import Transform, default, drop, keep, merge, put, rename
from greenroom.lazy import lazy

if TYPE_CHECKING:
    from greenroom.agents.cards import AgentCard, Skill
    from greenroom.agents.contracts import (
        Contracts,
        Edge,
        Given,
        Issue,
        check,
        data_edges,
        register_check,
    )
    from greenroom.agents.costs import Estimate, Traffic, estimate
    from greenroom.agents.streams import by


__all__ = [
    "Agent",
    "AgentCard",
    "AppScoped",
    "ContextRule",
    "Contracts",
    "Edge",
    "Estimate",
    "Field",
    "Flow",
    "Given",
    "Graph",
    "Issue",
    "Node",
    "Remote",
    "Scene",
    "SchemaConflict",
    "SessionScoped",
    "Skill",
    "StateKeyError",
    "StateSchema",
    "Step",
    "Temp",
    "Tool",
    "Traffic",
    "Transform",
    "UserScoped",
    "apart",
    "approved",
    "by",
    "check",
    "compile_flow",
    "data_edges",
    "default",
    "drop",
    "estimate",
    "fallback",
    "history",
    "keep",
    "loop",
    "map_over",
    "merge",
    "persona",
    "put",
    "race",
    "register_check",
    "remote",
    "rename",
    "resource",
    "route",
    "scoped",
    "step",
    "tap",
    "timeout",
    "tool",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "cards": "AgentCard Skill",
        "contracts": "Contracts Edge Given Issue check data_edges register_check",
        "costs": "Estimate Traffic estimate",
        "streams": "by",
    },
)
