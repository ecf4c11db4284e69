"""Reading an agent's snapshot, whichever backend it is from."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from greenroom.ledger.identity import code_name

Facts = Mapping[str, Any]
"""What a snapshot says about a node."""

_PARTS = ("parts", "sub_agents")


def parts_of(facts: Facts) -> dict[str, Facts]:
    """The parts of a node by their keys, or by their places in a list."""
    for name in _PARTS:
        match facts.get(name):
            case {**parts}:
                return {str(key): as_facts(part) for key, part in parts.items()}
            case [*parts]:
                return {str(key): as_facts(part) for key, part in enumerate(parts)}
            case _:
                continue
    return {}


def called_in(facts: Facts) -> str:
    """The name of an agent; a flow has no name, so its parts' names are joined: `triage-clerk`."""
    if isinstance(name := facts.get("name"), str) and name:
        return name
    return "-".join(filter(None, map(called_in, parts_of(facts).values())))[:80]


def tools_of(given: Any) -> Iterator[str]:
    """The names of tools, which some snapshots group by toolset."""
    match given:
        case str():
            yield given
        case {"name": name} | {"kind": name}:
            yield str(name)
        case [*tools]:
            for tool in tools:
                yield from tools_of(tool)
        case _:
            return


def texts_in(given: Any) -> list[str]:
    """The strings in a list, if it is one."""
    match given:
        case [*names]:
            return [name for name in names if isinstance(name, str)]
        case _:
            return []


def members_in(facts: Facts) -> Iterator[str]:
    """The ids of all agents that may hand the conversation over."""
    for part in parts_of(facts).values():
        if facts.get("kind") == "team":
            yield str(part.get("id"))
        yield from members_in(part)


def names_in(facts: Facts) -> set[str]:
    """The names of the agents and nodes that a snapshot describes."""
    found = {str(facts.get("name", "")), str(facts.get("id", "")).rpartition("/")[2]}
    found.update(texts_in(facts.get("handoffs")), texts_in(facts.get("subgraphs")))
    match facts.get("nodes"):
        case {**nodes}:
            found.update(map(str, nodes))
        case _:
            pass
    listed = facts.get("agents")
    agents = map(as_facts, cast("list[object]", listed)) if isinstance(listed, list) else ()
    parts = [*parts_of(facts).values(), *agents, *_agents_in_tools(facts.get("tools"))]
    return found.union(*map(names_in, parts)) - {"", "__start__"}


def _agents_in_tools(given: Any) -> Iterator[Facts]:
    """The agents that an agent calls as tools."""
    match given:
        case {"agent": agent}:
            yield as_facts(agent)
        case [*tools]:
            for tool in tools:
                yield from _agents_in_tools(tool)
        case _:
            return


def names_all(facts: Facts) -> bool:
    """Whether a snapshot describes every agent and node that may have the conversation."""
    if "framework" not in facts:
        return "kind" in facts
    if "nodes" in facts:
        return not facts.get("subgraphs")
    return "sub_agents" in facts or "agents" in facts


def as_facts(value: object) -> Facts:
    """A part as facts; what is not a mapping is a name."""
    return cast("Facts", value) if isinstance(value, Mapping) else {"name": str(value)}


def purpose_of(facts: Facts) -> str:
    """What a structure does, in words: `route on intent`; "" for other nodes."""
    match facts.get("kind"):
        case "route":
            return f"route on {decider_of(facts.get('on'))}"
        case "loop":
            until, limit = facts.get("until"), facts.get("max_rounds")
            words = f"until {decider_of(until)}" if until is not None else "loop"
            return words if limit is None else f"{words}, at most {limit} rounds"
        case "timeout":
            seconds = facts.get("seconds")
            return f"within {seconds:g} s" if isinstance(seconds, int | float) else "within"
        case "apart":
            return f"apart: {_started_by(facts)}"
        case "map_over":
            return f"each of {facts['over']}" if facts.get("over") else "each item"
        case "approved":
            return decider_of(facts.get("question") or "approved?")
        case _:
            return ""


def _started_by(facts: Facts) -> str:
    command: Any = facts.get("command") or [facts.get("isolation", "")]
    return str(command[0])


def decider_of(given: object) -> str:
    """What decides a route, in words: a place in the state, a query, or the name of a function."""
    return (code_name(given) or given) if isinstance(given, str) else str(given)
