"""A copy of an agent tree in which every model and every tool goes through the tool gate."""

import copy
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset

from greenroom.backends.adk.facts import (
    as_tool,
    check_agent,
    check_tool,
    given_tools,
    is_control,
    is_delegation,
    origin_of,
)
from greenroom.backends.adk.gates import Delegation, ModelGate, NoLine, ToolGate
from greenroom.backends.adk.nodes import (
    check_node,
    copied_graph,
    gated_function,
    note_node,
)
from greenroom.backends.adk.run import FrameworkRun
from greenroom.backends.adk.toolsets import ToolsetGate, is_remote, label_of
from greenroom.backends.adk.tripwire import Tripwire
from greenroom.backends.adk.versions import (
    START,
    BaseNode,
    FunctionNode,
    ParallelWorker,
    ToolNode,
    Workflow,
)


class Copier:
    """Copies agents for one advance; an agent met twice is copied once.

    An agent that runs without the app's plug-ins carries the tripwire itself.
    """

    __slots__ = ("_done", "_has_plugins", "_made", "_run", "_toolsets", "tripwire")

    def __init__(self, run: FrameworkRun, has_plugins: bool = False) -> None:
        self._run = run
        self._has_plugins = has_plugins
        self._done: dict[tuple[int, bool], BaseAgent] = {}
        self._made: dict[int, BaseTool] = {}
        self._toolsets: list[ToolsetGate] = []
        self.tripwire = Tripwire(run, self.made)

    def agent(self, original: BaseAgent, plugged: bool = True) -> BaseAgent:
        """The gated copy of an agent and of all below it."""
        key = (id(original), plugged)
        if key not in self._done:
            check_agent(original)
            changes: dict[str, Any] = {
                "sub_agents": [self.agent(child, plugged) for child in original.sub_agents]
            }
            if isinstance(original, LlmAgent):
                changes["model"] = self._model(original)
                changes["tools"] = [self._given(tool, plugged) for tool in given_tools(original)]
            if not plugged:
                changes |= self.tripwire.callbacks_of(original)
            self._done[key] = original.clone(update=changes)
        return self._done[key]

    def node(self, original: BaseNode) -> BaseNode:
        """The gated copy of an agent, a workflow or a node of one."""
        if isinstance(original, BaseAgent):
            return self.agent(original)
        if check_node(original) is START:
            return original
        if isinstance(original, FunctionNode):
            return note_node(gated_function(original, self._run), self._run)
        if isinstance(original, ToolNode):
            tool = self._tool(original.tool, plugged=True, in_graph=True)
            return note_node(original.model_copy(update={"tool": tool}), self._run)
        if isinstance(original, Workflow) and original.graph is not None:
            graph = copied_graph(original.graph, self.node)
            return note_node(original.model_copy(update={"graph": graph}), self._run)
        twin: Any = original.model_copy()
        if isinstance(original, ParallelWorker):
            twin._node = self.node(twin._node)
        return twin

    async def ask_servers(self) -> None:
        """List the tools of servers before anything runs, where the case allows it."""
        for gate in self._toolsets:
            if is_remote(gate.toolset):
                await gate.ask_server()

    def made(self, tool: BaseTool) -> bool:
        """Whether this very tool object was made by the copier."""
        return self._made.get(id(tool)) is tool

    def _model(self, agent: LlmAgent) -> Any:
        model = agent.canonical_model
        twin = model.model_copy()
        # Pydantic refuses attributes that are not fields, but the copy must keep the model's own type,
        # because the framework checks it.
        gate = ModelGate(self._run, agent.name, model)
        object.__setattr__(twin, "generate_content_async", gate)
        object.__setattr__(twin, "connect", NoLine(self._run, agent.name))
        return twin

    def _given(self, given: Any, plugged: bool) -> Any:
        """The gated copy of what an author put into the agent's tools."""
        if not isinstance(given, BaseToolset):
            return self._tool(given, plugged)
        twin: Any = copy.copy(given)

        def gated(tool: BaseTool) -> BaseTool:
            return self._tool(check_tool(tool, f"toolset {label_of(given)}"), plugged)

        twin.get_tools_with_prefix = gate = ToolsetGate(self._run, given, gated)
        self._toolsets.append(gate)
        return twin

    def _tool(self, given: Any, plugged: bool, in_graph: bool = False) -> BaseTool:
        tool = as_tool(given)
        if not is_control(tool):
            twin = copy.copy(tool)
            if is_delegation(tool):
                assert isinstance(twin, AgentTool)
                twin = self._delegation(twin, plugged)
            else:
                twin.run_async = ToolGate(self._run, tool, origin_of(given), in_graph)
            tool = twin
        self._made[id(tool)] = tool
        return tool

    def _delegation(self, tool: AgentTool, plugged: bool) -> AgentTool:
        if type(tool).run_async is AgentTool.run_async:
            # It runs in its own session. Without plug-ins of the app there is only the tripwire to
            # inherit, and the copy carries that itself.
            plugged = plugged and tool.include_plugins and self._has_plugins
            tool.include_plugins = plugged
        tool.agent = self.agent(tool.agent, plugged)
        # The framework itself runs a task; its tool only starts it.
        if not getattr(tool, "_defers_response", False):
            inner = copy.copy(tool)
            tool.run_async = Delegation(self._run, inner)
        return tool
