"""The run that a hook is called in."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

from msgspec import Struct

from greenroom.errors import BadInput
from greenroom.ledger.events import Noted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import Json
from greenroom.world.call_context import stored_run
from greenroom.world.world import World


class Run(Struct, frozen=True):
    """The run that a hook is called in."""

    _world: World
    backend: str = ""
    """The backend of its agent: "native", "google-adk"."""
    judged: Ledger | None = None
    """The ledger of the trial that is being measured, while judges are running."""

    @property
    def ledger(self) -> Ledger:
        """Its ledger: what has happened so far."""
        return self._world.ledger

    @property
    def run_id(self) -> str:
        """Its id."""
        return self._world.run_id

    @property
    def stored_as(self) -> str:
        """The run of the store that its trial belongs to; empty if there is none."""
        return stored_run()

    @property
    def voice(self) -> Voice | Literal["judge"]:
        """Whose calls these are: the agent's, its simulated user's, or a judge's."""
        return self._world.voice if self.judged is None else "judge"

    def now(self) -> float:
        """Seconds since the epoch by its clock, which a case may set."""
        return self._world.now()

    def note(self, name: str, data: Json = None, path: str = "") -> None:
        """Write a note into its ledger."""
        self._world.record(Noted(path=path, name=name, data=data))


_RUN: Final = ContextVar["Run | None"]("greenroom_middleware_run", default=None)


def current_run() -> Run:
    """The run whose hook or context manager is running here."""
    run = _RUN.get()
    if run is None:
        raise BadInput("current_run() was called outside of a run; call it in a hook.")
    return run


def run_var() -> "ContextVar[Run | None]":
    """The context variable that holds the run while a hook is running."""
    return _RUN


@contextmanager
def outside_hooks() -> Generator[None]:
    """Mark work that a hook waits for, but does not do itself."""
    token = _RUN.set(None)
    try:
        yield
    finally:
        _RUN.reset(token)
