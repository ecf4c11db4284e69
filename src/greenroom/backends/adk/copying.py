"""A copy of an agent tree in which every model and every tool goes through the gate."""

import copy
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from greenroom.backends.adk.facts import (
    check_agent,
    given_tools,
    is_control,
    is_delegation,
    origin_of,
)
from greenroom.backends.adk.gates import ModelGate, Stage, ToolGate


class Copier:
    """Copies agents for one advance; an agent met twice is copied once."""

    __slots__ = ("_done", "_made", "_stage")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._done: dict[int, BaseAgent] = {}
        self._made: list[BaseTool] = []

    def agent(self, original: BaseAgent) -> BaseAgent:
        """The gated copy of an agent and of all below it."""
        if id(original) not in self._done:
            check_agent(original)
            changes: dict[str, Any] = {
                "sub_agents": [self.agent(child) for child in original.sub_agents]
            }
            if isinstance(original, LlmAgent):
                changes["model"] = self._model(original)
                changes["tools"] = [self._tool(tool, original) for tool in given_tools(original)]
            self._done[id(original)] = original.clone(update=changes)
        return self._done[id(original)]

    def made(self, tool: BaseTool) -> bool:
        """Whether this very tool object came out of the copying."""
        return any(tool is known for known in self._made)

    def _model(self, agent: LlmAgent) -> Any:
        model = agent.canonical_model
        twin = model.model_copy()
        # Pydantic refuses attributes that are no fields, yet the twin must stay of the model's own
        # type: the framework asks for it.
        gate = ModelGate(self._stage, agent.name, model)
        object.__setattr__(twin, "generate_content_async", gate)
        return twin

    def _tool(self, given: Any, agent: LlmAgent) -> BaseTool:
        tool = given if isinstance(given, BaseTool) else FunctionTool(given)
        if not is_control(tool):
            twin = copy.copy(tool)
            if is_delegation(tool):
                assert isinstance(twin, AgentTool)
                twin.agent = self.agent(twin.agent)
            else:
                twin.run_async = ToolGate(self._stage, agent.name, tool, origin_of(given))
            tool = twin
        self._made.append(tool)
        return tool
