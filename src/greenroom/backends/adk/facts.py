"""What is known about an agent tree before it runs, and what in it cannot be rehearsed."""

from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any, Final, cast

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.tools import agent_tool
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.example_tool import ExampleTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool, transfer_to_agent

from greenroom.backends.adk.compiled.agents import CompiledAgent
from greenroom.backends.adk.compiled.compiler import is_compiled
from greenroom.backends.adk.compiled.turn import Question
from greenroom.backends.adk.nodes import (
    check_node,
    children_of,
    described_node,
    function_of,
    parameters_of,
)
from greenroom.backends.adk.versions import (
    START,
    BaseNode,
    FinishTaskTool,
    FunctionNode,
    NodeTool,
    ToolNode,
    Workflow,
)
from greenroom.backends.backend import ToolFacts
from greenroom.backends.foreign import Origin, jsonable
from greenroom.backends.seams import real_of
from greenroom.backends.tool_facts import facts_by_schema
from greenroom.errors import BadAgent, NotFound
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json, as_object

# Modules of the agent classes that can be run; some of the classes are deprecated by now.
_RUN = {
    "google.adk.agents.llm_agent",
    "google.adk.agents.sequential_agent",
    "google.adk.agents.parallel_agent",
    "google.adk.agents.loop_agent",
}
# Methods that an agent class must not replace, because the gates rely on the framework's own.
_RELIED_ON = (
    "run_async",
    "_run_impl",
    "_run_async_impl",
    "_llm_flow",
    "canonical_model",
    "canonical_model_async",
    "canonical_tools",
)
# Tools that only control the framework or add to the prompt: they have no side effects.
_CONTROL = (FinishTaskTool, ExampleTool, PreloadMemoryTool, Question)


_DELEGATING = frozenset(
    run.__code__
    for kind in vars(agent_tool).values()
    if isinstance(kind, type)
    and isinstance(run := real_of(vars(kind).get("run_async")), FunctionType)
    and run.__code__.co_filename == agent_tool.__file__
)
"""The framework's code that runs an agent as a tool."""


def root_of(given: Any) -> BaseNode:
    """The root agent, taken out of an App if necessary."""
    root = given
    if isinstance(given, App):
        if given.events_compaction_config is not None:
            raise BadAgent(
                f"app {given.name!r} has an events_compaction_config, whose model would bypass the "
                f"tool gate. Rehearse the app without it."
            )
        root = given.root_agent
    if isinstance(root, BaseAgent | Workflow):
        return root
    raise BadAgent(
        f"a {type(root).__name__} cannot be rehearsed. Pass an LlmAgent, a sequential, parallel "
        f"or loop agent of such, a Workflow, or an App around one."
    )


def part_of(members: Sequence[BaseNode], name: str) -> BaseAgent | Workflow:
    """The agent or node of this name, ready to run alone."""
    found = [member for member in members if member.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(member.name for member in members))
        raise NotFound(f"there is no agent or node {name!r}; there are {names}.")
    if len(found) > 1:
        raise NotFound(f"there are {len(found)} agents or nodes called {name!r}; rename one.")
    one = found[0]
    if isinstance(one, BaseAgent):
        # Without its parent and peers, so that it cannot hand over to them.
        return one.clone()
    if isinstance(one, Workflow):
        return one
    return Workflow(name=f"only_{name}", edges=[(START, one)])


def members_of(root: BaseNode) -> list[BaseNode]:
    """Every agent and node within reach once, inside agent tools too; BadAgent if one cannot be."""
    found: dict[int, BaseNode] = {}
    waiting = [root]
    while waiting:
        member = waiting.pop(0)
        if id(member) in found:
            continue
        found[id(member)] = member
        if isinstance(member, BaseAgent):
            check_agent(member)
            tools = [cast(AgentTool, tool) for _, tool in _tools(member) if is_delegation(tool)]
            waiting += [*member.sub_agents, *(tool.agent for tool in tools)]
        else:
            check_uncompiled(member)
            waiting += children_of(check_node(member))
            if isinstance(member, ToolNode):
                check_tool(member.tool, member.name)
    return list(found.values())


def check_uncompiled(node: BaseNode) -> None:
    """BadAgent if it was compiled from one of our flows, whose parts would look like plain functions here."""
    function = function_of(node) if isinstance(node, FunctionNode) else None
    if isinstance(node, CompiledAgent) or is_compiled(function):
        raise BadAgent(
            f"{node.name!r} was compiled from a flow by to_adk(...). Rehearse the flow itself: it asks, "
            f"calls and answers the same."
        )


_INSTEAD: Final = "Pass a function that runs it with a Runner: its models and tools then go through the tool gate."


def check_agent(agent: BaseAgent) -> BaseAgent:
    """The agent, if all its work can go through the tool gate; BadAgent naming what cannot."""
    kind = type(agent).__name__
    check_uncompiled(agent)
    if not any(cls.__module__ in _RUN for cls in type(agent).__mro__):
        raise BadAgent(
            f"agent {agent.name!r} is a {kind}, whose work cannot go through the tool gate. "
            f"{_INSTEAD}"
        )
    for name in _RELIED_ON:
        owner = next((cls for cls in type(agent).__mro__ if name in vars(cls)), None)
        if owner is not None and not owner.__module__.startswith("google.adk."):
            raise BadAgent(
                f"agent {agent.name!r} is a {kind}, which has its own {name!r}, and that "
                f"would bypass the tool gate. {_INSTEAD}"
            )
    if isinstance(agent, LlmAgent):
        if agent.code_executor is not None:
            raise BadAgent(
                f"agent {agent.name!r} has the code executor {type(agent.code_executor).__name__}, "
                f"which runs code that the tool gate cannot see. Rehearse the agent without it."
            )
        if getattr(agent.model, "use_interactions_api", False):
            raise BadAgent(
                f"the model of agent {agent.name!r} keeps its history at the provider "
                f"(use_interactions_api); a rehearsal needs to see it. Switch that off."
            )
        for tool in given_tools(agent):
            check_tool(tool, agent.name)
    return agent


def is_control(tool: BaseTool) -> bool:
    """Whether a tool only controls the framework."""
    return type(tool) in _CONTROL or (type(tool) is FunctionTool and tool.func is exit_loop)


def is_steering(tool: Any) -> bool:
    """Whether only the framework's own code runs when this tool is called."""
    if "run_async" in getattr(tool, "__dict__", ()):
        return False
    if type(tool) in (FunctionTool, TransferToAgentTool):
        return tool.func is exit_loop or tool.func is transfer_to_agent
    return type(tool) is SetModelResponseTool or type(tool) in _CONTROL


def is_delegation(tool: Any) -> bool:
    """Whether a tool is another agent, run as the framework runs one."""
    if not isinstance(tool, AgentTool) or "run_async" in vars(tool):
        return False
    # Compared by code object: a wrapper may copy every other attribute.
    return getattr(real_of(type(tool).run_async), "__code__", None) in _DELEGATING


def origin_of(given: Any) -> Any:
    """What the author put into the agent's tools, in the form that the World recognises."""
    if isinstance(given, FunctionType):
        return Origin(given)
    if isinstance(given, FunctionTool):
        return Origin(given.func, given)
    if isinstance(given, FunctionNode):
        return Origin(function_of(given), given)
    return given if isinstance(given, BaseTool) else Origin(given)


def as_tool(given: Any) -> BaseTool:
    """The tool the framework makes of what an author gave it."""
    if isinstance(given, BaseNode):
        return NodeTool(given, description=given.description)
    return given if isinstance(given, BaseTool) else FunctionTool(given)


def given_tools(agent: BaseNode) -> list[Any]:
    """What the author put into the agent's tools: functions, tools, toolsets."""
    return cast("list[Any]", getattr(agent, "tools", []))


def tool_facts(member: BaseNode) -> list[ToolFacts]:
    """The tools and function nodes of one member that could act."""
    if isinstance(member, FunctionNode):
        origin = Origin(function_of(member), member)
        return [ToolFacts(member.name, parameters_of(member), origin=origin, takes_more=True)]
    return [
        facts_by_schema(tool.name, _declared(tool), origin_of(given), yields=tool.is_long_running)
        for given, tool in _tools(member)
        if not is_control(tool) and not is_delegation(tool)
    ]


def toolsets_of(member: BaseNode) -> list[BaseToolset]:
    """The toolsets of a member, which list their tools only when asked."""
    return [given for given in given_tools(member) if isinstance(given, BaseToolset)]


def described(root: BaseNode) -> dict[str, Json]:
    """An agent or a workflow, and all below, as JSON."""
    if isinstance(root, BaseAgent):
        return described_agent(root)
    code: list[Json] = []
    for node in members_of(root):
        if isinstance(node, FunctionNode):
            code.append({"name": node.name, "code": code_identity(function_of(node))})
        elif isinstance(node, ToolNode):
            code.append(_described_tool(node.tool))
    return {**described_node(root, described_agent), "code": code}


def described_agent(agent: BaseAgent) -> dict[str, Json]:
    """An agent and all below it as JSON."""
    facts: dict[str, Json] = {
        "name": agent.name,
        "kind": type(agent).__name__,
        "description": agent.description,
    }
    if isinstance(agent, LlmAgent):
        instruction = agent.instruction
        facts |= {
            "model": agent.model if isinstance(agent.model, str) else agent.model.model,
            "instructions": instruction
            if isinstance(instruction, str)
            else code_identity(instruction),
            "tools": [_described_tool(tool) for _, tool in _tools(agent)],
            "toolsets": [type(toolset).__name__ for toolset in toolsets_of(agent)],
        }
    return {**facts, "sub_agents": [described_agent(child) for child in agent.sub_agents]}


def check_tool(tool: Any, owner: str) -> Any:
    """The tool, if its body can be intercepted; BadAgent if it runs elsewhere."""
    if not isinstance(tool, BaseTool):
        if not isinstance(tool, BaseToolset | BaseNode) and not callable(tool):
            raise BadAgent(f"{owner!r} has the tool {tool!r}, which is not a tool of google-adk.")
        return tool
    # A tool without its own run method is only described to the provider, which runs it. A tool that
    # only adds to requests is fine: what it adds is checked when the model is asked.
    kind = type(tool)
    is_bodiless = kind.run_async.__module__ == BaseTool.__module__
    is_own = not kind.process_llm_request.__module__.startswith("google.adk.")
    if is_bodiless and not is_own and not is_control(tool):
        raise BadAgent(
            f"tool {tool.name!r} ({type(tool).__name__}) of {owner!r} runs at the model's provider, "
            f"where the tool gate cannot intercept it. Rehearse with a function tool of that name."
        )
    return tool


def _tools(member: BaseNode) -> Iterator[tuple[Any, BaseTool]]:
    given = [member.tool] if isinstance(member, ToolNode) else given_tools(member)
    for tool in given:
        if not isinstance(tool, BaseToolset):
            yield tool, as_tool(tool)


def _described_tool(tool: BaseTool) -> Json:
    facts: dict[str, Json] = {"name": tool.name, "kind": type(tool).__name__}
    if is_delegation(tool):
        return {**facts, "agent": described_agent(cast(AgentTool, tool).agent)}
    code = tool.func if isinstance(tool, FunctionTool) else type(tool)
    if isinstance(tool, NodeTool) and isinstance(tool.node, FunctionNode):
        code = function_of(tool.node)
    return {
        **facts,
        "description": tool.description,
        "parameters": _declared(tool),
        "code": code_identity(code),
    }


def _declared(tool: BaseTool) -> dict[str, Json]:
    """JSON schema of a tool's arguments, as its model sees it."""
    declaration = tool._get_declaration()  # pyright: ignore[reportPrivateUsage]
    if declaration is None:
        return {}
    if declaration.parameters_json_schema is not None:
        return as_object(jsonable(declaration.parameters_json_schema))
    parameters = declaration.parameters
    return parameters.model_dump(mode="json", exclude_none=True) if parameters else {}
