"""`greenroom eval watch`: cases played again whenever something changes.

Every run is a process of its own, so that changed code counts. What it came to is read from the
report it leaves behind.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import strftime

from greenroom.apps.cli.event_loop import to_the_end
from greenroom.apps.cli.exits import PASSED, Interrupted, Stopped, telling
from greenroom.apps.cli.notification import notify
from greenroom.apps.cli.request import Order
from greenroom.apps.cli.watched_files import Places, places_of
from greenroom.cases import case_data, read_evalset
from greenroom.errors import BadInput, MissingExtra
from greenroom.ledger.plain import Json
from greenroom.reports.console import totals
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Report

_COMMAND = (sys.executable, "-m", "greenroom.apps.cli")
_PATIENCE = 5.0
"""Seconds a run may take to end after it was told to."""
_MOST = 100
"""How many cases are named as those to be played first; a command line has its limits."""


def watch(order: Order, interval: float, notifies: bool) -> int:
    """Play, wait for a change, play again, until somebody interrupts."""
    with telling(order.verbose), TemporaryDirectory(prefix="greenroom-watch-") as folder:
        watching = Watch(order, Path(folder) / "report.json", notifies)
        changes = _changes(places_of(order), interval)
        try:
            to_the_end(lambda: watching.go(changes))
        except Interrupted as stop:
            raise Stopped(f"{stop}; {watching.verdict}", stop.exit_code) from None
    return PASSED


async def _changes(places: Places, interval: float) -> AsyncIterator[list[Path]]:
    """Files that matter, gathered until nothing has changed for a while."""
    try:
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]
    except ImportError as error:
        raise MissingExtra(
            "eval watch needs the package 'watchfiles'. Install it with pip install "
            "'greenroom[watch]'."
        ) from error
    gathered = int(interval * 1000)
    async for found in awatch(
        *places.folders,
        watch_filter=lambda _, path: places.matter(Path(path)),
        debounce=max(gathered * 4, 1600),
        step=gathered,
    ):
        yield sorted({Path(path) for _, path in found})


class Watch:
    """An order carried out again and again; at any time at most one run of it is under way."""

    def __init__(self, order: Order, report: Path, notifies: bool) -> None:
        self._order = order
        self._report = report
        self._notifies = notifies
        self._terminal = Terminal()
        self._failed: list[str] = []
        self._known = self._cases()
        self.verdict = "nothing was played to its end"

    async def go(self, changes: AsyncIterator[list[Path]]) -> None:
        """Play once, then after every change; a run that is out of date is broken off."""
        running = asyncio.create_task(self._play([]))
        try:
            async for changed in changes:
                await _ended(running)
                running = asyncio.create_task(self._play(changed))
        finally:
            await _ended(running)

    async def _play(self, changed: Sequence[Path]) -> None:
        self._say_hello(changed)
        self._report.unlink(missing_ok=True)
        code = await self._run_alone(self._affected())
        self._take_verdict(code)
        self._terminal.say(styled("watching; Ctrl-C ends it", "dim"))
        if self._notifies:
            await notify(f"greenroom: {self.verdict}", self._terminal)

    def _say_hello(self, changed: Sequence[Path]) -> None:
        """Begin a new page that still shows what came before it."""
        if not changed:
            return
        if self._terminal.is_terminal:
            self._terminal.clear()
        names = ", ".join(path.name for path in changed[:5])
        self._terminal.say(styled("last time: ", "dim"), self.verdict)
        self._terminal.say(styled("changed: ", "dim"), names)

    async def _run_alone(self, first: Sequence[str]) -> int:
        words = ["eval", "run", *self._order.words(), "--no-store"]
        words += ["--leave-report", str(self._report)]
        for case_id in first[:_MOST]:
            words += ["--first", case_id]
        # A session of its own: Ctrl-C is for us, and we tell it politely.
        process = await asyncio.create_subprocess_exec(*_COMMAND, *words, start_new_session=True)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                await _put_down(process)

    def _take_verdict(self, code: int) -> None:
        try:
            report = Report.load(self._report)
        except BadInput:
            self.verdict = f"not played (exit code {code}), {strftime('%H:%M:%S')}"
            return
        self._failed = list(dict.fromkeys(result.case_id for result in report.failures))
        self.verdict = f"{totals(report).plain}, {strftime('%H:%M:%S')}"

    # Which cases go first

    def _affected(self) -> list[str]:
        """The cases that were changed or failed last time."""
        before, self._known = self._known, self._cases()
        changed = [name for name, data in self._known.items() if before.get(name) != data]
        return list(dict.fromkeys([*changed, *self._failed]))

    def _cases(self) -> dict[str, Json]:
        """The cases as data, if they are kept in one file; code is for the runs to load."""
        try:
            return {case.id: case_data(case) for case in read_evalset(self._order.cases)}
        except BadInput:
            return {}


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _put_down(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _PATIENCE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
