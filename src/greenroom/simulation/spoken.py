"""What the user of a live conversation receives: replies as they are written, and in the end the whole answer."""

from collections.abc import Callable
from typing import Self

from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.events import (
    AgentSaid,
    BranchCancelled,
    Decided,
    Event,
    ModelFailed,
    NodeEnded,
    NodeFailed,
    Noted,
)
from greenroom.ledger.messages import is_blank
from greenroom.models.model import OnDelta
from greenroom.world.pacer import RETRIED
from greenroom.world.pieces import Taken


class Restarted(str):
    """A piece without words: the pieces before it in this turn do not count, the answer begins again.

    It comes when a model failed in the middle and another one takes over, or when middleware has replaced
    the answer of which pieces were already sent.
    """

    __slots__ = ()

    def __new__(cls) -> Self:
        return super().__new__(cls, "")

    def __repr__(self) -> str:
        return "Restarted()"


class Spoken:
    """Passes on the pieces of a turn, and what was said without pieces, so that the user gets the whole answer.

    `by_parts`: the agent says which of its parts speaks, and that is not always the one whose output
    is the answer. Else the answer is what comes last.
    """

    def __init__(self, on_delta: OnDelta, *, by_parts: bool) -> None:
        self._on_delta = on_delta
        self._by_parts = by_parts
        self._words: list[str] = []
        """The pieces that were sent and still count."""
        self._path = ""
        """Who said it last."""
        self._is_in_reply = False
        self._is_void = False
        """Whether the pieces sent so far no longer count; a `Restarted` is sent once there is something new to send."""
        self._late: list[Taken] = []

    def at(self, path: str, anew: bool = False) -> Callable[[str], Taken]:
        """A function that takes the pieces of another reply from a path; with `anew` it replaces the one before."""
        if anew and path == self._path:
            self._void()
        self._is_in_reply = False

        def take(piece: str) -> Taken:
            given = Taken(*self._give(piece))
            self._path, self._is_in_reply = path, True
            return given

        return take

    def see(self, event: Event) -> None:
        """Notice what makes words void, and what was said without them."""
        match event:
            case ModelFailed() if self._is_in_reply and event.path == self._path:
                self._void()
            case Noted(name=name) if name == RETRIED and self._is_in_reply:
                if event.path == self._path:
                    self._void()
            case NodeFailed() | BranchCancelled() | Decided(choice="next"):
                if f"{self._path}/".startswith(f"{event.path}/"):
                    self._void()
            case NodeEnded() if self._by_parts and event.path == self._path:
                self._settle("" if event.output is None else text_and_attachments(event.output)[0])
            case AgentSaid() if event.voice == "agent":
                if not self._by_parts or not self._words or self._is_void:
                    self._settle(event.text)
                self._words, self._path = [], ""
            case _:
                pass

    async def finish(self) -> None:
        """Wait until all late pieces are taken."""
        for late in self._late:
            await late

    def _void(self) -> None:
        self._is_void = bool(self._words)

    def _settle(self, said: str) -> None:
        """Send what was said, unless it was sent already."""
        words = "".join(self._words)
        if not is_blank(said) and (self._is_void or not words.rstrip().endswith(said.strip())):
            self._void()
            self._late.append(Taken(*self._give(said)))

    def _give(self, piece: str) -> list[object]:
        given: list[object] = []
        if self._is_void:
            self._words, self._is_void = [], False
            given.append(self._on_delta(Restarted()))
        self._words.append(piece)
        return [*given, self._on_delta(piece)]
