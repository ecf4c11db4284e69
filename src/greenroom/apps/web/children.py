"""Commands that the page starts: child processes that run cases, while the server only reads.

A child gets a list of arguments, never a shell, and the page shows exactly that command. Agent and set are those
of the server's own command line. What a child prints goes into a file next to the store, so a child continues
if the server is killed; a run that is stopped can be resumed.
"""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import time

from greenroom.errors import BadInput, NotFound
from greenroom.ledger.private_folders import make_private
from greenroom.models.named import home_of
from greenroom.reports.page.shapes import Child
from greenroom.store import Store

_SAID = 4_000
_PATIENCE = 10.0
"""Seconds that a child has, once asked to stop, to write down what it has."""


@dataclass(slots=True, eq=False)
class Started:
    """A child process that was requested; it may still wait for its turn."""

    id: str
    argv: Sequence[str]
    queue: str
    """Children of one queue run one after another; each set has its queue."""
    log: Path
    process: asyncio.subprocess.Process | None = None
    exit_code: int | None = None
    run: str = ""
    known: frozenset[str] = frozenset()
    """The runs that existed before it."""
    is_stopped: bool = False

    @property
    def stop_command(self) -> str:
        """The command that stops it from a terminal; empty while it waits for its turn."""
        return "" if self.process is None else f"kill -INT {self.process.pid}"

    def data(self) -> Child:
        """The child as the page shows it."""
        state = "waiting" if self.process is None else "running"
        if self.exit_code is not None:
            state = "ended"
        return Child(
            id=self.id,
            command=command_line(self.argv),
            state=state,
            run=self.run,
            exit_code=self.exit_code,
            said=self.said(),
        )

    def said(self) -> str:
        """The end of what it printed."""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(max(file.seek(0, 2) - _SAID, 0))
            return file.read().decode(errors="replace")
        return ""


def command_line(argv: Sequence[str]) -> str:
    """The command line that a person would type."""
    return shlex.join(["greenroom", *argv])


@dataclass(slots=True)
class Children:
    """All children of one server."""

    store: Store
    all: dict[str, Started] = field(default_factory=dict[str, Started])
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def start(self, argv: Sequence[str], queue: str) -> Started:
        """Run a command as soon as no other of its queue runs."""
        number = str(len(self.all) + 1)
        log = self.store.place / "web" / f"child-{int(time())}-{number}.log"
        child = Started(number, list(argv), queue, log)
        self.all[number] = child
        task = asyncio.create_task(self._run(child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return child

    async def _run(self, child: Started) -> None:
        async with self._locks.setdefault(child.queue, asyncio.Lock()):
            if child.is_stopped:
                child.exit_code = 130
                return
            child.known = frozenset(run.id for run in await asyncio.to_thread(self.store.runs))
            make_private(self.store.place, child.log.parent.name)
            with child.log.open("wb") as log:
                child.process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "greenroom",
                    *child.argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **self.store.database.environment()},
                    start_new_session=True,  # Ctrl-C for the server is passed on by it, once
                )
            code = None
            while code is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        code = await child.process.wait()
                child.run = child.run or await asyncio.to_thread(self._run_of, child)
            child.exit_code = code  # set last: an ended child must already know the run it began

    def _run_of(self, child: Started) -> str:
        """The run that a child has begun or resumed; there is one child of a set at a time."""
        if "--resume" in child.argv:
            return child.argv[child.argv.index("--resume") + 1]
        new = [run.id for run in self.store.runs() if run.id not in child.known]
        taken = {other.run for other in self.all.values()}
        return next((one for one in new if one not in taken), "")

    def child(self, number: str) -> Started:
        """The child with this number."""
        if number not in self.all:
            raise NotFound(f"this server has started no command {number!r}. Reload the page.")
        return self.all[number]

    def mine(self) -> list[str]:
        """The runs that this server's children have in progress."""
        return [child.run for child in self.all.values() if child.run and child.exit_code is None]

    def stop(self, run_id: str) -> Started:
        """Ask the child that runs this run, or that has this number, to stop; its run can be resumed."""
        child = self.under_way(run_id)
        child.is_stopped = True
        self._tell(child)
        return child

    def under_way(self, run_id: str) -> Started:
        """The child that runs this run, or that has this number."""
        for child in self.all.values():
            if run_id in (child.run, child.id) and child.exit_code is None:
                return child
        raise NotFound(
            f"run {run_id!r} was not started here, or has ended. Stop it where it was started: Ctrl-C."
        )

    def _tell(self, child: Started) -> None:
        if child.process is not None and child.exit_code is None:
            with suppress(ProcessLookupError):
                child.process.send_signal(signal.SIGINT)

    async def close(self) -> None:
        """Stop all children, and wait until they have saved their results."""
        for child in self.all.values():
            child.is_stopped = True
            self._tell(child)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_PATIENCE)


def check_model(name: str) -> None:
    """Refuse a model that is not a provider's: the page must not name code."""
    is_named = ":" in name or home_of(name) != ""
    if name and (".py" in name or "/" in name or not is_named):
        raise BadInput(
            f"model {name!r} should be a provider's, such as openai:gpt-4o-mini. Use your own models "
            f"in the terminal: --model."
        )
