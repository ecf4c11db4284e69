"""Changes to eval-set files, one at a time: whoever reads, changes and writes a file loses no other's change."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from time import monotonic, sleep

from greenroom.errors import BadFile

_PATIENCE = 30.0
_AGAIN = 0.01
_HELD: ContextVar[frozenset[Path]] = ContextVar("greenroom_changing", default=frozenset())


@contextmanager
def changing(file: Path) -> Generator[None]:
    """Keep other processes and threads from changing a file, from before it is read until it is written.

    Its folder is locked, because the file itself is replaced. Within one change another one of the same
    folder is part of it. BadFile if it stays locked for long; a disk without locks is used without.
    """
    folder = file.absolute().parent.resolve()
    if folder in (held := _HELD.get()):
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise BadFile(f"cannot write {file}: {error}.") from error
    token = _HELD.set(held | {folder})
    try:
        _wait_for(lock, file)
        yield
    finally:
        _HELD.reset(token)
        os.close(lock)


def _wait_for(lock: int, file: Path) -> None:
    deadline = monotonic() + _PATIENCE
    with suppress(OSError):  # some shared disks have no locks
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() > deadline:
                    break
            sleep(_AGAIN)
        raise BadFile(
            f"{file} has been locked by another process that changes eval sets in its folder for more than "
            f"{_PATIENCE:g} s. Wait for it or end it, then try again."
        )
