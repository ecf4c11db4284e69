"""Where worker processes are: what the pool needs of a machine or cluster, and of a process there."""

from collections.abc import Callable
from typing import Literal, Protocol

from greenroom.ledger.plain import Json

Presence = Literal["alive", "silent", "dead"]
"""Whether a process is there: `silent` if that cannot be said at the moment."""


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
        """Whether the process is there; to be asked now and then."""
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
    """Whether no trial begins before all workers are there. Where they have to wait for room, trials begin with the first."""

    async def connect(self, count: int | None) -> int:
        """Find the place; how many workers to start there if all of `count`, or as many as it is good for."""
        ...

    def open(self, note: Callable[[str], None]) -> None:
        """Prepare it for the workers of a run; `note` takes what a reader of the report should know."""
        ...

    def hire(self) -> Link:
        """Another worker process, not yet started."""
        ...

    def close(self, *, at_once: bool) -> None:
        """End it, with every process that is left."""
        ...
