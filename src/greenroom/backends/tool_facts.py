"""What is known about tools before a run: the arguments of each, by its name."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from greenroom.agents.tools import Tool
from greenroom.backends.backend import ToolFacts


def own_facts(tool: Tool) -> ToolFacts:
    """What a case needs to know about a Greenroom tool."""
    return ToolFacts(
        tool.name,
        tool.argument_names,
        tool.read_only,
        tool.yields,
        tool,
        takes_more=_takes_anything(tool.fn),
    )


def facts_by_schema(
    name: str, schema: Mapping[str, Any], origin: Any = None, *, yields: bool = False
) -> ToolFacts:
    """What a case needs to know about a framework's tool, from the JSON schema that its model gets."""
    listed: Mapping[str, Any] | None = schema.get("properties")
    is_open = listed is None or any(schema.get(key) for key in _OPENING)
    takes_more = is_open or _takes_anything(getattr(origin, "fn", origin))
    return ToolFacts(name, tuple(listed or ()), yields=yields, origin=origin, takes_more=takes_more)


_OPENING = ("additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf")
"""Schema keys that allow arguments beyond the named properties."""


def by_name(found: Iterable[ToolFacts]) -> dict[str, ToolFacts]:
    """Tools by name; if several agents have one of the same name, it takes any of their arguments."""
    known: dict[str, ToolFacts] = {}
    for facts in found:
        if (other := known.get(facts.name)) is not None:
            facts = structs.replace(
                facts,
                parameters=tuple(dict.fromkeys((*other.parameters, *facts.parameters))),
                takes_more=other.takes_more or facts.takes_more,
            )
        known[facts.name] = facts
    return known


def _takes_anything(function: Any) -> bool:
    """Whether a function has a parameter such as `**rest`, or cannot be inspected and so might."""
    if not callable(function):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
