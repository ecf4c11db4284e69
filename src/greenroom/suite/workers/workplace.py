"""Where worker processes run: what the pool needs from a machine or cluster, and from a process there."""

from collections.abc import Callable
from typing import Literal, Protocol

from greenroom.ledger.plain import Json

Presence = Literal["alive", "silent", "dead"]
"""Whether a process is there: `silent` if that is unknown at the moment."""


class Link(Protocol):
    """One worker process, and the lines between it and its parent. Nothing is written to a dead one."""

    async def open(self, briefing: Json) -> None:
        """Start the process and send it its briefing; WorkerDied if it cannot be started."""
        ...

    async def readline(self) -> bytes:
        """The next line of the process; empty when there are no more."""
        ...

    def write(self, line: bytes) -> None:
        """Send a line."""
        ...

    def presence(self, now: float) -> Presence:
        """Whether the process is there; called every now and then."""
        ...

    def kill(self) -> None:
        """End the process at once."""
        ...

    async def ended(self) -> tuple[str, bool]:
        """How it ended, once it has, and whether it was lost together with its machine."""
        ...

    async def close(self) -> None:
        """Free all that is held for it; the process has ended, or is killed."""
        ...


class Workplace(Protocol):
    """Where worker processes are started."""

    starts_together: bool
    """Whether trials begin only when all workers are there; where workers wait for room, they begin with the first."""

    async def connect(self, count: int | None) -> int:
        """Find the place; returns how many workers to start there: `count`, or the usual number for the place."""
        ...

    def open(self, note: Callable[[str], None]) -> None:
        """Prepare it for the workers of a run; `note` adds a note to the report."""
        ...

    def hire(self) -> Link:
        """Another worker process, not yet started."""
        ...

    def close(self, *, at_once: bool) -> None:
        """End it, with every process that is left."""
        ...
