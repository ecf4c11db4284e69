"""The journal of trials under way: what cannot be had again for nothing is written down at once.

A trial has one file while it is played and measured. A line `T` says whose it is, those after it
are its events: `A` of the run, `J` of what the metrics asked models. When the trial is safe in the
database its file is wiped and given to the next. One that is begun anew goes on at the end of its
file: only the last beginning there counts.

A line goes to the file when a model has answered, when a tool is called and when a real one has
returned, and when a framework that keeps its state to itself has come to rest, together with those
before it; what lies between follows from these, and is found again when the trial goes on. Nobody
waits for the disk: a process that dies loses nothing that was paid for, a machine that loses power
what was not yet on disk.
"""

import fcntl
import json
import os
from contextlib import suppress
from errno import EMFILE, ENFILE
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from greenroom.errors import BadLedger, StoreFailed
from greenroom.ledger.codec import encoded, json_of
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
from greenroom.store.failpoints import failpoint, is_armed
from greenroom.store.runs import Key

_TRIAL: Final = b"T"
_AGENT: Final = b"A"
_JUDGE: Final = b"J"
_NOTHING: Final = b"\0"
_SUFFIX = ".jsonl"
_END: Final = b"\n"
_URGENT = {ModelReplied, ModelFailed, ToolCalled, Remembered, ToolReturned, ToolFailed}

# Bytes of a trial that are overwritten rather than cut off.
_LITTLE = 64_000
# Seconds: between two tries to have a lock, and until whoever has it does more than look.
_MOMENT = 0.01
_LOOK = 2.0


class _Told:
    """What one side of a trial has told so far: events, as lines once they go to the file."""

    __slots__ = ("fresh", "lines", "mark")

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.fresh: list[Event] = []
        self.lines: list[bytes] = []

    def written_out(self) -> bytes:
        """What the file has to be told of the events that were not yet written out."""
        lines = [encoded(event) + _END for event in self.fresh]
        self.fresh.clear()
        self.lines += lines
        return self.mark + self.mark.join(lines)

    def whole(self) -> bytes:
        """Everything, as JSON lines."""
        self.lines += [encoded(event) + _END for event in self.fresh]
        self.fresh.clear()
        return b"".join(self.lines)

    def forget(self) -> None:
        self.fresh, self.lines = [], []


class Entry:
    """The file of one trial under way, if it has one, and what was written in it."""

    __slots__ = (
        "_about",
        "_agent",
        "_file",
        "_judge",
        "_length",
        "_title",
        "failure",
        "is_frozen",
        "path",
    )

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.failure = ""
        self.is_frozen = False
        self._file: int | None = None
        if path is not None:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._length = 0
        self._agent = _Told(_AGENT)
        self._judge = _Told(_JUDGE)
        self._about: dict[str, Json] = {}
        self._title = b""

    def begin(self, key: Key, digest: str) -> None:
        """Say whose file this is now."""
        self._about = {"case_id": key.case_id, "trial": key.trial, "digest": digest}
        self._title = _title(self._about)
        failpoint("journal.opened")

    def take_up(self, ledger: Ledger, judging: Ledger) -> bool:
        """Write down again what an earlier process had done; whether it is in the file now."""
        self._agent.fresh += ledger
        self._judge.fresh += judging
        # Said first how much there is: a part of it would be taken for a shorter run.
        self._title = _title({**self._about, "lines": len(ledger) + len(judging)})
        self._write()
        return self._file is not None and not self.failure

    def agent(self, event: Event) -> None:
        """Write down an event of the run."""
        self._agent.fresh.append(event)
        if type(event) in _URGENT and _cannot_be_repeated(event):
            self._write()

    def judge(self, event: Event) -> None:
        """Write down an event of the measuring."""
        self._judge.fresh.append(event)
        if type(event) in _URGENT and _cannot_be_repeated(event):
            self._write()

    def _write(self) -> None:
        """Put what waits into the file, in one go."""
        waiting, self._title = self._title, b""
        for told in (self._agent, self._judge):
            if told.fresh:
                waiting += told.written_out()
        if self._file is None or self.is_frozen or self.failure:
            return
        try:
            if is_armed("journal.half_written"):
                self._put(self._file, waiting[: len(waiting) // 2])
                failpoint("journal.half_written")
                waiting = waiting[len(waiting) // 2 :]
            self._put(self._file, waiting)
        except OSError as error:
            # The trial goes on: what is paid for should at least be measured and reported.
            self.failure = f"cannot write to the journal {self.path}: {error}"
        failpoint("journal.written")

    def _put(self, file: int, data: bytes) -> None:
        while data:
            written = os.pwrite(file, data, self._length)
            self._length += written
            data = data[written:]

    @property
    def ledger(self) -> bytes:
        """The run as JSON lines."""
        return self._agent.whole()

    @property
    def judging(self) -> bytes:
        """What the metrics asked, as JSON lines."""
        return self._judge.whole()

    def forget(self) -> None:
        """Hold no lines any more: somebody else does now. Those in the file stay."""
        self._agent.forget()
        self._judge.forget()

    def clear(self) -> None:
        """Make ready for the next trial; what was said in the last one may be a secret."""
        self.forget()
        if self._file is not None:
            _wipe(self._file, self._length)
            self._length = 0
        failpoint("journal.cleared")

    def close(self) -> None:
        """Let go of the file."""
        self.is_frozen = True
        if self._file is not None:
            os.close(self._file)


def _wipe(file: int, length: int) -> None:
    """Leave nothing in a file. A few zeros cost less than having the disk take room and give it."""
    if length <= _LITTLE and os.pwrite(file, bytes(length), 0) == length:
        return
    os.ftruncate(file, 0)


def _title(about: dict[str, Json]) -> bytes:
    return _TRIAL + json_of(about) + _END


def _cannot_be_repeated(event: Event) -> bool:
    """Whether an urgent one was paid for, or may be about to act, or has acted, or rests."""
    return not isinstance(event, ToolReturned | ToolFailed) or event.source == "live"


class Journal:
    """The files of one run's trials under way, in a folder that one process at a time may hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._free: list[Entry] = []
        self._used: set[Entry] = set()
        self._number = -1
        try:
            self._lock = _lock(folder)
        except OSError as error:
            raise StoreFailed(f"cannot keep a journal in {folder}: {error}.") from error

    def entry(self) -> Entry:
        """An empty file for a trial that begins."""
        try:
            taken = self._free.pop() if self._free else self._new()
        except OSError as error:
            raise StoreFailed(f"cannot keep a journal in {self.folder}: {error}.") from error
        self._used.add(taken)
        return taken

    def _new(self) -> Entry:
        # Those an earlier process left behind keep their names until they are taken up.
        try:
            while True:
                self._number += 1
                with suppress(FileExistsError):
                    return Entry(self.folder / f"{self._number}{_SUFFIX}")
        except OSError as error:
            if error.errno not in (EMFILE, ENFILE):
                raise
            # Files are scarce here; a trial without one is safe as soon as it is finished.
            return Entry(None)

    def release(self, entry: Entry) -> None:
        """Take back the file of a trial that is safe in the database."""
        self._used.discard(entry)
        entry.clear()
        self._free.append(entry)

    def left_over(self) -> "list[LeftOver]":
        """What earlier processes had under way when they ended; unreadable ones are left out."""
        found = (_left_over(path) for path in sorted(self.folder.glob(f"*{_SUFFIX}")))
        return [left for left in found if left is not None]

    def freeze(self) -> None:
        """Write nothing more: what follows is the noise of stopping, and no part of the run."""
        for entry in tuple(self._used):
            entry.is_frozen = True

    def close(self, *, remove: bool) -> None:
        """Let go of the folder; `remove` it once all is safe in the database."""
        for entry in (*self._free, *self._used):
            entry.close()
        for entry in self._free:
            # What is in it is in the database, and there it has lost its secrets.
            if entry.path is not None:
                entry.path.unlink(missing_ok=True)
        if remove:
            with suppress(OSError):  # somebody else's file in it is no reason to lose a report
                for path in (*self.folder.glob(f"*{_SUFFIX}"), self.folder / "lock"):
                    path.unlink(missing_ok=True)
                self.folder.rmdir()
        os.close(self._lock)


class LeftOver:
    """A trial that was under way when its process ended."""

    __slots__ = ("digest", "judging", "key", "ledger", "path")

    def __init__(self, path: Path, key: Key, digest: str, ledger: Ledger, judging: Ledger) -> None:
        self.path = path
        self.key = key
        self.digest = digest
        self.ledger = ledger
        self.judging = judging


def _left_over(path: Path) -> LeftOver | None:
    """The last trial in a journal file, up to the line at which it was cut."""
    # What was wiped is zeros, which no line has; the last piece is a line without its end, or nothing.
    lines = path.read_bytes().partition(_NOTHING)[0].split(b"\n")[:-1]
    end = len(lines)
    for begun in (at for at in reversed(range(end)) if lines[at][:1] == _TRIAL):
        try:
            about = json.loads(lines[begun][1:])
            if end - begun - 1 < about.get("lines", 0):
                end = begun  # cut while it was written down again: what stands before it counts
                continue
            key = Key(str(about["case_id"]), int(about["trial"]))
            ledgers = [_events(lines[begun + 1 : end], mark, path) for mark in (_AGENT, _JUDGE)]
            return LeftOver(path, key, str(about["digest"]), *ledgers)
        except (ValueError, TypeError, LookupError, AttributeError, BadLedger):
            return None
    return None


def _events(lines: list[bytes], mark: bytes, path: Path) -> Ledger:
    own = (line[1:].decode(errors="replace") for line in lines if line[:1] == mark)
    return Ledger.loads("".join(f"{line}\n" for line in own), str(path))


def under_way(run_id: str) -> StoreFailed:
    """Why a run cannot be taken up."""
    return StoreFailed(f"run {run_id!r} is under way in another process. Wait for it, or stop it.")


def _lock(folder: Path) -> int:
    """The lock of a run, held by this process; StoreFailed while another one has it."""
    place = folder / "lock"
    while True:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # whoever had it took the folder away meanwhile
        if not _locked(lock):
            os.close(lock)
            raise under_way(folder.name)
        if _is_at(lock, place):
            return lock
        os.close(lock)  # it was taken away while we waited: whoever comes next would have another


def _is_at(file: int, place: Path) -> bool:
    try:
        there = place.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(file), there)


def _locked(lock: int) -> bool:
    """Whether the lock is ours now; who only looks whether it is held has it for a moment too."""
    until = monotonic() + _LOOK
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if monotonic() >= until:
                return False
            sleep(_MOMENT)
        else:
            return True


def is_held(folder: Path) -> bool:
    """Whether a process is at work on the run of this folder."""
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
