"""One rule for each kind of node. A kind without one may do anything: nothing is sure, in it and behind it."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.contracts.effects import Effect, Known, Outcome, in_turn
from greenroom.agents.contracts.flow_rules import (
    ApprovedRule,
    FallbackRule,
    LoopRule,
    MapRule,
    ParallelRule,
    RaceRule,
    RouteRule,
    TimeoutRule,
)
from greenroom.agents.contracts.leaf_rules import AgentRule, StepRule, TransformRule
from greenroom.agents.contracts.places import Places
from greenroom.agents.contracts.rule import Outcomes, Rule
from greenroom.agents.flow import Fallback, Flow, Loop, Parallel, Route, Sequence, Step
from greenroom.agents.forks import MapOver, Race
from greenroom.agents.graph import Node
from greenroom.agents.guards import Timeout
from greenroom.agents.transforms import Transform


class OpenRule(Rule):
    """A kind that is not known here: it may do anything, in any order, or nothing."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """Nothing is sure behind it."""
        inside = in_turn(e.perhaps for part in parts.values() for e in (part.done, part.failed))
        anything = Effect(opaque=frozenset((node.id,)), forgets=True)
        whole = inside.then(anything)
        return Outcome(whole, whole)

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:  # noqa: ARG002
        """Nothing is sure inside it."""
        return dict.fromkeys(node.children, known.lost(node.id))


Rules = Mapping[type[Flow], Rule]

RULES: Rules = {
    Step: StepRule(),
    Transform: TransformRule(),
    Agent: AgentRule(),
    Sequence: Rule(),
    Parallel: ParallelRule(),
    Loop: LoopRule(),
    Route: RouteRule(),
    Race: RaceRule(),
    MapOver: MapRule(),
    Fallback: FallbackRule(),
    Timeout: TimeoutRule(),
    Approved: ApprovedRule(),
}
OPEN = OpenRule()


def rule_for(flow: Flow, rules: Rules = RULES) -> Rule:
    """The rule of a flow's kind, or of the kind that it is made from; else it is open."""
    for kind in cast("Iterable[type[Any]]", type(flow).__mro__):
        if kind in rules:
            return rules[kind]
    return OPEN
