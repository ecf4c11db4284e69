"""`greenroom eval watch`: cases run again whenever something changes.

Every run is a new process, so that changed code takes effect. Its verdict is read from the report that
it writes.
"""

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import strftime

from greenroom.apps.cli.event_loop import to_the_end
from greenroom.apps.cli.exits import Interrupted, Stopped
from greenroom.apps.cli.request import Order
from greenroom.cases import case_data, read_evalset
from greenroom.cases.suffixes import SUFFIXES
from greenroom.errors import BadInput, MissingExtra, NotFound
from greenroom.installation import how_to_install
from greenroom.ledger.plain import Json
from greenroom.ledger.safe_text import harmless
from greenroom.ledger.text_files import similar_file
from greenroom.reports.console import totals
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Report
from greenroom.suite.inputs.references import split_reference
from greenroom.suite.inputs.sources import is_usual

_COMMAND = (sys.executable, "-m", "greenroom.apps.cli")
_PATIENCE = 5.0
"""Seconds a run may take to end after it was asked to."""
_MOST = 100
"""At most this many cases are named to run first, because command lines have a length limit."""
_CODE = (".py", ".md", ".txt", ".j2", ".jinja", ".toml")
"""Files that an agent may be made of: its code, and the prompts and settings that it reads."""
_NOT_OURS = ("__pycache__", "node_modules", "venv")


def watch(order: Order, interval: float, notifies: bool) -> None:
    """Run the cases, wait for a change and run them again, until interrupted."""
    with TemporaryDirectory(prefix="greenroom-watch-") as folder:
        watching = Watch(order, Path(folder) / "report.json", notifies)
        changes = _changes(places_of(order), interval)
        try:
            to_the_end(lambda: watching.go(changes))
        except Interrupted as stop:
            raise Stopped(f"{stop}; {watching.verdict}", stop.exit_code) from None


async def _changes(places: "Places", interval: float) -> AsyncIterator[list[Path]]:
    """Batches of changed files that matter, each collected until nothing has changed for a while."""
    try:
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]
    except ImportError as error:
        raise MissingExtra(
            f"eval watch needs the package 'watchfiles'. Install it with {how_to_install('watch')}."
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
    """An order carried out again and again, at most one run at a time."""

    def __init__(self, order: Order, report: Path, notifies: bool) -> None:
        self._order = order
        self._report = report
        self._notifies = notifies
        self._terminal = Terminal()
        self._failed: list[str] = []
        self._known = self._cases()
        self.verdict = "no run was completed"

    async def go(self, changes: AsyncIterator[list[Path]]) -> None:
        """Run once, then after every change; a run that is out of date is stopped."""
        running = asyncio.create_task(self._run([]))
        try:
            async for changed in changes:
                await _ended(running)
                running = asyncio.create_task(self._run(changed))
        finally:
            await _ended(running)

    async def _run(self, changed: Sequence[Path]) -> None:
        self._begin_page(changed)
        self._report.unlink(missing_ok=True)
        code = await self._run_alone(self._affected())
        self._take_verdict(code)
        self._terminal.say(styled("watching; Ctrl-C ends it", "dim"))
        if self._notifies:
            await notify(f"greenroom: {self.verdict}", self._terminal)

    def _begin_page(self, changed: Sequence[Path]) -> None:
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
        # In its own session: Ctrl-C reaches only this process, which then ends the run.
        process = await asyncio.create_subprocess_exec(*_COMMAND, *words, start_new_session=True)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                await _terminate(process)

    def _take_verdict(self, code: int) -> None:
        try:
            report = Report.load(self._report)
        except BadInput:
            self.verdict = f"not run (exit code {code}), {strftime('%H:%M:%S')}"
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


async def _terminate(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _PATIENCE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def notify(text: str, terminal: Terminal) -> None:
    """Notify the desktop if possible, else ring the terminal's bell."""
    command = _command(harmless(text))
    if command is None:
        terminal.bell()
        return
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=nothing, stderr=nothing)
    if await process.wait():
        terminal.bell()


def _command(text: str) -> list[str] | None:
    if sys.platform == "darwin" and shutil.which("osascript"):
        return [
            "osascript",
            "-e",
            f"display notification {json.dumps(text)} with title {json.dumps('Greenroom')}",
        ]
    if shutil.which("notify-send"):
        return ["notify-send", "--", "Greenroom", text]
    return None


# Which files matter


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of agents, and the files and folders that cases, config and mocks are from."""

    homes: frozenset[Path]
    data: frozenset[Path]

    @property
    def folders(self) -> list[Path]:
        """Every folder to watch."""
        return sorted(self.homes | {path if path.is_dir() else path.parent for path in self.data})

    def matter(self, file: Path) -> bool:
        """Whether a change of this file may change a verdict."""
        if file in self.data or (file.suffix in SUFFIXES and _lies_in(file, self.data)):
            return True
        counts = file.suffix in _CODE or (is_usual(file) and not self.data)
        return counts and _lies_in(file, self.homes)


def _lies_in(file: Path, folders: frozenset[Path]) -> bool:
    inside = (file.relative_to(folder).parts for folder in folders if file.is_relative_to(folder))
    return any(
        not any(part.startswith(".") or part in _NOT_OURS for part in parts) for parts in inside
    )


def places_of(order: Order) -> Places:
    """The places that an order depends on."""
    homes = frozenset(_home(agent).resolve() for agent in order.agents)
    return Places(homes, frozenset(path.resolve() for path in _data_places(order)))


def _home(agent: str) -> Path:
    """The folder that an agent lives in."""
    where, _ = split_reference(agent)
    module = Path(*where.split("."))
    for path in (Path(where), module, module.with_suffix(".py")):
        if path.exists():
            return path if path.is_dir() else path.parent
    if where.endswith(".py") or "/" in where:
        raise NotFound(f"there is no file {where!r}.{similar_file(Path(where))}")
    return Path()  # an installed module is rarely edited, but files here may be


def _data_places(order: Order) -> Iterator[Path]:
    resources = str(order.passed_on.get("resources", ""))
    middleware: Iterable[str] = order.passed_on.get("middleware", ())
    for name in (order.cases, order.config, order.mocks, order.model, resources, *middleware):
        path = Path(split_reference(name)[0])
        if name and (path.suffix in SUFFIXES or path.exists()):
            # A glob starts in the first folder that exists.
            yield path if path.exists() else next(f for f in path.parents if f.exists())
