"""One rule for each kind of node. A kind without one may do anything: nothing is sure, in it and behind it."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.boundaries import Apart
from greenroom.agents.contracts.effects import Effect, Known, Outcome, in_turn
from greenroom.agents.contracts.flow_rules import (
    ApprovedRule,
    FallbackRule,
    LoopRule,
    MapRule,
    ParallelRule,
    RaceRule,
    RouteRule,
    SequenceRule,
    TeamRule,
    TimeoutRule,
)
from greenroom.agents.contracts.leaf_rules import AgentRule, RemoteRule, StepRule, TransformRule
from greenroom.agents.contracts.rule import Rule, Site
from greenroom.agents.flow import Fallback, Flow, Loop, Parallel, Route, Sequence, Step
from greenroom.agents.forks import MapOver, Race
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.agents.remote import Remote
from greenroom.agents.transforms import Transform


class OpenRule(Rule):
    """A kind that is not known here: it may do anything, in any order, or nothing."""

    def outcome(self, at: Site) -> Outcome:
        """Nothing is sure behind it."""
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
    """The rule of a flow's kind, or of the kind that it is made from; else it is open."""
    for kind in cast("Iterable[type[Any]]", type(flow).__mro__):
        if kind in rules:
            return rules[kind]
    return OPEN
