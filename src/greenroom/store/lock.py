"""The lock of a run: one process at a time works on it."""

import fcntl
import os
from pathlib import Path
from time import monotonic, sleep

from greenroom.errors import StoreFailed

# Seconds: between two tries for a lock, and after which a holder is not just checking whether it is free.
_MOMENT = 0.01
_LOOK = 2.0


def under_way(name: str, what: str = "run") -> StoreFailed:
    """The error for something locked by another process, such as a run that cannot be resumed."""
    return StoreFailed(f"{what} {name!r} is in use by another process. Wait for it, or stop it.")


def locked(folder: Path) -> int:
    """The lock of a run, held by this process; StoreFailed while another one has it."""
    place = folder / "lock"
    while True:
        for private in (folder.parent, folder):  # the mode applies to the innermost folder only
            private.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # the process that held it has removed the folder
        if not _locked(lock):
            os.close(lock)
            raise under_way(folder.name)
        if _is_at(lock, place):
            return lock
        # The file was removed while we waited: the next process would lock another file.
        os.close(lock)


def _is_at(file: int, place: Path) -> bool:
    try:
        there = place.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(file), there)


def _locked(lock: int) -> bool:
    """Whether the lock is ours now; a process that only checks it also holds it for a moment."""
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
    """Whether a process is working on the run of this folder."""
    try:
        lock = os.open(folder / "lock", os.O_RDONLY)  # works on a read-only disk too
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
