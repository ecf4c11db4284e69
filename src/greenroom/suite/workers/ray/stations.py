"""The driver's side of a relay: the processes next to it, and the messages in between."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import msgspec

from greenroom import __version__
from greenroom.errors import BadInput, WorkerDied
from greenroom.ledger.blobs import digests_in, given_blob
from greenroom.ledger.plain import Json
from greenroom.simulation.fence import opening_for
from greenroom.suite.workers.blobs import known_blobs, shared_folder
from greenroom.suite.workers.ray.library import errors, ray
from greenroom.suite.workers.ray.relay import BEAT
from greenroom.suite.workers.ray.shipment import Parcel
from greenroom.suite.workers.workplace import Presence

_PLACING: Final = 600.0
"""Seconds that the cluster gets to find room for a relay."""
_LEAVING: Final = 5.0
_SILENT: Final = 3 * BEAT
_BREATH: Final = 0.01
"""Seconds between two calls that carry lines: one costs the driver as much as a whole trial."""


class Station:
    """A relay, as the driver knows it."""

    def __init__(
        self, actor: object, patience: float, check: Callable[[dict[str, object], float], None]
    ) -> None:
        self.links: dict[int, RayProcess] = {}
        self.is_ready = False
        self.lost = ""
        """How it was lost; empty while it is there."""
        self.heard_at = monotonic()
        self.patience = patience
        self._check = check
        self._actor = actor
        self._hearing: asyncio.Task[None] | None = None
        self._out: list[tuple[int, bytes]] = []
        self._turn = 0
        self._said_at = 0.0
        self._known: set[str] = set()

    async def start(self, number: int, parcel: bytes, env: dict[str, str]) -> None:
        """Start a process there, as soon as the relay itself runs on a node that will do."""
        if not self.is_ready:
            # Waits for room first: the clocks are compared by the next call.
            await self._call("about")
            begun = monotonic()
            found = await self._call("about")
            self._check(found, monotonic() - begun)
        self._send_blobs(parcel.decode())
        await self._call("start", number, parcel, env)
        self.heard_at = monotonic()
        self.is_ready = True
        if self._hearing is None:
            self._hearing = asyncio.create_task(self._hear())

    def say(self, number: int, line: bytes) -> None:
        """Send a line to a process: at once, or with the next batch if one was sent just now."""
        if not self.lost:
            if not self._out:
                asyncio.get_running_loop().call_at(self._said_at + _BREATH, self._flush)
            self._out.append((number, line))

    def _flush(self) -> None:
        self._said_at = asyncio.get_running_loop().time()
        lines, self._out = self._out, []
        if lines and not self.lost:
            text = b"".join(line for _, line in lines).decode()
            self._tell("say", self._turn, lines, self._new_blobs(text))
            self._turn += 1

    def _send_blobs(self, text: str) -> None:
        if blobs := self._new_blobs(text):
            self._tell("say", self._turn, [], blobs)
            self._turn += 1

    def _new_blobs(self, text: str) -> dict[str, bytes]:
        new = {*digests_in(text)} - self._known
        self._known |= new
        return known_blobs(new)

    async def _hear(self) -> None:
        """Take what the relay has; it is asked again only when that has been taken in."""
        try:
            while True:
                lines, ended, blobs = await self._call("hear")
                self.heard_at = monotonic()
                for data in blobs.values():
                    self._known.add(given_blob(data, "").digest)
                shared_folder().keep(blobs)
                for number, text in lines:
                    if (link := self.links.get(number)) is not None:
                        await link.receive(text)
                for number, how in ended:
                    if (link := self.links.get(number)) is not None:
                        link.finish(how, is_lost=False)
        except WorkerDied as error:
            self.lose(str(error))

    async def _call(self, method: str, *given: object) -> Any:
        """The result of a method of the relay; WorkerDied if the relay is gone."""
        try:
            with opening_for(processes=True):
                asked: Awaitable[Any] = getattr(self._actor, method).remote(*given)
            return await asked
        except errors.RayError as error:
            raise _described(error) from error

    def _tell(self, method: str, *given: object) -> None:
        """Call a method of the relay without waiting for it."""
        with suppress(errors.RayError), opening_for(processes=True):
            getattr(self._actor, method).remote(*given)

    def end(self, number: int) -> None:
        """End a process."""
        if not self.lost:
            self._tell("end", number)

    def lose(self, how: str) -> None:
        """Treat the relay as gone: nothing more is sent to it."""
        if not self.lost:
            self.lost = how
            for link in tuple(self.links.values()):
                link.finish(how, is_lost=True)
            self._kill()

    def close(self) -> None:
        """End the relay, and its processes with it."""
        self.lost = self.lost or "was closed"
        if self._hearing is not None:
            self._hearing.cancel()
        self._kill()

    def _kill(self) -> None:
        with suppress(errors.RayError, ValueError, RuntimeError), opening_for(processes=True):
            if ray.is_initialized():
                ray.kill(self._actor)


def _described(error: Exception) -> WorkerDied | BadInput:
    """Ray's error in a sentence; BadInput if no other node would do better."""
    text = str(error)
    if isinstance(error, errors.RayTaskError):
        return BadInput(
            f"a node of the cluster could not start a worker process: {getattr(error, 'cause', error)!r}"
        )
    if "No module named 'greenroom" in text:
        return BadInput(
            f"the nodes of the cluster do not have Greenroom: install greenroom=={__version__} in their image, "
            f"or give Ray(pip=['greenroom=={__version__}'])."
        )
    if "RuntimeEnvSetup" in type(error).__name__ or "runtime_env" in text.lower():
        return BadInput(f"the nodes of the cluster could not be prepared: {text.strip()}")
    return WorkerDied(f"was lost with its node ({type(error).__name__})")


class RayProcess:
    """A worker process next to a relay."""

    def __init__(
        self, station: Station, number: int, pack: Callable[[object], Parcel], env: dict[str, str]
    ) -> None:
        self._station = station
        self._pack = pack
        self._env = env
        self._number = number
        self._lines: deque[bytes] = deque()
        self._news, self._taken, self._gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._is_open = False
        self._how: tuple[str, bool] | None = None
        station.links[number] = self

    async def open(self, briefing: Json) -> None:
        """Have the relay start the process; it waits until the cluster has room."""
        parcel = msgspec.json.encode(self._pack(briefing))
        starting = asyncio.ensure_future(self._station.start(self._number, parcel, self._env))
        leaving = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait(
                {starting, leaving}, timeout=_PLACING, return_when=asyncio.FIRST_COMPLETED
            )
            if not starting.done():
                raise WorkerDied(
                    "the run is being stopped."
                    if leaving.done()
                    else f"the cluster had no room for a worker process within {_PLACING:g} s; ask for "
                    f"fewer --workers, or for fewer cpus each."
                )
            starting.result()
        except WorkerDied as error:
            if not starting.done():
                raise
            self._station.lose(str(error))
            raise WorkerDied(f"a worker process {error} before it was ready.") from error
        finally:
            starting.cancel()
            leaving.cancel()
        self._is_open = True

    async def receive(self, text: bytes) -> None:
        """Take lines of the process, and wait until they are read."""
        self._lines.extend(text.splitlines(keepends=True))
        self._news.set()
        if self._how is None:
            self._taken.clear()
            await self._taken.wait()

    async def readline(self) -> bytes:
        """The next line; empty when the process has ended."""
        while not self._lines:
            self._taken.set()
            if self._how is not None:
                return b""
            self._news.clear()
            await self._news.wait()
        return self._lines.popleft()

    def write(self, line: bytes) -> None:
        """Send a line."""
        if self._how is None:
            self._station.say(self._number, line)

    def finish(self, how: str, *, is_lost: bool) -> None:
        """Note how the process ended; it sends nothing more."""
        self._how = self._how or (how, is_lost)
        for event in (self._news, self._taken, self._gone):
            event.set()

    def presence(self, now: float) -> Presence:
        """Whether its node responds. One that has been silent for too long counts as lost."""
        if not self._is_open:
            return "alive"
        if self._how is not None:
            return "dead"
        silence = now - self._station.heard_at
        if silence > self._station.patience:
            self._station.lose(f"was lost: its node did not respond for {silence:.0f} s")
            return "dead"
        return "silent" if silence > _SILENT else "alive"

    def kill(self) -> None:
        """End the process; what it sent before is still read. One that was never started is given up."""
        if not self._is_open:
            self.finish("was ended", is_lost=False)
        elif self._how is None:
            self._station.end(self._number)

    async def ended(self) -> tuple[str, bool]:
        """How it ended; waits for a short time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVING):
                await self._gone.wait()
        self.kill()
        return self._how or ("would not end", True)

    async def close(self) -> None:
        """Forget it."""
        self.finish("was closed", is_lost=False)
        self._station.links.pop(self._number, None)
