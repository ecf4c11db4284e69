"""The frozen graph that an expression compiles to: it is run, and recorded in the ledger."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import blake2b

from msgspec import Struct, field, structs

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.context import History
from greenroom.agents.flow import Flow
from greenroom.agents.handoffs import Team, alone, check_team, team_of
from greenroom.agents.remote import Remote
from greenroom.agents.routes import Loop
from greenroom.agents.tools import Tool
from greenroom.errors import BadAgent, NotFound
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import Model
from greenroom.models.named import as_model


class Node(Struct, frozen=True):
    """A place in the graph: its static id, the segment it adds to a path, and what it runs."""

    id: str
    segment: str
    flow: Flow
    children: Mapping[str, "Node"]
    team: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    """For an agent with hand-offs: all agents that may have the conversation here, by their static ids."""


class Graph(Struct, frozen=True, eq=False, dict=True, weakref=True):
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
        flows = [n.flow.leader if isinstance(n.flow, Team) else n.flow for n in found]
        if len({id(flow) for flow in flows}) == 1:
            return alone(flows[0]) if isinstance(flows[0], Agent) else flows[0]
        if found:
            places = ", ".join(node.id for node in found)
            raise NotFound(f"there are several nodes {name!r}: {places}. Name one by its place.")
        places = ", ".join(node.id for node in self.nodes())
        raise NotFound(f"there is no node {name!r} in the agent; its nodes are {places}.")

    @cached_property
    def toolboxes(self) -> tuple[Tool, ...]:
        """Every tool of every agent of the graph; several may have one name."""
        agents = [node.flow for node in self.nodes() if isinstance(node.flow, Agent)]
        return tuple(tool for agent in agents for tool in agent.toolbox)

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """Every tool any agent of the graph may call, by name."""
        return {tool.name: tool for tool in self.toolboxes}

    @cached_property
    def approvals(self) -> dict[str, Approved]:
        """Every approval the user may be asked for, by the name of its wait."""
        guards = [node.flow for node in self.nodes() if isinstance(node.flow, Approved)]
        return {guard.tool: guard for guard in guards}

    @cached_property
    def remotes(self) -> dict[str, Remote]:
        """Every remote agent that the graph asks, by name."""
        flows = [node.flow for node in self.nodes() if isinstance(node.flow, Remote)]
        return {flow.name: flow for flow in flows}

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
    graph = Graph(_node(flow, ""))
    for name in graph.approvals:
        if name in graph.tools:
            raise BadAgent(
                f"there is a tool {name!r} and an approval that is asked for by that name; rename "
                f"the tool, or give the approval another: approved(..., name=...)."
            )
    for node in graph.nodes():
        flow = node.flow
        if not isinstance(flow, Remote):
            continue
        if flow.name in graph.tools or flow.name in graph.approvals:
            raise BadAgent(
                f"the remote agent {flow.name!r} is named like a tool of this agent; mocks would mean "
                f"both. Rename one."
            )
        if graph.remotes[flow.name].facts() != flow.facts():
            raise BadAgent(
                f"there are two remote agents named {flow.name!r} that differ; rename one, since a "
                f"mock is given by the name."
            )
    return graph


def recast(flow: Flow, model: Model | str) -> Flow:
    """The expression with `model` for every agent in it; the original stays as it is."""

    def answered(agent: Agent) -> Agent:
        context = [
            structs.replace(rule, summarise=as_model(model, "the model"))
            if isinstance(rule, History) and rule.summarise is not None
            else rule
            for rule in agent.context
        ]
        return replace(agent, model=model, context=context)

    return with_agents(flow, answered)


def with_agents(flow: Flow, change: Callable[[Agent], Agent]) -> Flow:
    """The expression with what `change` makes of every agent in it; the original stays as it is."""
    parts = {key: with_agents(part, change) for key, part in flow.children().items()}
    changed = flow.with_children(parts) if parts else flow
    return change(changed) if isinstance(changed, Agent) else changed


def _node(flow: Flow, base: str) -> Node:
    if isinstance(flow, Team):
        flow = flow.leader
    if isinstance(flow, Agent) and flow.handoffs:
        return _team(flow, base)
    segment = flow.segment
    here = f"{base}/{segment}" if base else segment
    parts = flow.children().items()
    children = {key: _node(part, f"{here}{flow.joint(key)}") for key, part in parts}
    return Node(here, segment, flow, children)


def _team(leader: Agent, base: str) -> Node:
    """The node of an agent with hand-offs: all agents that may have the conversation are below it."""
    agents = team_of(leader)
    check_team(agents)
    here = f"{base}/{leader.name}" if base else leader.name
    team = {f"{here}/{name}": agent for name, agent in agents.items()}
    members = {a.name: Node(place, a.name, a, {}, team) for place, a in team.items()}
    return Node(here, leader.name, Team(leader), members)


def _facts(node: Node) -> dict[str, Json]:
    facts = {"id": node.id, "kind": node.flow.kind, **node.flow.facts()}
    if node.children:
        facts["parts"] = {key: _facts(child) for key, child in node.children.items()}
    return facts
