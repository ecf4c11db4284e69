"""What is known about an agent before it runs, and what in it cannot be rehearsed."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportPrivateUsage=false

import inspect
from collections.abc import Sequence
from typing import Any, cast

from agents import Agent, FunctionTool, Handoff
from greenroom.backends.backend import ToolFacts
from greenroom.backends.foreign import jsonable
from greenroom.backends.openai_agents.gates import is_delegation, origin_of
from greenroom.backends.tool_facts import by_name, facts_by_schema
from greenroom.errors import BadAgent
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json

_RELIED_ON = ("get_all_tools", "get_mcp_tools")


def agents_of(root: Any, live_servers: Sequence[object]) -> list[Agent[Any]]:
    """Every agent within reach once, handed over to or used as a tool; BadAgent if one cannot be."""
    if not isinstance(root, Agent):
        raise BadAgent(f"a {type(root).__name__} cannot be rehearsed. Pass an agents.Agent.")
    found: dict[int, Agent[Any]] = {}
    waiting: list[Any] = [root]
    while waiting:
        agent = waiting.pop(0)
        if id(agent) in found or not isinstance(agent, Agent):
            continue
        if why := unheld_part(agent, live_servers):
            raise BadAgent(why)
        found[id(agent)] = agent
        for given in cast("list[Any]", agent.handoffs):
            # An agent that a handoff creates later is checked when it runs.
            reference = getattr(given, "_agent_ref", None)
            waiting.append(reference() if isinstance(given, Handoff) and reference else given)
        waiting += [tool._agent_instance for tool in _tools(agent) if is_delegation(tool)]
    return list(found.values())


def unheld_part(agent: Any, live_servers: Sequence[object]) -> str:
    """Why an agent cannot go through the tool gate; "" if it can."""
    kind = type(agent)
    if kind.__module__.startswith(("agents.sandbox", "agents.realtime")):
        return f"agent {agent.name!r} is a {kind.__name__}, whose work the tool gate cannot see."
    for name in () if kind is Agent else _RELIED_ON:
        if getattr(kind, name) is not getattr(Agent, name):
            return (
                f"agent {agent.name!r} is a {kind.__name__}, which has its own {name}(), and that "
                f"would bypass the tool gate."
            )
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool):
            return unheld_tool(agent, tool)
    for server in agent.mcp_servers:
        if not any(server is live for live in live_servers):
            return (
                f"agent {agent.name!r} has the MCP server {server.name!r}, which even listing its "
                f"tools would call. Name it: OpenAIAgentsBackend(agent, live_servers=[server])."
            )
    if getattr(agent, "prompt", None) is not None:
        return (
            f"agent {agent.name!r} has a prompt that lives at its model's provider, where tools "
            f"may run unseen. Give it instructions instead."
        )
    return ""


def unheld_tool(agent: Any, tool: object) -> str:
    """Why a tool that is no function tool cannot be called."""
    return f"agent {agent.name!r} has a {type(tool).__name__}, {_UNHELD}"


def unheld_call(tool: Any) -> str:
    """Why code cannot call a tool that is no function tool."""
    return f"{tool.name!r} is a {type(tool).__name__}, {_UNHELD}"


_UNHELD = "which runs where the tool gate cannot intercept it. Rehearse with a function tool of that name."


def tool_facts(agents: Sequence[Agent[Any]]) -> dict[str, ToolFacts] | None:
    """Every tool that could act; None if a server lists its own only when it is asked."""
    if any(agent.mcp_servers for agent in agents):
        return None
    return by_name(
        facts_by_schema(tool.name, tool.params_json_schema, origin_of(tool))
        for agent in agents
        for tool in _tools(agent)
        if not is_delegation(tool)
    )


def described_agent(agent: Agent[Any]) -> dict[str, Json]:
    """An agent as JSON; others are named."""
    return {
        "name": agent.name,
        "model": model_name(agent.model),
        "instructions": _identity(agent.instructions),
        "output": _identity(agent.output_type),
        "tools": [_described_tool(tool) for tool in _tools(agent)],
        "handoffs": [
            given.agent_name if isinstance(given, Handoff) else given.name
            for given in cast("list[Any]", agent.handoffs)
        ],
        "guardrails": [
            code_identity(rail.guardrail_function)
            for rail in (*agent.input_guardrails, *agent.output_guardrails)
        ],
    }


def model_name(model: Any) -> str:
    """A model's name in ledgers; the framework's default model has no name here."""
    if model is None or isinstance(model, str):
        return model or "default"
    named: Any = getattr(model, "model", None) or getattr(model, "name", None)
    return named if isinstance(named, str) else type(model).__name__


def _tools(agent: Agent[Any]) -> list[FunctionTool]:
    return [tool for tool in agent.tools if isinstance(tool, FunctionTool)]


def _described_tool(tool: FunctionTool) -> Json:
    facts: dict[str, Json] = {"name": tool.name, "description": tool.description}
    if is_delegation(tool):
        return facts | {"agent": tool._agent_instance.name}
    behind = origin_of(tool).fn
    code = behind if inspect.isroutine(behind) else type(behind)
    return facts | {
        "parameters": jsonable(tool.params_json_schema),
        "approval": tool.needs_approval is not False,
        "code": code_identity(code),
    }


def _identity(given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    return code_identity(given) if callable(given) else repr(given)
