"""What is known about an agent before it runs, and what in it cannot be rehearsed."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, cast

from msgspec import structs
from pydantic_ai import Agent, output, toolsets
from pydantic_ai.models import Model
from pydantic_ai.output import NativeOutput, PromptedOutput, TextOutput, ToolOutput
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    ExternalToolset,
    FilteredToolset,
    FunctionToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    WrapperToolset,
)

from greenroom.backends.backend import ToolFacts
from greenroom.backends.foreign import Origin
from greenroom.backends.tool_facts import facts_by_schema
from greenroom.errors import BadAgent
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json

# Not every version has choices that run an action.
_ACTIONS: Final[Any] = getattr(output, "_ChoicesActions", None)


def check_agent(agent: Any) -> Agent[Any, Any]:
    """The agent, if all its work can go through the tool gate; BadAgent naming what cannot."""
    if not isinstance(agent, Agent):
        raise BadAgent(
            f"a {type(agent).__name__} cannot be rehearsed, because what it wraps bypasses the "
            f"tool gate. Pass the pydantic_ai.Agent inside."
        )
    known = cast("Agent[Any, Any]", agent)
    for name in ("run", "iter"):
        owner = next(cls for cls in type(known).__mro__ if name in vars(cls))
        # Compared by the class itself, because its names can be copied.
        if owner not in Agent.__mro__:
            raise BadAgent(
                f"agent {name_of(known)!r} is a {type(known).__name__}, which has its own "
                f"{name}(), and that would bypass the tool gate."
            )
    kinds = native_kinds(getattr(known, "_cap_native_tools", ()))
    if kinds:
        raise BadAgent(
            f"agent {name_of(known)!r} has the native tools {', '.join(kinds)}, which run at the model's "
            f"provider, where the tool gate cannot intercept them. Rehearse with function tools."
        )
    return known


def check_model(agent: Agent[Any, Any]) -> None:
    """Refuse a model whose `request` was set on the object: the World would never be asked."""
    override: Any = getattr(agent, "_override_model", None)
    given: Any = override.get() if override is not None else None
    model: Any = agent.model if given is None else given.value
    for name in ("request", "request_stream"):
        if isinstance(model, Model) and name in vars(model):
            raise BadAgent(
                f"the model of agent {name_of(agent)!r} has a {name}() that was set on the object, "
                f"which would bypass the tool gate. Define it in a model class, or use a "
                f"FunctionModel."
            )


def native_kinds(tools: Iterable[Any]) -> list[str]:
    """Native tools that could act; finding a tool's definition is not acting."""
    kinds = [str(getattr(tool, "kind", type(tool).__name__)) for tool in tools]
    return [kind for kind in kinds if kind != "tool_search"]


def name_of(agent: Agent[Any, Any]) -> str:
    """The agent's name in ledgers."""
    return agent.name or "agent"


def tool_facts(agent: Agent[Any, Any]) -> dict[str, ToolFacts] | None:
    """Every tool and output function by its name for the model; None if they cannot be known."""
    found: dict[str, ToolFacts] = {}
    for toolset in agent.toolsets:
        known = _listed(toolset)
        if known is None:
            return None
        changes = getattr(agent, "_prepare_tools", None) is not None or _is_prepared(toolset)
        for name, tool in known.items():
            facts = _tool_fact(name, tool)
            takes_more = changes or facts.takes_more or getattr(tool, "prepare", None) is not None
            found[name] = structs.replace(facts, takes_more=takes_more)
    for part in output_parts(agent.output_type):
        if inspect.isroutine(part):
            name, parameters = part.__name__, inspect.signature(part).parameters.values()
            names = tuple(p.name for p in parameters if "RunContext" not in str(p.annotation))
            found[name] = ToolFacts(name, names, origin=Origin(part), takes_more=True)
        choices = _ACTIONS.of(part) if _ACTIONS is not None else None
        for action in choices.values.values() if choices else ():
            if callable(action):
                name = action_name(action)
                found[name] = ToolFacts(name, (), origin=Origin(action), takes_more=True)
    return found


def action_name(action: Any) -> str:
    """The name under which the World is asked about a choice's action: its function's."""
    while isinstance(action, partial):
        action = cast("partial[Any]", action).func
    return getattr(action, "__name__", None) or type(action).__name__


def described_agent(agent: Agent[Any, Any]) -> dict[str, Json]:
    """The agent as JSON."""
    parts = ("_system_prompts", "_system_prompt_functions", "_instructions")
    instructions = [given for name in parts for given in getattr(agent, name, ())]
    model = agent.model
    return {
        "name": name_of(agent),
        "model": model if isinstance(model, str) or model is None else model.model_name,
        "instructions": [_identity(given) for given in instructions],
        "output": [_identity(part) for part in output_parts(agent.output_type)],
        "tools": [_described_toolset(toolset) for toolset in agent.toolsets],
    }


def _listed(toolset: AbstractToolset[Any]) -> dict[str, Any] | None:
    """Tools by their name for the model, as far as the framework's own toolsets list them."""
    kind = type(toolset)
    # The tools of a class with its own way to list them are known only when it runs.
    if "get_tools" in vars(toolset) or _lists(kind) not in _LISTING:
        return None
    if isinstance(toolset, FunctionToolset):
        return dict(toolset.tools)
    if isinstance(toolset, ExternalToolset):
        return {known.name: known for known in toolset.tool_defs}
    if isinstance(toolset, CombinedToolset):
        listed = [_listed(inner) for inner in toolset.toolsets]
        if any(known is None for known in listed):
            return None
        return {name: tool for known in listed for name, tool in (known or {}).items()}
    if isinstance(toolset, WrapperToolset):
        inner = _listed(toolset.wrapped)
        if isinstance(toolset, PrefixedToolset):
            return inner and {f"{toolset.prefix}_{name}": tool for name, tool in inner.items()}
        if isinstance(toolset, RenamedToolset):
            new_names = {old: new for new, old in toolset.name_map.items()}
            return inner and {new_names.get(name, name): tool for name, tool in inner.items()}
        return inner
    return None


def _is_prepared(toolset: AbstractToolset[Any]) -> bool:
    """Whether the author's code may change the tools' parameters when they are listed."""
    if isinstance(toolset, CombinedToolset):
        return any(map(_is_prepared, toolset.toolsets))
    if isinstance(toolset, WrapperToolset):
        return isinstance(toolset, PreparedToolset) or _is_prepared(toolset.wrapped)
    return False


def _lists(kind: type) -> object:
    return next((vars(cls)["get_tools"] for cls in kind.__mro__ if "get_tools" in vars(cls)), None)


_LISTING: Final = {
    _lists(kind)
    for kind in (
        *(FunctionToolset, ExternalToolset, CombinedToolset, WrapperToolset),
        *(PrefixedToolset, RenamedToolset, FilteredToolset, PreparedToolset),
        # The wrapper around a capability's tools, in versions that wrap them.
        getattr(getattr(toolsets, "_capability_owned", None), "CapabilityOwnedToolset", object),
    )
}
"""The functions with which the framework's toolsets list their tools."""


def _tool_fact(name: str, tool: Any) -> ToolFacts:
    function = getattr(tool, "function", None)
    origin = None if function is None else Origin(function, tool)
    return facts_by_schema(name, _schema(tool), origin, yields=function is None)


def _schema(tool: Any) -> dict[str, Json]:
    known = getattr(tool, "tool_def", tool)
    return known.parameters_json_schema


def output_parts(spec: Any) -> Iterator[Any]:
    """The types and functions an output type is made of."""
    if isinstance(spec, NativeOutput | PromptedOutput):
        yield from output_parts(cast("Any", spec).outputs)
    elif isinstance(spec, ToolOutput):
        yield cast("Any", spec).output
    elif isinstance(spec, TextOutput):
        yield cast("Any", spec).output_function
    elif isinstance(spec, list | tuple):
        for part in cast("Sequence[Any]", spec):
            yield from output_parts(part)
    else:
        yield spec


def _described_toolset(toolset: AbstractToolset[Any]) -> Json:
    known = _listed(toolset)
    if known is None:
        return {"kind": type(toolset).__name__}
    return [_described_tool(name, tool) for name, tool in known.items()]


def _described_tool(name: str, tool: Any) -> Json:
    facts: dict[str, Json] = {
        "name": name,
        "description": tool.description or "",
        "parameters": _schema(tool),
    }
    function = getattr(tool, "function", None)
    if function is None:
        return facts
    return facts | {"approval": tool.requires_approval, "code": code_identity(function)}


def _identity(given: Any) -> str:
    """An instruction or an output type as text that changes when it does."""
    given = getattr(given, "instruction", getattr(given, "function", given))
    if isinstance(given, str):
        return given
    return code_identity(given) if callable(given) else repr(given)
