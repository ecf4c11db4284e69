"""One worker, as its parent sees it: a process, two pipes, and the trials it is running."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from greenroom.errors import BadInput, GreenroomError, WorkerDied
from greenroom.ledger.redaction import keep_secret
from greenroom.simulation.fence import opening_for
from greenroom.suite.workers.closed_in import ClosedIn
from greenroom.suite.workers.trial import Cut, Died, Done, Ending, WorkerTrial
from greenroom.suite.workers.wire import (
    AGENT,
    BEGUN,
    DONE,
    FAILED,
    JUDGE,
    KEEPS,
    LONGEST,
    READY,
    STALLED,
    WAITS,
    packed,
    unpacked,
)

STARTING: Final = 120.0
"""Seconds in which a worker has to import all it needs."""
_LEAVING: Final = 2.0
_LOOK: Final = 0.01

# The parent's path, because the author's code may not be found without it.
_BEGINNING: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from greenroom.suite.workers.worker import main; main(*map(json.loads, sys.argv[2:]))"
)


class Worker:
    """A process that runs trials. `trials` are those it is running, by position."""

    def __init__(
        self, note: Callable[[str], None] = lambda _: None, fence: ClosedIn | None = None
    ) -> None:
        self._note = note
        self.trials: dict[int, WorkerTrial] = {}
        self.is_gone = False
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._process, self._to, self._from = _started(fence)
        self._cut: dict[WorkerTrial, Cut] = {}
        """How each trial ends when the parent ends this worker because one was overdue."""
        self._died: str = ""
        self._dead_since: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self, briefing: dict[str, Any]) -> dict[str, Any]:
        """What the worker found when it did as the briefing says."""
        try:
            await self._connect()
            self._outbox.write(packed(briefing))
            async with asyncio.timeout(STARTING):
                return await self._ready
        except TimeoutError:
            self.kill()
            raise WorkerDied(
                f"a worker process was not ready within {STARTING:g} s; what it imports takes "
                f"longer, or hangs."
            ) from None
        except BaseException:
            self.kill()
            raise

    async def _connect(self) -> None:
        reader = asyncio.StreamReader(LONGEST, loop=self._loop)
        self._inbox, _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader, loop=self._loop), self._from
        )
        self._outbox, _ = await self._loop.connect_write_pipe(asyncio.BaseProtocol, self._to)
        self._reading = asyncio.create_task(self._read(reader))

    async def run(self, trial: WorkerTrial) -> Ending:
        """Let the worker run a trial, or resume it."""
        position = trial.state.trial.position
        self.trials[position] = trial
        self._outbox.write(packed(trial.order()))
        try:
            return await trial.over
        finally:
            self.trials.pop(position, None)

    # What it sends

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._receive(line)
        except (GreenroomError, ValueError, KeyError, TypeError) as error:
            self._died = f"sent something that cannot be understood: {error}"
            self._end_process()
        finally:
            self.is_gone = True
            await self._exit()
            self._end_process()
            self._settle(self._died or _describe_exit(self._process.returncode))

    def _receive(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            return  # it died while it was writing
        mark, position, text = unpacked(line)
        if mark in (READY, FAILED):
            self._begin(mark == READY, json.loads(text))
        elif mark == KEEPS:
            keep_secret(**json.loads(text))
        elif mark == STALLED:
            self._pause_others(position, json.loads(text))
        elif (trial := self.trials.get(position)) is None:
            return
        elif mark == BEGUN:
            trial.begin()
        elif mark == DONE:
            trial.settle(Done(json.loads(text)))
        elif mark == WAITS:
            self._confirm_call(trial, json.loads(text))
        else:
            assert mark in (AGENT, JUDGE)
            trial.add_event(text, judging=mark == JUDGE)

    def _confirm_call(self, trial: WorkerTrial, message: dict[str, Any]) -> None:
        """Let a real tool act once its call is on disk; if it cannot be, the run stops."""
        call_id: str = message["call"]

        def answer() -> None:
            # A worker that is gone has not acted, and its trial goes on elsewhere.
            if not self.is_gone and not self._outbox.is_closing():
                trial.waiting.discard(call_id)
                self._outbox.write(packed({"safe": message["number"]}))

        def tell(error: GreenroomError | None) -> None:
            if error is None:
                with suppress(RuntimeError):  # in a closed loop nothing waits any more
                    self._loop.call_soon_threadsafe(answer)

        trial.waiting.add(call_id)
        assert trial.state.before_live is not None
        trial.state.before_live(call_id, tell)

    def _pause_others(self, culprit: int, message: dict[str, Any]) -> None:
        """One trial blocked its worker: the clocks of the others stood still."""
        for position, trial in self.trials.items():
            if position != culprit:
                trial.pause_clock(float(message["seconds"]))
        if message["note"]:
            self._note(str(message["note"]))

    def _begin(self, is_ready: bool, message: dict[str, Any]) -> None:
        if self._ready.done():
            return  # too late
        if is_ready:
            self._ready.set_result(message)
        else:
            why = f"a worker process could not be made ready: {message['why']}"
            self._ready.set_exception(BadInput(why))

    def _settle(self, how: str) -> None:
        """The worker is gone: end whatever waits for it."""
        for trial in tuple(self.trials.values()):
            trial.settle(self._cut.get(trial) or Died(how))
        if not self._ready.done():
            self._ready.set_exception(WorkerDied(f"a worker process {how} before it was ready."))
            self._ready.exception()  # marked as seen, since the wait for it may be over

    # Its end

    def look(self, now: float) -> None:
        """End the worker if a trial of it is overdue, or its pipe if it is dead already."""
        if self._process.poll() is not None:
            self.is_gone = True
            self._dead_since = self._dead_since or now
            if now > self._dead_since + _LEAVING and self._reading is not None:
                # A child of the worker holds the other end of the pipe.
                self._inbox.close()
        elif not self.is_gone:
            self._check_trials(now)

    def _check_trials(self, now: float) -> None:
        trials = self.trials.values()
        for trial in trials:
            # Twice in a row, so that what the worker has sent meanwhile is read first.
            trial.missed = trial.missed + 1 if trial.is_overdue(now) else 0
        if any(trial.missed > 1 for trial in trials):
            self._cut = {trial: trial.cut() for trial in trials}
            self._end_process()
        elif not any(t.has_begun for t in trials) and any(t.is_stuck(now) for t in trials):
            self._died = "did not begin the trial it was given"
            self._end_process()

    def kill(self) -> None:
        """End it at once, and all that waits for it."""
        self._end_process()
        for trial in tuple(self.trials.values()):
            trial.over.cancel()

    def _end_process(self) -> None:
        self.is_gone = True
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVING)

    async def _exit(self) -> None:
        """Wait until the process has ended, but not for long."""
        for _ in range(round(_LEAVING / _LOOK)):
            if self._process.poll() is not None:
                return
            await asyncio.sleep(_LOOK)

    async def leave(self) -> None:
        """Ask it to end, and wait for that, but not for long."""
        if not self._outbox.is_closing():
            self._outbox.write(packed(None))
        try:
            await self._exit()
        finally:
            await self.close()

    async def close(self) -> None:
        """End it, if nothing else did, and close its pipes."""
        self.kill()
        if self._is_closed:
            return
        self._is_closed = True
        if self._reading is None:
            self._to.close()
            self._from.close()
            return
        self._inbox.close()
        if not self._outbox.is_closing():
            self._outbox.abort()
        await asyncio.wait({self._reading}, timeout=_LEAVING)


def _started(fence: ClosedIn | None) -> tuple["subprocess.Popen[bytes]", Any, Any]:
    """A new process, and the ends of the pipes to it and from it."""
    python = [sys.executable, *["-O"] * sys.flags.optimize]  # with asserts if they count here
    rules = json.dumps(None if fence is None else fence.rules)
    inbox, to = os.pipe()
    from_, outbox = os.pipe()
    try:
        # It belongs to no case: the fence of another run in this process is not meant for it.
        with opening_for(processes=True):
            process = subprocess.Popen(
                [*python, "-c", _BEGINNING, json.dumps(sys.path), str(inbox), str(outbox), rules],
                env=None if fence is None else fence.environment,
                stdin=subprocess.DEVNULL,
                stdout=2,  # what agents print must not get between the lines of a report
                pass_fds=(inbox, outbox),
                process_group=0,  # Ctrl-C is for the parent, who ends its workers
            )
    except BaseException:
        os.close(to)
        os.close(from_)
        raise
    finally:
        os.close(inbox)
        os.close(outbox)
    return process, os.fdopen(to, "wb", 0), os.fdopen(from_, "rb", 0)


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "would not end"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
