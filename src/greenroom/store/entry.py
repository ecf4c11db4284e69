"""The events of a trial in progress as lines, and which of them must be written at once."""

from threading import Lock
from typing import cast

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
from greenroom.store.cut_trials import AGENT, JUDGE, TRIAL
from greenroom.store.failpoints import failpoint
from greenroom.store.runs import Key

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


class RecordedTrial:
    """What was recorded of one trial in progress; each journal decides where it is written."""

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

    def _write(self) -> None:
        """Write the waiting lines to where they are safe."""
        raise NotImplementedError

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


def title(about: dict[str, Json]) -> bytes:
    """The line that says which trial the following lines belong to."""
    return TRIAL + json_of(about) + b"\n"


def _has_acted(event: Event) -> bool:
    """Whether a real tool has returned or failed."""
    return cast("ToolReturned | ToolFailed", event).is_live
