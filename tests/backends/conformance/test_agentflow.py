"""Graphs with `ainvoke` pass the suite, as far as anybody can see into them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from greenroom.backends.agentflow import GraphBackend
from greenroom.testing import BackendConformance, Blueprint, Bypass, Hang, Structured


@dataclass
class Graph:
    """A graph written by hand, in place of a framework's."""

    plan: Blueprint

    async def ainvoke(self, state: dict[str, Any], config: dict[str, Any]) -> Any:
        line = self.plan.lines[sum(m["role"] == "assistant" for m in state["messages"])]
        if isinstance(line, Hang):
            await asyncio.Event().wait()
        if isinstance(line, Exception):
            raise line
        return SimpleNamespace(response=line.value if isinstance(line, Structured) else line)


class AgentflowHarness:
    backend = GraphBackend

    def build(self, plan: Blueprint) -> Any:
        return GraphBackend(Graph(plan), config={"instructions": plan.instructions})

    async def run_bare(self, agent: Any, says: str) -> None:
        await agent.graph.ainvoke({"messages": [{"role": "user", "content": says}]}, {})

    def bypasses(self) -> Mapping[str, Bypass]:
        return {}


class TestAgentflow(BackendConformance):
    harness = AgentflowHarness()
