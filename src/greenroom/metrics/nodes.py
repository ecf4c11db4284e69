"""Did the run come through the nodes of the agent's graph as it should?"""

from collections.abc import Sequence
from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.events import NodeStarted
from greenroom.ledger.ledger import Ledger
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.comparison import MatchType, Sides, checked_match
from greenroom.metrics.options import checked_texts
from greenroom.metrics.outcomes import checked_threshold
from greenroom.metrics.turns import checked_turn, turn_span


class NodeSequence(BuiltIn, frozen=True, kw_only=True):
    """Compares the nodes of a run, or of one turn, with the expected ones."""

    nodes: tuple[str, ...]
    match: MatchType
    turn: int | None
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Outcome:  # noqa: ARG002
        """The share of the nodes that the match type asks for."""
        started = ledger.of(NodeStarted)
        if not started:
            return Unmeasured("the ledger names no nodes: its backend does not record them")
        visited = nodes_visited(started)
        if self.turn is not None:
            span = turn_span(case, ledger, self.turn)
            if span is None:
                return Score(0.0, False, name=self.name, reason=f"turn {self.turn}: never reached")
            visited = [node for node in visited if span[0] <= node.seq < span[1]]
        return self._compared(visited)

    def _compared(self, visited: Sequence[NodeStarted]) -> Score:
        sides = Sides(self.nodes, visited, _is_node, _never, str, _name)
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
    """The run, or one turn of it, came through these agents and steps.

    A node is named by its own name ("clerk") or, where that is not enough, by its place in the graph
    ("seq.1/clerk"). What only holds others (a sequence, a loop) and second tries are left out.
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


def nodes_visited(started: Sequence[NodeStarted]) -> list[NodeStarted]:
    """The agents and steps that were begun, in order; each once, however often it was tried."""
    inner = {place for event in started for place in _holders(event.path)}
    kept = [event for event in started if event.path not in inner]
    return [event for event in kept if "~" not in event.path.rpartition("/")[2]]


def _holders(path: str) -> list[str]:
    """The paths of the nodes that this one may lie in: `@1/seq` for `@1/seq.1/clerk`."""
    above = path.rpartition("/")[0]
    bare = above.rpartition("/")[2]
    return [above, *(above[: above.rindex(mark)] for mark in ".#" if mark in bare)]


def _is_node(wanted: str, node: NodeStarted) -> bool:
    return wanted in (node.node, _name(node))


def _name(node: NodeStarted) -> str:
    return node.node.rpartition("/")[2]


def _never(_wanted: str, _node: NodeStarted) -> bool:
    return False
