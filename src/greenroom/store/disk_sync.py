"""What must be on disk before a real tool acts: a thread of its own waits for the disk.

Nobody else waits for it but whoever asked, and those who ask while it is busy are served together.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread

from greenroom.store.slots import Place

Synced = Callable[[OSError | None], None]
"""Hears that it is on disk, or why it is not, in the thread that waited."""


class DiskSync:
    """Puts places on disk. The thread begins with the first that is asked for."""

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
