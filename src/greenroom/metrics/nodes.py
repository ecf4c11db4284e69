"""Did the trial pass through the nodes of the agent's graph as it should?"""

from collections.abc import Sequence
from typing import ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.events import ModelCalled, NodeStarted, ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.metrics.builtin import BuiltIn, checked_texts, checked_threshold, written
from greenroom.metrics.comparison import MatchType, Sides, checked_match
from greenroom.metrics.needs import NODES, Needs
from greenroom.metrics.node_state import NO_NODES
from greenroom.metrics.turns import checked_turn, turn_span
from greenroom.world.world import World


class NodeSequence(BuiltIn, frozen=True, kw_only=True):
    """Compares the nodes of a trial, or of one turn, with the expected ones."""

    needs: ClassVar[Needs] = NODES
    nodes: tuple[str, ...]
    match: MatchType
    turn: int | None
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The share of the nodes that the match type asks for."""
        started = ledger.of(NodeStarted)
        if not started:
            return Unmeasured(NO_NODES)
        visited = nodes_visited(
            started, {event.path for event in ledger.of(ModelCalled, ToolCalled)}
        )
        if self.turn is not None:
            span = turn_span(case, ledger, self.turn)
            if span is None:
                return Score(0.0, False, name=self.name, reason=f"turn {self.turn}: never reached")
            visited = [node for node in visited if span[0] <= node.seq < span[1]]
        sides = Sides(
            self.nodes,
            visited,
            fits=lambda wanted, node: wanted in (node.node, _name(node)),
            alike=lambda _wanted, _node: False,
            show_wanted=str,
            show_made=_name,
        )
        value, found = sides.share(self.match), sides.difference()
        return Score(
            value,
            threshold=self.threshold,
            name=self.name,
            reason="as expected" if value == 1 else "; ".join(found.problems(self.match)),
            evidence=found.lines(),
            details={
                "match_type": self.match.name,
                "expected": list(self.nodes),
                "actual": found.made,
                "missing": found.missing,
                "extra": found.extra,
                "misplaced": found.misplaced,
            },
        )


def node_sequence(
    nodes: Sequence[str],
    match_type: MatchType | str = "EXACT",
    *,
    turn: int | None = None,
    threshold: float = 1.0,
    name: str = "node_sequence",
) -> NodeSequence:
    """The trial, or one turn of it, passed through these agents and steps.

    A node is named by its own name ("clerk") or, where that is not enough, by its path in the graph
    ("seq.1/clerk"). Nodes that only hold others (a sequence, a loop) and retries are left out.
    """
    match = checked_match(match_type, "node_sequence")
    wanted = checked_texts(nodes, "nodes", "node_sequence")
    if not wanted:
        raise BadMetric("node_sequence([]) expects no nodes at all; name some.")
    checked_threshold(threshold, "node_sequence(...)")
    return NodeSequence(
        nodes=wanted,
        match=match,
        turn=checked_turn(turn, "node_sequence"),
        threshold=threshold,
        **written(
            "node_sequence",
            list(wanted),
            match.name,
            turn=turn,
            threshold=None if threshold == 1 else threshold,
            name=name,
        ),
    )


def nodes_visited(started: Sequence[NodeStarted], at_work: set[str]) -> list[NodeStarted]:
    """The agents and steps that were started, in order; each once, however often it was retried.

    One that holds others is left out, unless it asked a model itself: then its path is in `at_work`.
    """
    holders: set[str] = set()
    for event in started:
        # The node that this one may be in: `@1/seq` for `@1/seq.1/clerk`.
        above = event.path.rpartition("/")[0]
        bare = above.rpartition("/")[2]
        holders |= {above, *(above[: above.rindex(mark)] for mark in ".#" if mark in bare)}
    kept = [event for event in started if event.path not in holders or event.path in at_work]
    return [event for event in kept if "~" not in event.path.rpartition("/")[2]]


def _name(node: NodeStarted) -> str:
    return node.node.rpartition("/")[2]
