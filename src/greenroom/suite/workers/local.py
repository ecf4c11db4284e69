"""Worker processes on this machine: two pipes each."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import Any, Final

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.simulation.fence import opening_for
from greenroom.store.configuration import without
from greenroom.suite.option_types import MOST_HERE
from greenroom.suite.options import CONCURRENCY
from greenroom.suite.workers.kernel_fence import ClosedIn
from greenroom.suite.workers.wire import LONGEST, packed
from greenroom.suite.workers.workplace import Presence

_LEAVING: Final = 2.0
_LOOK: Final = 0.01

# The parent's path, because the author's code may not be found without it.
_BEGINNING: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from greenroom.suite.workers.worker import main; main(*map(json.loads, sys.argv[2:]))"
)


class ThisMachine:
    """Starts worker processes on this machine, closed in by the kernel if the run asks for that."""

    starts_together = True

    def __init__(self, fence: ClosedIn | None = None, withheld: Collection[str] = ()) -> None:
        self._fence = fence
        self._withheld = withheld

    async def connect(self, count: int | None) -> int:
        """How many workers to start, of `count` or the usual number."""
        found = min(CONCURRENCY, os.cpu_count() or 1) if count is None else count
        if found > MOST_HERE:
            raise BadInput(
                f"workers={found} should be a whole number from 1 to {MOST_HERE} on one machine."
            )
        return found

    def open(self, note: Callable[[str], None]) -> None:
        """Start what the kernel's fence needs."""
        if self._fence is not None:
            for why in self._fence.notes:
                note(why)
            self._fence.open(note)

    def hire(self) -> "LocalProcess":
        """Another worker process."""
        environment = without(self._withheld, os.environ)
        if self._fence is None:
            return LocalProcess(environment)
        return LocalProcess({**environment, **self._fence.variables}, self._fence.rules)

    def close(self, *, at_once: bool) -> None:  # noqa: ARG002 - its processes are closed one by one
        """End the kernel's fence."""
        if self._fence is not None:
            self._fence.close()


class LocalProcess:
    """A worker process of this machine, and the pipes to it and from it."""

    def __init__(
        self,
        environment: Mapping[str, str],
        rules: dict[str, Any] | None = None,
        *,
        path: list[str] | None = None,
        folder: str | None = None,
        dies_with_parent: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        said = [path or sys.path, rules, os.getpid() if dies_with_parent else None]
        self.process, self._to, self._from = _started(environment, folder, *said)
        self._reader = asyncio.StreamReader(LONGEST, loop=self._loop)
        self._inbox: asyncio.ReadTransport | None = None
        self._outbox: asyncio.WriteTransport | None = None
        self._dead_since: float | None = None
        self._is_closed = False

    async def open(self, briefing: Json) -> None:
        """Connect the pipes, and send the briefing."""
        self._inbox, _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader, loop=self._loop), self._from
        )
        self._outbox, _ = await self._loop.connect_write_pipe(asyncio.BaseProtocol, self._to)
        self.write(packed(briefing))

    async def readline(self) -> bytes:
        """The next line of the process; empty when there are no more."""
        return await self._reader.readline()

    async def read(self, most: int) -> bytes:
        """What is there, up to `most` bytes; empty when there is no more."""
        return await self._reader.read(most)

    def write(self, line: bytes) -> None:
        """Send a line, unless the process is gone."""
        if self._outbox is not None and not self._outbox.is_closing():
            self._outbox.write(line)

    def presence(self, now: float) -> Presence:
        """Whether the process is there. If a child of it holds its pipe, that is closed after a while."""
        if self.process.poll() is None:
            return "alive"
        self._dead_since = self._dead_since or now
        if now > self._dead_since + _LEAVING and self._inbox is not None:
            self._inbox.close()
        return "dead"

    def kill(self) -> None:
        """End the process and those that it started, and wait for a short time."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            with suppress(TimeoutExpired):
                self.process.wait(_LEAVING)

    async def ended(self) -> tuple[str, bool]:
        """How the process ended; waits for a short time."""
        for _ in range(round(_LEAVING / _LOOK)):
            if self.process.poll() is not None:
                break
            await asyncio.sleep(_LOOK)
        self.kill()
        return describe_exit(self.process.returncode), False

    async def close(self) -> None:
        """Close the pipes."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._inbox is None:
            self._from.close()
        else:
            self._inbox.close()
        if self._outbox is None:
            self._to.close()
        elif not self._outbox.is_closing():
            self._outbox.abort()


def _started(
    environment: Mapping[str, str], folder: str | None, path: object, *said: object
) -> tuple["Popen[bytes]", Any, Any]:
    """A new process, and the ends of the pipes to it and from it."""
    python = [sys.executable, *["-O"] * sys.flags.optimize]  # with asserts if they count here
    inbox, to = os.pipe()
    from_, outbox = os.pipe()
    words = [json.dumps(path), str(inbox), str(outbox), *map(json.dumps, said)]
    try:
        # It belongs to no case: the fence of another run in this process must not stop it.
        with opening_for(processes=True):
            process = Popen(
                [*python, "-c", _BEGINNING, *words],
                env=environment,
                cwd=folder,
                stdin=DEVNULL,
                stdout=2,  # what agents print must not get between the lines of a report
                pass_fds=(inbox, outbox),
                process_group=0,  # Ctrl-C is for the parent, which ends its workers
            )
    except BaseException:
        os.close(to)
        os.close(from_)
        raise
    finally:
        os.close(inbox)
        os.close(outbox)
    return process, os.fdopen(to, "wb", 0), os.fdopen(from_, "rb", 0)


def describe_exit(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "would not end"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
