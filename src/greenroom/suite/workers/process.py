"""One worker, as its parent sees it: a process somewhere, and the trials it is running."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from greenroom.errors import BadInput, GreenroomError, WorkerDied
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import keep_secret
from greenroom.suite.workers import wire
from greenroom.suite.workers.trial import Cut, Died, Done, Ending, Lost, WorkerTrial
from greenroom.suite.workers.turns import TurnGiver
from greenroom.suite.workers.wire import packed, unpacked
from greenroom.suite.workers.workplace import Link

STARTING: Final = 120.0
"""Seconds that a worker gets to import what it needs."""
_LEAVING: Final = 2.0


class Worker:
    """A process that runs trials. `trials` are those it is running, by position."""

    def __init__(self, link: Link, turns: TurnGiver, note: Callable[[str], None]) -> None:
        self._note = note
        self._turns = turns
        self.trials: dict[int, WorkerTrial] = {}
        self.notes: list[str] = []
        """Notes for the report that it sent at its end."""
        self.is_gone = False
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[dict[str, object]] = self._loop.create_future()
        self._link = link
        self._cut: dict[WorkerTrial, Cut] = {}
        """How each trial ends when the parent ends this worker because one was overdue."""
        self._died: str = ""
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self, briefing: dict[str, Any]) -> dict[str, Any]:
        """Start the worker and wait until it is ready; returns the digests of what it found."""
        try:
            await self._link.open(briefing)
            self._reading = asyncio.create_task(self._read())
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

    async def run(self, trial: WorkerTrial) -> Ending:
        """Let the worker run a trial, or resume it."""
        position = trial.state.trial.position
        self.trials[position] = trial
        self._link.write(packed(trial.order()))
        try:
            return await trial.over
        finally:
            self.trials.pop(position, None)

    # What it sends

    async def _read(self) -> None:
        try:
            while line := await self._link.readline():
                self._receive(line)
        except (GreenroomError, ValueError, KeyError, TypeError) as error:
            self._died = f"sent something that cannot be understood: {error}"
            self._end_process()
        finally:
            self.is_gone = True
            how, is_lost = await self._link.ended()
            self._settle(Lost(how) if is_lost and not self._died else Died(self._died or how))

    def _receive(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            return  # it died while it was writing
        mark, position, text = unpacked(line)
        if mark in (wire.READY, wire.FAILED):
            self._begin(mark == wire.READY, json.loads(text))
        elif mark == wire.KEEPS:
            keep_secret(**json.loads(text))
        elif mark == wire.TURN:
            self._turns.receive(json.loads(text), self._give_turn)
        elif mark == wire.NOTES:
            self.notes += json.loads(text)
        elif mark == wire.STALLED:
            self._pause_others(position, json.loads(text))
        elif (trial := self.trials.get(position)) is None:
            return
        elif mark == wire.BEGUN:
            trial.begin()
        elif mark == wire.DONE:
            trial.settle(Done(json.loads(text)))
        elif mark == wire.WAITS:
            self._confirm_call(trial, json.loads(text))
        else:
            assert mark in (wire.AGENT, wire.JUDGE)
            trial.add_event(text, judging=mark == wire.JUDGE)

    def _give_turn(self, message: dict[str, Json]) -> None:
        self._link.write(packed(message))

    def _confirm_call(self, trial: WorkerTrial, message: dict[str, Any]) -> None:
        """Let a real tool act once its call is on disk; if it cannot be, the run stops."""
        call_id: str = message["call"]

        def answer() -> None:
            # A worker that is gone has not acted, and its trial continues elsewhere.
            if not self.is_gone:
                trial.waiting.discard(call_id)
                self._link.write(packed({"safe": message["number"]}))

        def tell(error: GreenroomError | None) -> None:
            if error is None:
                with suppress(RuntimeError):  # the loop is closed, and no one waits
                    self._loop.call_soon_threadsafe(answer)

        trial.waiting.add(call_id)
        assert trial.state.before_live is not None
        trial.state.before_live(call_id, tell)

    def _pause_others(self, culprit: int, message: dict[str, Any]) -> None:
        """Extend the deadlines of a worker's trials by the time for which one of them blocked it."""
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

    def _settle(self, ending: Died | Lost) -> None:
        """Release everything that waits for a worker that is gone."""
        for trial in tuple(self.trials.values()):
            trial.settle(self._cut.get(trial) or ending)
        if not self._ready.done():
            why = f"a worker process {ending.how} before it was ready."
            self._ready.set_exception(WorkerDied(why))
            self._ready.exception()  # marked as seen, since the wait for it may be over

    # The end of the worker

    def look(self, now: float) -> None:
        """End the worker if one of its trials is overdue; one that cannot be reached at the moment gets time."""
        presence = self._link.presence(now)
        if presence == "dead":
            self.is_gone = True
        elif presence == "alive" and not self.is_gone:
            self._check_trials(now)

    def _check_trials(self, now: float) -> None:
        trials = self.trials.values()
        for trial in trials:
            # Only when found overdue twice in a row, so that what the worker has sent meanwhile is read first.
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
        self._link.kill()

    async def leave(self) -> None:
        """Ask it to end, and wait for a short time."""
        self._link.write(packed(None))
        try:
            await self._link.ended()
        finally:
            await self.close()

    async def close(self) -> None:
        """End it, if nothing else did, and free what is held for it."""
        self.kill()
        if self._is_closed:
            return
        self._is_closed = True
        await self._link.close()
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=_LEAVING)
