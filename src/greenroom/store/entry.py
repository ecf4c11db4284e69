"""The journal of trials in progress: their events as lines, and which of them must be written at once.

Each database has its own kind, which decides where the lines are kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar, cast

from greenroom.errors import StoreFailed
from greenroom.ledger.codec import encoded_lines, json_of
from greenroom.ledger.events import (
    Event,
    ModelFailed,
    ModelReplied,
    Remembered,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.store.cut_trials import AGENT, JUDGE, TRIAL, CutTrial
from greenroom.store.failpoints import failpoint
from greenroom.store.runs import Key

Settled = Callable[[StoreFailed | None], None]
"""Called in any thread: with None once everything is on disk, or with the reason why it cannot be."""

# Written at once: what was paid for, is about to act, or came to rest; and real tools that acted.
_URGENT = {ModelReplied, ModelFailed, ToolCalled, Remembered}
_RETURNED = {ToolReturned, ToolFailed}


class Recorded:
    """The events of one side of a trial, encoded as lines when they go to the file."""

    __slots__ = ("fresh", "lines", "mark")

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.fresh: list[Event] = []
        self.lines: list[bytes] = []
        """The written lines, in the groups they were written in."""

    def written_out(self) -> bytes:
        """The lines of the events that were not yet written out, for the file."""
        fresh = self.fresh.copy()
        del self.fresh[: len(fresh)]  # what another thread has added in the meantime stays
        lines = encoded_lines(fresh)
        self.lines.append(lines)
        return self._marked(lines)

    def _marked(self, lines: bytes) -> bytes:
        # JSON escapes line breaks in strings, so each one here ends a line.
        return self.mark + lines[:-1].replace(b"\n", b"\n" + self.mark) + b"\n"

    def again(self) -> bytes:
        """All lines for the file, from the beginning."""
        return b"".join(map(self._marked, self.lines))

    def count(self) -> int:
        """How many lines were written out."""
        return sum(lines.count(b"\n") for lines in self.lines)

    def whole(self) -> bytes:
        """Everything, as JSON lines."""
        if self.fresh:
            self.lines.append(encoded_lines(self.fresh))
            self.fresh.clear()
        return b"".join(self.lines)

    def forget(self) -> None:
        self.fresh, self.lines = [], []


class TrialEntry(ABC):
    """The journal entry of one trial in progress."""

    __slots__ = ("_about", "_agent", "_judge", "_title", "_writing", "is_frozen")

    def __init__(self) -> None:
        self._agent = Recorded(AGENT)
        self._judge = Recorded(JUDGE)
        self._about: dict[str, Json] = {}
        self._title = b""
        self._writing = Lock()  # tools may be called in threads
        self.is_frozen = False

    def begin(self, key: Key, digest: str) -> None:
        """Use this entry for that trial now."""
        self._about = {"case_id": key.case_id, "trial": key.trial, "digest": digest}
        self._title = title(self._about)
        failpoint("journal.opened")

    @abstractmethod
    def restore(self, ledger: Ledger, judging: Ledger) -> bool:
        """Record what an earlier process had recorded; return whether it is safe now."""

    @abstractmethod
    def settle(self, tell: Settled) -> None:
        """Call `tell` when everything recorded is on disk, or with the reason why no tool may act."""

    def _write_again(self, ledger: Ledger, judging: Ledger) -> None:
        """Write what an earlier process had recorded."""
        self._agent.fresh += ledger
        self._judge.fresh += judging
        # The title says how much there is: a part of it would be mistaken for a shorter trial.
        self._title = title({**self._about, "lines": len(ledger) + len(judging)})
        self._write()

    def agent(self, event: Event) -> None:
        """Record an event of the trial."""
        self._agent.fresh.append(event)
        if type(event) in _URGENT or (type(event) in _RETURNED and _has_acted(event)):
            self._write()

    def judge(self, event: Event) -> None:
        """Record an event of its metrics."""
        self._judge.fresh.append(event)
        if type(event) in _URGENT or (type(event) in _RETURNED and _has_acted(event)):
            self._write()

    @abstractmethod
    def _write(self) -> None:
        """Write the waiting lines to where they are safe."""

    def _written_out(self) -> bytes:
        """The lines that are waiting to be written."""
        sides = (self._agent, self._judge)
        named, self._title = self._title, b""
        return named + b"".join([recorded.written_out() for recorded in sides if recorded.fresh])

    @property
    def ledger(self) -> bytes:
        """The trial's events as JSON lines."""
        return self._agent.whole()

    @property
    def judging(self) -> bytes:
        """The metrics' events as JSON lines."""
        return self._judge.whole()

    def forget(self) -> None:
        """Drop the lines from memory: the writer has them now. Those that were written stay."""
        self._agent.forget()
        self._judge.forget()


E = TypeVar("E", bound=TrialEntry)


class RunJournal(ABC, Generic[E]):
    """The journal of one run's trials in progress, written by one process at a time."""

    def __init__(self) -> None:
        self.attempt = 1
        """Which process works on the run: each one that resumes it has a higher number."""
        self.fail: Callable[[str], None] = lambda _: None
        """Called in any thread with the reason why nothing more can be written."""
        self.nameless: list[str] = []
        """Places with data so damaged that the trial it belongs to is unknown."""
        self._used: set[E] = set()
        self._is_frozen = False

    @abstractmethod
    def entry(self) -> E:
        """An empty entry for a trial that begins."""

    @abstractmethod
    def release(self, entry: E) -> None:
        """Free the entry of a trial that is safe in the database."""

    @abstractmethod
    def left_over(self) -> list[CutTrial]:
        """The trials that earlier processes left unfinished."""

    @abstractmethod
    def close(self, *, remove: bool) -> None:
        """Release the run; `remove` what is left of the journal once everything is safe in the database."""

    def _taken(self, entry: E) -> E:
        entry.is_frozen = self._is_frozen
        self._used.add(entry)
        return entry

    def freeze(self) -> None:
        """Record nothing more: events caused by stopping are not part of the run. What was passed on is written."""
        self._is_frozen = True
        for entry in tuple(self._used):
            entry.is_frozen = True


def title(about: dict[str, Json]) -> bytes:
    """The line that says which trial the following lines belong to."""
    return TRIAL + json_of(about) + b"\n"


def _has_acted(event: Event) -> bool:
    """Whether a real tool has returned or failed."""
    return cast("ToolReturned | ToolFailed", event).is_live
