"""The frozen graph: what an expression compiles to, what is run, and what a ledger remembers."""

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from greenroom.agents.agent import Agent
from greenroom.agents.flow import Decider, Flow, Loop, Parallel, Route, Sequence, Step
from greenroom.agents.places import written_facts
from greenroom.agents.signature import output_adapter
from greenroom.agents.tool import Tool
from greenroom.errors import BadAgent, NotFound
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import Model, model_name


@dataclass(frozen=True, slots=True)
class Node:
    """A place in the graph: its static id, the segment it adds to a path, and what it runs."""

    id: str
    segment: str
    flow: Flow
    children: Mapping[str, "Node"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A compiled expression."""

    root: Node

    def nodes(self) -> Iterator[Node]:
        """All nodes, parents before children."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(list(node.children.values())))

    def part(self, name: str) -> Flow:
        """The agent, step or flow called `name`, or the one at that static id."""
        found = [node for node in self.nodes() if name in (node.id, node.segment)]
        if len({id(node.flow) for node in found}) == 1:
            return found[0].flow
        if found:
            places = ", ".join(node.id for node in found)
            raise NotFound(f"there are several nodes {name!r}: {places}. Name one by its place.")
        places = ", ".join(node.id for node in self.nodes())
        raise NotFound(f"there is no node {name!r} in the agent; its nodes are {places}.")

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """Every tool any agent of the graph may call, by name."""
        agents = [node.flow for node in self.nodes() if isinstance(node.flow, Agent)]
        return {tool.name: tool for agent in agents for tool in agent.tools}

    @cached_property
    def awaits_input(self) -> bool:
        """Whether the graph holds the conversation itself, in a loop that awaits the user."""
        return any(isinstance(n.flow, Loop) and n.flow.awaits_input for n in self.nodes())

    @cached_property
    def snapshot(self) -> Json:
        """The graph as JSON, for the first event of a ledger."""
        return plain(_facts(self.root))

    @cached_property
    def digest(self) -> str:
        """Changes whenever the snapshot does, or what scripted models answer."""
        agents = [node.flow for node in self.nodes() if isinstance(node.flow, Agent)]
        scripts = [str(getattr(agent.model, "identity", "")) for agent in agents]
        text = json.dumps([self.snapshot, scripts], sort_keys=True)
        return blake2b(text.encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=256)
def compile_flow(flow: Flow) -> Graph:
    """The frozen graph of an expression."""
    return Graph(_node(flow, ""))


def recast(flow: Flow, model: Model | str) -> Flow:
    """The expression with `model` for every agent in it; the original stays as it is."""
    match flow:
        case Agent():
            return replace(flow, model=model)
        case Sequence(parts) | Parallel(parts):
            return type(flow)(tuple(recast(part, model) for part in parts))
        case Loop(body):
            return replace(flow, body=recast(body, model))
        case Route(branches=branches):
            recasted = {key: recast(part, model) for key, part in branches.items()}
            return replace(flow, branches=MappingProxyType(recasted))
        case _:
            return flow


def _node(flow: Flow, base: str) -> Node:
    segment = _segment(flow)
    here = f"{base}/{segment}" if base else segment
    match flow:
        case Sequence(parts) | Parallel(parts):
            children = {str(i): _node(part, f"{here}.{i}") for i, part in enumerate(parts)}
        case Loop(body):
            children = {"body": _node(body, f"{here}#")}
        case Route():
            children = {key: _node(part, f"{here}.{key}") for key, part in flow.branches.items()}
        case _:
            children = {}
    return Node(here, segment, flow, children)


def _segment(flow: Flow) -> str:
    match flow:
        case Agent() | Step():
            return flow.name
        case Sequence():
            return "seq"
        case Parallel():
            return "par"
        case Loop():
            return "loop"
        case Route():
            return "route"
        case _:
            raise BadAgent(f"{flow!r} is no part of a flow that can be run.")


def _facts(node: Node) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": node.id, "kind": type(node.flow).__name__.lower()}
    match node.flow:
        case Agent() as agent:
            adapter = output_adapter(agent.output)
            facts |= {
                "name": agent.name,
                "model": model_name(agent.model),
                "instructions": agent.instructions,
                "tools": [
                    {
                        "name": tool.name,
                        "signature": str(inspect.signature(tool.fn)),
                        "about": tool.description,
                        "yields": tool.yields,
                        **({"reads": list(tool.reads)} if tool.reads else {}),
                        **({"writes": list(tool.writes)} if tool.writes else {}),
                    }
                    for tool in agent.tools
                ],
                "context": [
                    # Our own rules are data, and show it.
                    repr(rule)
                    if type(rule).__module__.startswith("greenroom.")
                    else code_identity(rule)
                    for rule in agent.context
                ],
                "output": None if adapter is None else adapter.json_schema(),
                "limits": [agent.max_steps, agent.retries],
                "writes": written_facts(agent.writes),
            }
        case Step() as step:
            facts |= {
                "name": step.name,
                "code": code_identity(step.fn),
                "retries": step.retries,
                "writes": written_facts(step.writes),
            }
        case Loop() as looped:
            facts |= {
                "until": _decider_facts(looped.until),
                "awaits_input": looped.awaits_input,
                "max_rounds": looped.max_rounds,
            }
        case Route() as routed:
            facts["on"] = _decider_facts(routed.on)
        case _:
            pass
    if reads := getattr(node.flow, "reads", ()):
        facts["reads"] = list(reads)
    if node.children:
        facts["parts"] = {key: _facts(child) for key, child in node.children.items()}
    return facts


def _decider_facts(given: Decider | None) -> object:
    return code_identity(given) if callable(given) else given
