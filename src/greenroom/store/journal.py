"""The journal of trials in progress: what costs money or has effects is written down at once.

A trial has its own place while it runs and is measured. A line `T` says which trial it is, the lines
after it are its events: `A` for the trial, `J` for what the metrics asked models. When the trial is
safe in the database, its place is wiped and given to the next. A trial that starts again is written
after what is there: only the last `T` counts.

Lines go to the file when a model has answered, when a tool is called, when a real tool has returned and
when a framework with its own state has come to rest. The events in between follow from these, and
are recreated when the trial is resumed. Only a real tool waits for the disk: it is not called
before its call is there. So a process that dies loses nothing that was paid for, and a machine that
loses power loses only what was not on disk yet.

A journal that can no longer be written reports that at once, and the run stops: what is not written
down might be done twice.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from errno import EMFILE, ENFILE
from itertools import chain
from pathlib import Path

from greenroom.errors import StoreFailed
from greenroom.ledger.blobs import BlobFolder
from greenroom.ledger.ledger import Ledger
from greenroom.store.cut_trials import CutTrial, left_over
from greenroom.store.entry import Recorded, RunJournal, Settled, TrialEntry, title
from greenroom.store.failpoints import failpoint, is_armed
from greenroom.store.lock import locked
from greenroom.store.slots import ALONE, SLOTS, DiskSync, Place, Places


class Entry(TrialEntry):
    """The journal entry of one trial in progress: where it is written, if anywhere, and what was written."""

    __slots__ = (
        "_has_settled",
        "_in_slot",
        "_journal",
        "_length",
        "_slot",
        "failure",
        "place",
    )

    def __init__(self, slot: Place | None, journal: "Journal") -> None:
        super().__init__()
        self.failure = ""
        self.place = slot
        self._slot = slot
        self._journal = journal
        self._length = self._in_slot = 0
        self._has_settled = False

    def restore(self, ledger: Ledger, judging: Ledger) -> bool:
        """Write what an earlier process had recorded; return whether it is in the file now."""
        self._write_again(ledger, judging)
        if self.place is None or self.failure:
            return False
        # A real tool may have acted in it, and its old place was on disk.
        self._has_settled = len(ledger) > 0
        try:
            self._keep_settled(self.place)
        except OSError as error:
            self._fail(self.place.path, error)
        return not self.failure

    def _write(self) -> None:
        """Write the waiting lines to the file at once."""
        with self._writing:
            self._write_out()

    def _write_out(self) -> None:
        waiting = self._written_out()
        place = self.place
        if place is None or self.is_frozen or self.failure:
            return
        try:
            if self._journal.blobs is not None:
                self._journal.blobs.keep_mentioned(waiting)  # before the lines that mention them
            if self._length + len(waiting) > place.room:
                self._move()
            elif is_armed("journal.half_written"):
                self._put(place, waiting[: len(waiting) // 2])
                failpoint("journal.half_written")
                self._put(place, waiting[len(waiting) // 2 :])
            else:
                self._put(place, waiting)
        except OSError as error:
            self._fail(place.path, error)
        failpoint("journal.written")

    def _fail(self, path: Path, error: OSError) -> None:
        self.failure = f"cannot write to the journal {path}: {error}."
        self._journal.fail(self.failure)

    def settle(self, tell: Settled) -> None:
        """Call `tell` when everything recorded is on disk, or with the reason why no tool may act."""
        if self.place is None and not self._refusal():
            self._find_place()
        about, place, why = self._about, self.place, self._refusal()
        if why or place is None:
            return tell(StoreFailed(why))

        def synced(error: OSError | None) -> None:
            if error is not None and self._about is about and not self._refusal():
                self._fail(place.path, error)
            self._has_settled = True
            why = self._refusal() if self._about is about else "the trial has ended."
            tell(StoreFailed(why) if why else None)

        self._journal.syncing.ask(place, synced)
        return None

    def _refusal(self) -> str:
        """Why nothing more is written; empty while it still is."""
        return self.failure or ("the run is being stopped." if self.is_frozen else "")

    def _find_place(self) -> None:
        """Try again to get a file, if none was available when the trial needed one."""
        try:
            self._move()
            if self.place is None:
                raise OSError(EMFILE, os.strerror(EMFILE))
        except OSError as error:
            self._fail(self._journal.folder, error)

    def _put(self, place: Place, data: bytes) -> None:
        while data:
            written = place.write(data, self._length)
            self._length += written
            data = data[written:]
            if place is self._slot:
                self._in_slot = self._length

    def _move(self) -> None:
        """Move everything into its own file: it has outgrown its slot."""
        self.place = own = _unless_scarce(self._journal.places.alone)
        if own is None:
            return
        sides = (self._agent, self._judge)
        about = {**self._about, "lines": sum(map(Recorded.count, sides))}
        self._length = 0
        try:
            self._put(own, title(about) + b"".join(map(Recorded.again, sides)))
            self._keep_settled(own)
        except OSError:
            # The slot's content is where the trial will continue.
            self.place = None
            own.remove()
            raise
        self._wipe_slot()

    def _keep_settled(self, place: Place) -> None:
        """What was synced in the old place must be synced here before it is removed there."""
        if self._has_settled:
            place.sync()
            place.sync_name()

    def _wipe_slot(self) -> None:
        if self._slot is not None and self._in_slot:
            self._slot.wipe(self._in_slot)
            self._in_slot = 0

    def clear(self) -> None:
        """Reset for the next trial; the last one may have held secrets."""
        self.forget()
        if self.place is not None and self.place is not self._slot:
            self.place.remove()
        self.place, self._length = self._slot, 0
        self._has_settled = False
        self._about = {}
        self._wipe_slot()
        failpoint("journal.cleared")

    def close(self) -> None:
        """Write nothing more."""
        self.is_frozen = True
        if self.place is not None and self.place is not self._slot:
            os.close(self.place.file)
        self.place = self._slot = None


class Journal(RunJournal[Entry]):
    """The journal files of one run's trials in progress, in a folder that one process at a time may lock."""

    def __init__(
        self, folder: Path, blobs: BlobFolder | None = None, *, is_begun: bool = False
    ) -> None:
        super().__init__()
        self.folder = folder
        self.blobs = blobs
        self.places = Places(folder)
        self.syncing = DiskSync()
        self._free: list[Entry] = []
        is_lost = is_begun and not folder.exists()
        try:
            self._lock = locked(folder)
            if is_lost:
                # No line of it says which trial it is: it stands for all that may have been there.
                (folder / f"removed{ALONE}").write_text("the journal was removed\n")
        except OSError as error:
            raise StoreFailed(f"cannot keep a journal in {folder}: {error}.") from error

    def entry(self) -> Entry:
        """An empty place for a trial that begins."""
        try:
            taken = self._free.pop() if self._free else self._new()
        except OSError as error:
            raise StoreFailed(f"cannot keep a journal in {self.folder}: {error}.") from error
        return self._taken(taken)

    def _new(self) -> Entry:
        return Entry(_unless_scarce(self.places.slot), self)

    def release(self, entry: Entry) -> None:
        """Free the place of a trial that is safe in the database."""
        # A place that cannot be wiped is not used again; a reader finds its trial in the database.
        with suppress(OSError):
            entry.clear()
            self._used.discard(entry)
            self._free.append(entry)

    def left_over(self) -> list[CutTrial]:
        """The trials that earlier processes left unfinished."""
        try:
            found = left_over(self.folder, self.places.shared)
        except OSError as error:
            raise StoreFailed(f"cannot read the journal in {self.folder}: {error}.") from error
        self.nameless = found.nameless
        return [*found.trials]

    def close(self, *, remove: bool) -> None:
        """Release the folder; `remove` it once everything is safe in the database."""
        for entry in (*self._free, *self._used):
            entry.close()
        self.syncing.close()
        self.places.close(remove=not self._used)
        if remove:
            with suppress(OSError):  # a foreign file in the folder must not cost a report
                files = (self.folder.glob(f"*{suffix}") for suffix in (ALONE, SLOTS))
                for path in (*chain.from_iterable(files), self.folder / "lock"):
                    path.unlink(missing_ok=True)
                self.folder.rmdir()
        os.close(self._lock)


def _unless_scarce(opened: Callable[[], Place]) -> Place | None:
    """A new place; None if no file can be opened. Such a trial is safe only once it is finished."""
    try:
        return opened()
    except OSError as error:
        if error.errno in (EMFILE, ENFILE):
            return None
        raise
