"""The rules of nodes that do something: steps, transforms, agents here and elsewhere."""

from greenroom.agents.contracts.access import (
    Access,
    agent_access,
    decider_reads,
    remote_access,
    step_access,
    tool_access,
    transform_access,
)
from greenroom.agents.contracts.effects import Effect, Known, Outcome, in_turn
from greenroom.agents.contracts.rule import Reads, Rule, Site


class StepRule(Rule):
    """A step changes the state when it ends well, all at once; one that failed has changed nothing."""

    def outcome(self, at: Site) -> Outcome:
        """What it declares to write is there."""
        return Outcome(at.places.effect(self.access(at), at.node.id))

    def reads(self, at: Site, known: Known) -> Reads:
        """What it declares to read."""
        for read in self.access(at).reads:
            yield read, known

    def access(self, at: Site) -> Access:
        """What it does with the state."""
        return step_access(at.flow)


class TransformRule(StepRule):
    """A transform changes the state as it declares, and removes from it too."""

    def access(self, at: Site) -> Access:
        """All that it does."""
        return transform_access(at.flow)


class RemoteRule(StepRule):
    """An agent elsewhere changes the state only by its answer."""

    def access(self, at: Site) -> Access:
        """What it is sent, and where its answer goes."""
        return remote_access(at.flow)


class AgentRule(Rule):
    """An agent calls tools as its model likes, again and again, and then answers."""

    def outcome(self, at: Site) -> Outcome:
        """Its answer is surely written; what its tools did stays even if it fails."""
        tools = self.tools(at)
        return Outcome(tools.then(at.places.effect(agent_access(at.flow), at.node.id)), tools)

    def reads(self, at: Site, known: Known) -> Reads:
        """What it is shown whenever its model is asked, and what each tool looks at."""
        agent, tools = at.flow, self.tools(at)
        for read in agent_access(agent).reads:
            yield read, known.repeated(tools)
        for read in decider_reads(getattr(agent.model, "promote", None), "`promote`"):
            yield read, known.after(tools)
        for tool in agent.toolbox:
            for read in tool_access(tool).reads:
                yield read, known.after(tools).unsure()

    def tools(self, at: Site) -> Effect:
        """What its tools may do, any number of times."""
        return in_turn(
            at.places.effect(tool_access(tool), at.node.id).perhaps for tool in at.flow.toolbox
        )
