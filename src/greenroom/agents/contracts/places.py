"""Places of the state, and what nodes that declare them do to it."""

from greenroom.agents.contracts.access import Access
from greenroom.agents.contracts.effects import NO_EFFECT, Effect


def above_place(place: str) -> list[str]:
    """The places that contain this one: `session.order` for `session.order.id`."""
    parts = place.split(".")
    return [".".join(parts[:length]) for length in range(2, len(parts))]


class Places:
    """Every place that the graph reads or its starting state has."""

    def __init__(self, found: frozenset[str]) -> None:
        self.all = found
        self._nested = [place for place in found if place.count(".") > 1]

    def below(self, place: str) -> frozenset[str]:
        """The places inside this one."""
        return frozenset(one for one in self._nested if one.startswith(f"{place}."))

    def in_scope(self, scope: str) -> frozenset[str]:
        """The places of a scope."""
        return frozenset(one for one in self.all if one.startswith(f"{scope}."))

    def effect(self, access: Access, node: str) -> Effect:
        """What a node with this access does to the state when it has ended well."""
        opaque = frozenset((node,)) if access.writes_anything else frozenset[str]()
        if not (
            access.writes or access.ensures or access.may_write or access.drops or access.clears
        ):
            return Effect(opaque=opaque) if opaque else NO_EFFECT
        gone = self._gone(access)
        sets = frozenset(p for place in access.writes for p in (place, *above_place(place)))
        there = sets.union(p for place in access.ensures for p in (place, *above_place(place)))
        inside = frozenset(p for place in access.writes for p in self.below(place)) - there
        # Places inside one that is written as a whole may be there afterwards, or may not.
        may_set = dict.fromkeys((*there, *inside, *access.may_write), frozenset((node,)))
        left = gone.difference(may_set)
        return Effect(sets, there, may_set, left, (gone | inside) - there, opaque)

    def _gone(self, access: Access) -> frozenset[str]:
        gone = frozenset(p for drop in access.drops for p in (drop, *self.below(drop)))
        kept = {
            place
            for read in access.reads
            for place in (read.place, *above_place(read.place), *self.below(read.place))
        }
        return gone.union(*(self.in_scope(scope) - kept for scope in access.clears))
