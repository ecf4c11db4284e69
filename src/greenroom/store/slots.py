"""Where the lines of a trial under way are written: a slot of a file it shares, or a file of its own.

Making a file costs as much as playing a third of a case, and most trials are short. What is zero is
empty: a slot is wiped, which needs no room on the disk, and given to the next trial.
"""

import os
from errno import ENOENT
from itertools import islice
from pathlib import Path

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
        """Do away with the file, if it is nobody else's."""
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
