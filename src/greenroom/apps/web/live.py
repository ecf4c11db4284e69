"""Changes of the store, as a stream that a page can resume after any break.

A listener's place is a position in the store, not a counter of this process: each one asks the store for
what comes after the last row it sent. So nothing is sent twice or left out, whichever process writes, even
if the server was restarted in between. Watching the files only says when to ask.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

from greenroom.errors import GreenroomError
from greenroom.ledger.plain import Json, number_in
from greenroom.store import Store
from greenroom.store.runs import Key, Run

_MOMENT = 0.05
"""Seconds for which changes are collected before they are sent together."""
_LOOK = 1.0
"""Seconds after which a listener looks even if no file seems to have changed: a process that was killed
writes nothing, and some disks cannot be watched."""
_SIGN_OF_LIFE = 15.0
_MANY = 2_000
"""A page that has missed more than this many changes should load everything again."""


class Message(Struct, frozen=True):
    """One event of the stream."""

    event: str
    data: dict[str, Json]
    position: str = ""
    """The position from which a page resumes the stream after this event."""

    def text(self) -> str:
        """The event as a browser reads it."""
        place = f"id: {self.position}\n" if self.position else ""
        return f"{place}event: {self.event}\ndata: {json.dumps(self.data)}\n\n"


class Feed:
    """Wakes everyone who listens when the files of a store change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Watch for as long as the server runs."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

        while True:
            if self._store.place.is_dir():
                with suppress(OSError):
                    async for _ in awatch(
                        self._store.place,
                        debounce=40,
                        step=10,
                        # Every reader writes to the file of shared memory.
                        watch_filter=lambda _, path: not path.endswith("-shm"),
                    ):
                        changed, self._changed = self._changed, asyncio.Event()
                        changed.set()
            await asyncio.sleep(_LOOK)  # the folder is not there yet, or no longer

    async def listen(self, since: str, run: str = "") -> AsyncIterator[str]:
        """Changes written after `since`, and then new ones for as long as the page listens.

        With `run`, also the progress of its running trials.
        """
        listener = _Listener(self._store, run)
        quiet = 0.0
        async for message in listener.taken_up(since):
            yield message.text()
        while True:
            changed = self._changed
            sent = False
            async for message in listener.news():
                sent = True
                yield message.text()
            quiet = 0.0 if sent else quiet
            try:
                async with asyncio.timeout(_LOOK):
                    await changed.wait()
                await asyncio.sleep(_MOMENT)
            except TimeoutError:
                quiet += _LOOK
                if quiet >= _SIGN_OF_LIFE:
                    quiet = 0.0
                    yield ": still here\n\n"


class _Listener:
    """One page that follows the store."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run
        self._id = ""
        self._at = 0
        self._open: dict[str, str] = {}
        self._going: list[tuple[Key, int]] = []

    async def taken_up(self, since: str) -> AsyncIterator[Message]:
        """Begin after `since`; if that is not a place in this store, say that the page must ask for everything."""
        self._id, latest = await asyncio.to_thread(_latest, self._store)
        at = number_in(since)
        if at is not None and at <= latest and latest - at <= _MANY:
            self._at = at
            return
        self._at = latest
        yield Message("again" if since else "here", {}, str(latest))

    async def news(self) -> AsyncIterator[Message]:
        """Messages about what has been written since the last call."""
        try:
            store_id, _ = await asyncio.to_thread(_latest, self._store)
            if self._id and store_id != self._id:  # another store has replaced it
                async for message in self.taken_up("another"):
                    yield message
            self._id = store_id
            while changes := await asyncio.to_thread(self._store.changes, self._at, 500):
                for change in changes:
                    self._at = change.position
                    about: dict[str, Json] = {"run": change.run_id, "status": change.status}
                    if change.key is not None:
                        about |= {"case": change.key.case_id, "trial": change.key.trial}
                    yield Message(change.kind, about, str(self._at))
            for message in await asyncio.to_thread(self._states):
                yield message
        except GreenroomError as error:
            yield Message("broken", {"error": str(error)})

    def _states(self) -> list[Message]:
        """Runs that are no longer what their rows say, and how far trials in progress have come."""
        found: list[Message] = []
        open_now = {run.id: run for run in self._store.runs(unfinished=True)}
        for run in open_now.values():
            if self._open.get(run.id, run.status) != run.status:
                found.append(Message("run", run_data(run)))
        self._open = {run.id: run.status for run in open_now.values()}
        if self._run in open_now:
            going = [(one.key, len(one.ledger)) for one in self._store.under_way(self._run)]
            for key, events in going:
                if (key, events) not in self._going:
                    about = {"run": self._run, "case": key.case_id, "trial": key.trial}
                    found.append(Message("going", {**about, "events": events}))
            self._going = going
        return found


def _latest(store: Store) -> tuple[str, int]:
    if not store.database.exists():
        return "", 0
    return store.latest_position()


def run_data(run: Run) -> dict[str, Json]:
    """A run as the page's script reads it."""
    return {
        "run": run.id,
        "status": run.status,
        "done": run.done,
        "total": run.total,
        "counts": dict(run.counts),
        "cost": run.cost,
    }
