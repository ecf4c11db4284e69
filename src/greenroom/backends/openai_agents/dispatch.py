"""The framework's seams, put in by the first rehearsal that needs them.

Which tools an agent has and which model it asks is decided anew in every turn, at two places. Both
ask whether the running context belongs to a rehearsal; where it does not, everything is as it was.
"""

import functools
from collections.abc import Callable
from typing import Any

from agents.agent import AgentBase
from agents.run_config import RunConfig
from agents.run_internal import run_loop
from agents.tracing.provider import DefaultTraceProvider

from agents import FunctionTool
from greenroom.backends.openai_agents.facts import model_name, unheld_part
from greenroom.backends.openai_agents.gates import MARK, GatedModel, gated_tool
from greenroom.backends.openai_agents.stage import STAGE
from greenroom.errors import ToolRefused

Call = Callable[..., Any]

_installed: list[bool] = []


def install() -> None:
    """Put the seams in, once."""
    if not _installed:
        _installed.append(True)
        AgentBase.get_all_tools = _tools_seam(AgentBase.get_all_tools)
        run_loop.get_model = _model_seam(run_loop.get_model)
        traced = DefaultTraceProvider.create_trace
        DefaultTraceProvider.create_trace = _trace_seam(traced)


def _tools_seam(real: Call) -> Call:
    @functools.wraps(real)
    async def get_all_tools(self: Any, run_context: Any) -> list[Any]:
        stage = STAGE.get()
        if stage is None:
            return await real(self, run_context)
        if why := unheld_part(self, stage.live_servers):
            raise stage.invocation.keep(ToolRefused(why))
        found = stage.settled.get(self)
        if found is None:
            found = await real(self, run_context)
            stage.settled.put(self, found)
        return [
            gated_tool(stage, tool)
            if isinstance(tool, FunctionTool) and MARK not in tool.__dict__
            else tool
            for tool in found
        ]

    return get_all_tools


def _model_seam(real: Call) -> Call:
    @functools.wraps(real)
    def get_model(agent: Any, run_config: RunConfig) -> Any:
        stage = STAGE.get()
        if stage is None:
            return real(agent, run_config)
        name = model_name(run_config.model if run_config.model is not None else agent.model)
        return GatedModel(stage, agent.name, name, lambda: real(agent, run_config))

    return get_model


def _trace_seam(real: Call) -> Call:
    """Traces would be sent to their collector by a thread of the framework's own."""

    @functools.wraps(real)
    def create_trace(self: Any, *args: Any, **given: Any) -> Any:
        if STAGE.get() is not None:
            given["disabled"] = True
            args = args[:4]
        return real(self, *args, **given)

    return create_trace
