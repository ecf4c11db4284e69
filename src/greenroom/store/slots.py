"""Where the lines of a trial under way are written: a slot of a file it shares, or a file of its own.

Making a file costs a third of a small case, and most trials are short. What is zero is empty: a slot is
wiped, which needs no room on the disk, and given to the next trial.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from errno import ENOENT
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from msgspec import Struct

SLOT = 65_536
SLOTS = ".slots"
ALONE = ".jsonl"
_sync = getattr(os, "fdatasync", os.fsync)  # not everywhere
_HEAD = 4096
_FOLDERS = 3
"""The run's folder, that of all journals, and the store's own."""


class Place(Struct, frozen=True):
    """A stretch of a file."""

    path: Path
    file: int
    begin: int = 0
    room: float = float("inf")

    def write(self, data: bytes, at: int) -> int:
        """Put `data` so far behind the beginning, or some of it; say how much."""
        return os.pwrite(self.file, data, self.begin + at)

    def wipe(self, length: int) -> None:
        """Leave nothing of what was written; the first line goes last, for it says whose it was."""
        for at, end in ((_HEAD, length), (0, min(_HEAD, length))):
            while at < end:
                at += self.write(bytes(end - at), at)

    def sync(self) -> None:
        """Come back when all that was written is on disk, in the file of this name; else OSError."""
        # A file that was deleted takes whatever it is given, and keeps nothing.
        if not os.path.samestat(os.fstat(self.file), os.stat(self.path)):  # noqa: PTH116
            raise FileNotFoundError(ENOENT, "the file is another one now", str(self.path))
        _sync(self.file)

    def sync_name(self) -> None:
        """Come back when the file's name is on disk, too, and those of the folders above it."""
        for folder in islice(self.path.parents, _FOLDERS):
            known = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(known)
            finally:
                os.close(known)

    def remove(self) -> None:
        """Remove the file, which no other trial shares."""
        os.close(self.file)
        self.path.unlink(missing_ok=True)


class Places:
    """The files of one journal. Those an earlier process left behind keep their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shared: tuple[Path, int] | None = None
        self._slots = 0
        self._number = 0

    @property
    def shared(self) -> Path | None:
        """The file that all share, once there is one."""
        return None if self._shared is None else self._shared[0]

    def slot(self) -> Place:
        """The next slot of the file that all share."""
        if self._shared is None:
            self._shared = self._opened(SLOTS)
        place = Place(*self._shared, self._slots * SLOT, SLOT)
        self._slots += 1
        return place

    def alone(self) -> Place:
        """A file for one trial, which grows with it."""
        return Place(*self._opened(ALONE))

    def _opened(self, suffix: str) -> tuple[Path, int]:
        while True:
            path = self._folder / f"{self._number}{suffix}"
            self._number += 1
            try:
                return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue

    def close(self, *, remove: bool) -> None:
        """Let go of the shared file; `remove` it if there is nothing in it."""
        if self._shared is None:
            return
        (path, file), self._shared = self._shared, None
        os.close(file)
        if remove:
            path.unlink(missing_ok=True)


Synced = Callable[[OSError | None], None]
"""Called in the thread that waited, with None or the reason why it is not on disk."""


class DiskSync:
    """Puts places on disk before a real tool acts, in a thread that starts with the first request.

    Only the caller waits for it; requests that come while it is busy are served together.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Place, Synced] | None] = SimpleQueue()
        self._named: set[Path] = set()
        """The files whose names are on disk as well."""
        self._starting = Lock()
        self._has_started = False

    def ask(self, place: Place, tell: Synced) -> None:
        """Tell when everything that was written at `place` until now is on disk; for any thread."""
        self._jobs.put((place, tell))
        with self._starting:
            if not self._has_started:
                self._has_started = True
                Thread(target=self._serve, name="greenroom-journal", daemon=True).start()

    def close(self) -> None:
        """End the thread, without waiting for it."""
        self._jobs.put(None)

    def _serve(self) -> None:
        while True:
            jobs = [self._jobs.get()]
            with suppress(Empty):
                while True:
                    jobs.append(self._jobs.get_nowait())
            asked = [job for job in jobs if job is not None]
            # Slots are parts of one file: one sync is for all of them.
            found = {place.file: self._synced(place) for place, _ in asked}
            for place, tell in asked:
                tell(found[place.file])
            if len(asked) < len(jobs):
                return

    def _synced(self, place: Place) -> OSError | None:
        try:
            place.sync()
            if place.path not in self._named:
                place.sync_name()
                self._named.add(place.path)
        except OSError as error:
            return error
        return None
