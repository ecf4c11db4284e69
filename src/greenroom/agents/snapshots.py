"""Reading an agent's snapshot, whichever backend it is from."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

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
    """The texts in a list, if it is one."""
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


def as_facts(value: Any) -> Facts:
    """A part as facts; what is no mapping is a name."""
    return cast("Facts", value) if isinstance(value, Mapping) else {"name": str(value)}
