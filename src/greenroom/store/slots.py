"""Where the lines of a trial in progress are written: a slot in a shared file, or its own file.

Creating a file costs a third of a small case, and most trials are short. A slot of zeros is empty: it is
wiped, which needs no disk space, and given to the next trial.
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
_sync = getattr(os, "fdatasync", os.fsync)  # fdatasync does not exist everywhere
_HEAD = 4096
_FOLDERS = 3
"""How many folders above a file are synced too: the run's, that of all journals, and the store's."""


class Place(Struct, frozen=True):
    """A section of a file."""

    path: Path
    file: int
    begin: int = 0
    room: float = float("inf")

    def write(self, data: bytes, at: int) -> int:
        """Write `data`, or some of it, at this offset; return how much."""
        return os.pwrite(self.file, data, self.begin + at)

    def wipe(self, length: int) -> None:
        """Wipe what was written; the first line last, because it says which trial it was."""
        for at, end in ((_HEAD, length), (0, min(_HEAD, length))):
            while at < end:
                at += self.write(bytes(end - at), at)

    def sync(self) -> None:
        """Return when everything written is on disk, in the file of this name; else raise OSError."""
        # A deleted file accepts writes and keeps nothing.
        if not os.path.samestat(os.fstat(self.file), os.stat(self.path)):  # noqa: PTH116
            raise FileNotFoundError(ENOENT, "the file was replaced", str(self.path))
        _sync(self.file)

    def sync_name(self) -> None:
        """Return when the file's name and those of the folders above it are on disk too."""
        for folder in islice(self.path.parents, _FOLDERS):
            known = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(known)
            finally:
                os.close(known)

    def remove(self) -> None:
        """Remove the file, which is not shared with another trial."""
        os.close(self.file)
        self.path.unlink(missing_ok=True)


class Places:
    """The files of one journal. Files left by an earlier process keep their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shared: tuple[Path, int] | None = None
        self._slots = 0
        self._number = 0

    @property
    def shared(self) -> Path | None:
        """The shared file, once there is one."""
        return None if self._shared is None else self._shared[0]

    def slot(self) -> Place:
        """The next slot in the shared file."""
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
        """Close the shared file; `remove` it if it is empty."""
        if self._shared is None:
            return
        (path, file), self._shared = self._shared, None
        os.close(file)
        if remove:
            path.unlink(missing_ok=True)


Synced = Callable[[OSError | None], None]
"""Called in the thread that waited, with None or the reason why it is not on disk."""


class DiskSync:
    """Syncs places to disk before a real tool acts, in a thread that starts with the first request.

    Only the caller waits for it; requests that come while it is busy are served together.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Place, Synced] | None] = SimpleQueue()
        self._named: set[Path] = set()
        """The files whose names are on disk as well."""
        self._starting = Lock()
        self._has_started = False

    def ask(self, place: Place, tell: Synced) -> None:
        """Call `tell` when everything written at `place` so far is on disk; may be called from any thread."""
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
            # Slots are parts of one file: one sync covers all of them.
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
