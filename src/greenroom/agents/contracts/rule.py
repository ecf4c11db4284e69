"""How a kind of node runs its parts, as far as the state is concerned.

A rule says three things of a node: what the node does to the state (from what its parts do), what is
known of the state where each part begins, and which places the node itself reads.
"""

from collections.abc import Iterator, Mapping

from greenroom.agents.contracts.access import Read
from greenroom.agents.contracts.effects import NO_EFFECT, Known, Outcome, either, in_turn
from greenroom.agents.contracts.places import Places
from greenroom.agents.graph import Node

Outcomes = Mapping[str, Outcome]
Reads = Iterator[tuple[Read, Known]]


class Rule:
    """What is true of a kind unless its own rule says otherwise: parts are run in turn."""

    def outcome(self, node: Node, parts: Outcomes, places: Places) -> Outcome:  # noqa: ARG002
        """What the node does to the state."""
        left = [effect for part in parts.values() for effect in (part.failed, part.done)]
        # It may fail between any two of them, or in the last one, which then has not ended well.
        return Outcome(in_turn(left[1::2]), either([NO_EFFECT, *left[:-1]]))

    def entries(self, node: Node, known: Known, parts: Outcomes) -> dict[str, Known]:
        """What is known where each part begins."""
        found: dict[str, Known] = {}
        for key in node.children:
            found[key] = known
            known = known.after(parts[key].done)
        return found

    def reads(self, node: Node, known: Known, parts: Outcomes, places: Places) -> Reads:  # noqa: ARG002
        """What the node itself looks at, and what is known there."""
        return iter(())
