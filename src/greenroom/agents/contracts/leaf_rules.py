"""The rules of nodes that do something: steps, transforms and agents."""

from typing import cast

from greenroom.agents.agent import Agent
from greenroom.agents.contracts.access import (
    agent_access,
    decider_reads,
    step_access,
    tool_access,
    transform_access,
)
from greenroom.agents.contracts.effects import Effect, Known, Outcome, in_turn
from greenroom.agents.contracts.places import Places
from greenroom.agents.contracts.rule import Outcomes, Reads, Rule
from greenroom.agents.flow import Step
from greenroom.agents.graph import Node
from greenroom.agents.transforms import Transform


class StepRule(Rule):
    """A step changes the state when it ends well, all at once."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """What it declares to write is there; one that failed has changed nothing."""
        return Outcome(places.effect(step_access(cast("Step", node.flow)), node.id))

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """What it declares to read."""
        for read in step_access(cast("Step", node.flow)).reads:
            yield read, known


class TransformRule(Rule):
    """A transform changes the state as it declares."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """What it writes is there, and what it removes is gone; one that failed has done nothing."""
        return Outcome(places.effect(transform_access(cast("Transform", node.flow)), node.id))

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """What it takes from the state."""
        for read in transform_access(cast("Transform", node.flow)).reads:
            yield read, known


class AgentRule(Rule):
    """An agent calls tools as its model likes, again and again, and then answers."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """Its answer is surely written; what its tools did stays even if it fails."""
        tools = self._tools(node, places)
        own = places.effect(agent_access(cast("Agent", node.flow)), node.id)
        return Outcome(tools.then(own), tools)

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """What it is shown whenever its model is asked, and what each tool looks at."""
        agent, tools = cast("Agent", node.flow), self._tools(node, places)
        for read in agent_access(agent).reads:
            yield read, known.repeated(tools)
        for read in decider_reads(getattr(agent.model, "promote", None), "`promote`"):
            yield read, known.after(tools)
        for tool in agent.tools:
            for read in tool_access(tool).reads:
                yield read, known.after(tools).unsure()

    def _tools(self, node: Node, places: Places) -> Effect:
        agent = cast("Agent", node.flow)
        return in_turn(places.effect(tool_access(t), node.id).perhaps for t in agent.tools)
