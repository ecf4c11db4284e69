"""Other forks than `a | b`: a race, and one flow over every item of a list."""

from typing import Any

from greenroom.agents.flow import OnePart, Parts, as_flow
from greenroom.agents.places import declared_places
from greenroom.errors import BadAgent


class Race(Parts, frozen=True, eq=False):
    """Side by side on the same input; the first to end counts, and the others are stopped."""

    @property
    def segment(self) -> str:
        """`par`, as for every fork."""
        return "par"

    def __repr__(self) -> str:
        return f"race({', '.join(map(repr, self.parts))})"


def race(*parts: object) -> Race:
    """Run all parts on the same input; the first answer counts, and the rest is stopped.

    A part that fails leaves the race; if all do, the race fails with every reason. A part that waits
    for the user has not won: the race waits when all do. The other parts' changes to the state are
    dropped; their tools may have acted all the same.
    """
    if not parts:
        raise BadAgent("race() has nothing to run; give it agents, steps or flows.")
    return Race(tuple(as_flow(part) for part in parts))


class MapOver(OnePart, frozen=True, eq=False):
    """One flow for each item of a list: a list in, a list out, in its order."""

    over: str = ""
    at_once: int = 4

    @property
    def kind(self) -> str:
        """Its kind in a snapshot is the name of the function."""
        return "map_over"

    @property
    def segment(self) -> str:
        """`par`, as for every fork; `par.3` is its fourth item."""
        return "par"

    @property
    def reads(self) -> tuple[str, ...]:
        """The place of the list, if it is in the state."""
        return (self.over,) if self.over else ()

    def joint(self, key: str) -> str:  # noqa: ARG002 - it has one part
        """The same for every item."""
        return ".*"

    def facts(self) -> dict[str, Any]:
        """Where its list is, and how many items run at once."""
        return {"over": self.over, "at_once": self.at_once}

    def __repr__(self) -> str:
        over = f", {self.over!r}" if self.over else ""
        return f"map_over({self.body!r}{over}, at_once={self.at_once})"


def map_over(body: object, over: object = "", *, at_once: int = 4) -> MapOver:
    """Run `body` for each item of a list, `at_once` at a time; its outputs are a list in that order.

    The list is the input, or what is in the state at the place `over` ("key", "scope.key" or a field
    of a schema). Each item has its own state, and sees nothing of the others; the states merge
    in the order of the list when all are done. An empty list gives an empty list.
    """
    if type(at_once) is not int or at_once < 1:
        raise BadAgent(f"map_over(at_once={at_once!r}) runs nothing; give a number from 1.")
    places = declared_places(over, "map_over(over=...)")
    if len(places) > 1:
        raise BadAgent(f"map_over(over=...) takes one place, but got {', '.join(places)}.")
    return MapOver(as_flow(body), "".join(places), at_once)
