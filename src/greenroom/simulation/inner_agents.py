"""Agents of frameworks that come alive inside a case: in its functions, steps, tools, mocks, users."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from greenroom.ledger.messages import Voice
from greenroom.simulation.gate import RehearsalWorld
from greenroom.world.visits import Visits

_SIDE: ContextVar[Voice] = ContextVar("greenroom_side", default="agent")


class Visitors:
    """The hosts of one case, one for each voice, made when the first visitor comes."""

    __slots__ = ("_hosts", "_world")

    def __init__(self, world: RehearsalWorld) -> None:
        self._world = world
        self._hosts: dict[Voice, Visits] = {}

    def host(self) -> Visits:
        """Who answers the visitors of the side that is at work here."""
        side = _SIDE.get()
        found = self._hosts.get(side)
        if found is None:
            world = self._world if side == "agent" else self._world.with_voice(side)
            found = self._hosts.setdefault(side, Visits(world))
        return found

    @contextmanager
    def of_the_user(self) -> Generator[None]:
        """Whoever comes alive in here belongs to the user's side."""
        token = _SIDE.set("user")
        try:
            yield
        finally:
            _SIDE.reset(token)

    def check(self) -> None:
        """Raise what broke for a visitor, though the code around it may have swallowed that."""
        for visits in self._hosts.values():
            if visits.broke is not None:
                raise visits.broke
