"""What a node may do to the state, and what is known about the state where a node begins.

Effects are combined as the interpreter runs nodes: one after another (`then`), or one of several
(`either`). They do not depend on where a node is, so each is computed once.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

from msgspec import Struct

Places = frozenset[str]
Writers = Mapping[str, frozenset[str]]
"""By place, the nodes that may have written what is there."""

NOWHERE: Places = frozenset()


class Effect(Struct, frozen=True):
    """What a node does to the state."""

    sets: Places = NOWHERE
    """Surely written here, and there afterwards."""
    ensures: Places = NOWHERE
    """Surely there afterwards: what is written here, and what fills empty places."""
    may_set: Writers = {}
    """Possibly written here, with the nodes that may have been the last to do so."""
    drops: Places = NOWHERE
    """Surely gone afterwards."""
    may_drop: Places = NOWHERE
    """Possibly gone afterwards."""
    opaque: Places = NOWHERE
    """Nodes that may have written anything, because they do not declare what they write."""
    forgets: bool = False
    """Whether what was known before no longer holds."""

    def then(self, other: "Effect") -> "Effect":
        """This, and after it the other."""
        gone = self.ensures if other.forgets else other.may_drop
        return Effect(
            (self.sets - gone) | other.sets,
            (self.ensures - gone) | other.ensures,
            _overwritten(self.may_set, other),
            self.drops.difference(other.may_set) | other.drops,
            (self.may_drop - other.ensures) | other.may_drop,
            self.opaque | other.opaque,
            self.forgets or other.forgets,
        )

    @property
    def perhaps(self) -> "Effect":
        """This any number of times, or not at all."""
        return Effect(
            may_set=self.may_set,
            may_drop=self.may_drop,
            opaque=self.opaque,
            forgets=self.forgets,
        )

    @property
    def merged(self) -> "Effect":
        """This effect in a branch with its own state, merged with the other branches.

        Only what was written or removed is merged: nothing is put where something was, nor removed
        where nothing was, and another branch may have done something else.
        """
        return Effect(
            self.sets,
            self.sets,
            self.may_set,
            may_drop=self.may_drop | self.drops,
            opaque=self.opaque,
            forgets=self.forgets,
        )


NO_EFFECT = Effect()


def either(effects: Iterable[Effect]) -> Effect:
    """One of these, and it is not known which."""
    first, *others = effects
    return Effect(
        first.sets.intersection(*(one.sets for one in others)),
        first.ensures.intersection(*(one.ensures for one in others)),
        reduce(_merged, (one.may_set for one in others), first.may_set),
        first.drops.intersection(*(one.drops for one in others)),
        first.may_drop.union(*(one.may_drop for one in others)),
        first.opaque.union(*(one.opaque for one in others)),
        first.forgets or any(one.forgets for one in others),
    )


def in_turn(effects: Iterable[Effect]) -> Effect:
    """One after another."""
    return reduce(Effect.then, effects, NO_EFFECT)


class Outcome(Struct, frozen=True):
    """The effects of a node: when it has ended well, and when it failed or was interrupted."""

    done: Effect = NO_EFFECT
    failed: Effect = NO_EFFECT


class Known(Struct, frozen=True):
    """What is known about the state at one point of the graph, whenever the run gets there."""

    surely: Places = NOWHERE
    possibly: Writers = {}
    """What may be there at the first visit, with the nodes that may have written it."""
    opaque: Places = NOWHERE
    """Earlier nodes that may have written anything."""
    later: Writers = {}
    """What may be there at a second visit: in a later round of a loop, or a later turn."""
    later_opaque: Places = NOWHERE
    is_reached: bool = True
    """Whether every first turn gets here, unless something fails before."""

    def after(self, effect: Effect) -> "Known":
        """What is known after a node with this effect."""
        kept = NOWHERE if effect.forgets else self.surely - effect.may_drop
        over = effect.sets | effect.drops
        return Known(
            kept | effect.ensures,
            _overwritten(self.possibly, effect),
            self.opaque | effect.opaque,
            {place: writers for place, writers in self.later.items() if place not in over},
            self.later_opaque,
            self.is_reached,
        )

    def repeated(self, effect: Effect) -> "Known":
        """What is known at the beginning of something with this effect that may run again after it."""
        return Known(
            NOWHERE if effect.forgets else self.surely - effect.may_drop,
            self.possibly,
            self.opaque,
            _merged(self.later, effect.may_set),
            self.later_opaque | effect.opaque,
            self.is_reached,
        )

    def unsure(self) -> "Known":
        """What is known here, at a point that not every first turn gets to."""
        return Known(
            self.surely, self.possibly, self.opaque, self.later, self.later_opaque, is_reached=False
        )

    def lost(self, node: str) -> "Known":
        """What is known after `node`, which may have done anything."""
        opaque = self.opaque | {node}
        return Known(NOWHERE, self.possibly, opaque, self.later, self.later_opaque, False)


def _overwritten(before: Writers, effect: Effect) -> Writers:
    """The nodes that may have written what is there, after an effect on top of `before`."""
    if not effect.may_set and not effect.drops:
        return before
    over = effect.sets | effect.drops
    found = {place: writers for place, writers in before.items() if place not in over}
    return _merged(found, effect.may_set)


def _merged(one: Writers, other: Writers) -> Writers:
    if not one or not other:
        return one or other
    found = dict(one)
    for place, writers in other.items():
        found[place] = found[place] | writers if place in found else writers
    return found
