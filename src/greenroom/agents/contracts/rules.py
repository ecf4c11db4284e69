"""How each kind of node runs its parts, as far as the state is concerned: one rule for each kind.

A rule gives three things about a node: what the node does to the state (from what its parts do), what is
known about the state where each part begins, and which places the node itself reads. A kind without a rule
may do anything: nothing is sure, in it and after it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.boundaries import Apart
from greenroom.agents.contracts.access import (
    Access,
    Read,
    agent_access,
    decider_reads,
    question_places,
    read_of,
    remote_access,
    step_access,
    tool_access,
    transform_access,
)
from greenroom.agents.contracts.effects import NO_EFFECT, Effect, Known, Outcome, either, in_turn
from greenroom.agents.contracts.places import Places
from greenroom.agents.flow import Fallback, Flow, Parallel, Sequence, Step
from greenroom.agents.forks import MapOver, Race
from greenroom.agents.graph import Node
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.agents.remote import Remote
from greenroom.agents.routes import Loop, Route
from greenroom.agents.streams import hearing_parts
from greenroom.agents.transforms import Transform

Reads = Iterator[tuple[Read, Known]]
"""Reads, each with what is known where it happens."""


class Site(Struct, frozen=True):
    """A node, what its parts do to the state, and the places that the graph mentions."""

    node: Node
    parts: Mapping[str, Outcome]
    places: Places

    @property
    def flow(self) -> Any:
        """The flow of the node, of the kind that its rule is for."""
        return self.node.flow


class Rule:
    """The default rule, which other kinds override: parts are run in turn."""

    def outcome(self, at: Site) -> Outcome:
        """What the node does to the state."""
        left = [effect for part in at.parts.values() for effect in (part.failed, part.done)]
        # It may fail between any two parts, or in the last one, which then has not ended well.
        return Outcome(in_turn(left[1::2]), either([NO_EFFECT, *left[:-1]]))

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """What is known where each part begins."""
        found: dict[str, Known] = {}
        for key, part in at.parts.items():
            found[key] = known
            known = known.after(part.done)
        return found

    def reads(self, at: Site, known: Known) -> Reads:  # noqa: ARG002 - most flows read nothing
        """The places that the node itself reads, and what is known there."""
        return iter(())


class StepRule(Rule):
    """A step changes the state when it ends well, all at once; one that failed has changed nothing."""

    def outcome(self, at: Site) -> Outcome:
        """Its declared writes are there afterwards."""
        return Outcome(at.places.effect(self.access(at), at.node.id))

    def reads(self, at: Site, known: Known) -> Reads:
        """Its declared reads."""
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
    """A remote agent changes the state only by its answer."""

    def access(self, at: Site) -> Access:
        """What is sent to it, and where its answer goes."""
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


class SequenceRule(Rule):
    """Parts are run in turn, but a step that takes pieces begins together with the part that gives them."""

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """Such a step sees the state as it was when the first of them began."""
        hearing = hearing_parts(at.flow)
        found: dict[str, Known] = {}
        begun = known
        for key, part in at.parts.items():
            is_early = hearing.get(key, False) and isinstance(at.node.children[key].flow, Step)
            begun = begun if is_early else known
            found[key] = begun
            known = known.after(part.done)
        return found


class ParallelRule(Rule):
    """Branches begin with the same state, do not see each other, and are merged in their order."""

    def outcome(self, at: Site) -> Outcome:
        """All that the branches did; if one fails, nothing is merged."""
        done = [part.done for part in at.parts.values()]
        whole = in_turn(one.merged for one in done)
        if whole.forgets:
            return Outcome(whole)
        # What one branch puts into an empty place stays, unless another one removes it.
        removed = Counter(place for one in done for place in one.may_drop)
        there = whole.ensures.union(p for one in done for p in one.ensures if not removed[p])
        return Outcome(replace(whole, ensures=there, may_drop=whole.may_drop - there))

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """What is known where the fork begins, for every branch."""
        return dict.fromkeys(at.parts, known)


class RaceRule(Rule):
    """Branches begin with the same state; the winner's changes are merged, those of the others never."""

    def outcome(self, at: Site) -> Outcome:
        """Sure is what every branch does, for any may win; if all fail, nothing is merged."""
        return Outcome(either(part.done for part in at.parts.values()))

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """What is known where the race begins, for every branch; a branch that fails does not fail the run."""
        return dict.fromkeys(at.parts, known.unsure())


class MapRule(Rule):
    """The body runs for each item of a list, which may be empty; items do not see each other."""

    def outcome(self, at: Site) -> Outcome:
        """Nothing is sure; if an item fails, nothing is merged."""
        return Outcome(at.parts["body"].done.perhaps)

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """What is known where the map begins, for every item."""
        return dict.fromkeys(at.parts, known.unsure())

    def reads(self, at: Site, known: Known) -> Reads:
        """The place of the list, if it is in the state."""
        for place in at.flow.reads:
            yield read_of(place, "the list"), known


class LoopRule(Rule):
    """The body runs once or more."""

    def outcome(self, at: Site) -> Outcome:
        """What one round does; one that fails comes after any number of rounds."""
        body = at.parts["body"]
        return Outcome(body.done, body.done.perhaps.then(body.failed).perhaps)

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """A round begins first, or after another one."""
        return {"body": known.repeated(at.parts["body"].done)}

    def reads(self, at: Site, known: Known) -> Reads:
        """What its `until` asks about, after each round."""
        body = at.parts["body"].done
        for read in decider_reads(at.flow.until, "`until`"):
            yield read, known.repeated(body).after(body)


class RouteRule(Rule):
    """One of the branches runs."""

    def outcome(self, at: Site) -> Outcome:
        """Sure is what every branch does."""
        parts = at.parts.values()
        return Outcome(either(part.done for part in parts), either(part.failed for part in parts))

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """What is known where the route begins, for every branch; none is sure to run."""
        return dict.fromkeys(at.parts, known.unsure())

    def reads(self, at: Site, known: Known) -> Reads:
        """The place that decides; without it the run fails, unless there is an `otherwise`."""
        for read in decider_reads(at.flow.on, may_miss=bool(at.flow.otherwise)):
            yield read, known


class ApprovedRule(RouteRule):
    """The guarded part, or the one that runs instead; neither is sure to run."""

    def reads(self, at: Site, known: Known) -> Reads:
        """The places that decide whether to ask, which may be empty, and those that the question mentions."""
        for read in decider_reads(at.flow.when, "`when`"):
            yield read, known
        for place in question_places(at.flow):
            yield Read(place, "the question"), known if at.flow.when is None else known.unsure()


class FallbackRule(Rule):
    """The first part that does not fail; what those before it have done stays."""

    def outcome(self, at: Site) -> Outcome:
        """Sure is what every part does, for any may be the one that does not fail."""
        failed, done = NO_EFFECT, list[Effect]()
        for part in at.parts.values():
            done.append(failed.then(part.done))
            failed = failed.then(part.failed)
        return Outcome(either(done), failed)

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """The first begins at once, each other one after those that failed."""
        found: dict[str, Known] = {}
        for key, part in at.parts.items():
            found[key] = known
            known = known.after(part.failed).unsure()
        return found


class TimeoutRule(Rule):
    """The body as it is, unless it is interrupted."""

    def outcome(self, at: Site) -> Outcome:
        """It may be interrupted at any moment, including the last one."""
        body = at.parts["body"]
        return Outcome(body.done, either([body.failed, body.done]).perhaps)


class TeamRule(Rule):
    """One agent after another has the conversation, in any order; one of them answers."""

    def outcome(self, at: Site) -> Outcome:
        """The agent that hands over leaves only what its tools did; the one that answers writes."""
        tools = self.tools(at)
        return Outcome(tools.then(either(part.done for part in at.parts.values())), tools)

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """The leader begins the first turn; each other one may begin after any of the others."""
        behind = known.after(self.tools(at)).unsure()
        leader, *others = at.parts
        return {leader: known.repeated(self.tools(at)), **dict.fromkeys(others, behind)}

    def tools(self, at: Site) -> Effect:
        """What the tools of all may have done before one of them begins."""
        return in_turn(part.failed.perhaps for part in at.parts.values())


class OpenRule(Rule):
    """A kind that is not known here: it may do anything, in any order, or nothing."""

    def outcome(self, at: Site) -> Outcome:
        """Nothing is sure after it."""
        parts = at.parts.values()
        inside = in_turn(effect.perhaps for part in parts for effect in (part.done, part.failed))
        whole = inside.then(Effect(opaque=frozenset((at.node.id,)), forgets=True))
        return Outcome(whole, whole)

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """Nothing is sure inside it."""
        return dict.fromkeys(at.parts, known.lost(at.node.id))


Rules = Mapping[type[Flow], Rule]

RULES: Rules = {
    Step: StepRule(),
    Transform: TransformRule(),
    Agent: AgentRule(),
    Remote: RemoteRule(),
    Sequence: SequenceRule(),
    Parallel: ParallelRule(),
    Loop: LoopRule(),
    Route: RouteRule(),
    Race: RaceRule(),
    MapOver: MapRule(),
    Fallback: FallbackRule(),
    Timeout: TimeoutRule(),
    Apart: TimeoutRule(),  # its process may die at any moment
    Approved: ApprovedRule(),
    Team: TeamRule(),
}
OPEN = OpenRule()


def rule_for(flow: Flow, rules: Rules = RULES) -> Rule:
    """The rule of a flow's kind, or of the kind that it inherits from; else the open rule."""
    for kind in cast("Iterable[type[Any]]", type(flow).__mro__):
        if kind in rules:
            return rules[kind]
    return OPEN
