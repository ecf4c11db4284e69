"""How a kind of node runs its parts, as far as the state is concerned.

A rule says three things of a node: what the node does to the state (from what its parts do), what is
known of the state where each part begins, and which places the node itself reads.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from greenroom.agents.contracts.access import Read
from greenroom.agents.contracts.effects import NO_EFFECT, Known, Outcome, either, in_turn
from greenroom.agents.contracts.places import Places
from greenroom.agents.graph import Node

Reads = Iterator[tuple[Read, Known]]
"""What is read, and what is known there."""


class Site(Struct, frozen=True):
    """A node, what its parts do to the state, and the places that the graph speaks of."""

    node: Node
    parts: Mapping[str, Outcome]
    places: Places

    @property
    def flow(self) -> Any:
        """What the node runs: of the kind that its rule is for."""
        return self.node.flow


class Rule:
    """What is true of a kind unless its own rule says otherwise: parts are run in turn."""

    def outcome(self, at: Site) -> Outcome:
        """What the node does to the state."""
        left = [effect for part in at.parts.values() for effect in (part.failed, part.done)]
        # It may fail between any two of them, or in the last one, which then has not ended well.
        return Outcome(in_turn(left[1::2]), either([NO_EFFECT, *left[:-1]]))

    def entries(self, at: Site, known: Known) -> dict[str, Known]:
        """What is known where each part begins."""
        found: dict[str, Known] = {}
        for key, part in at.parts.items():
            found[key] = known
            known = known.after(part.done)
        return found

    def reads(self, at: Site, known: Known) -> Reads:  # noqa: ARG002 - most flows read nothing
        """What the node itself looks at, and what is known there."""
        return iter(())
