"""A trial on its way through workers: what is known about it, and when it must be over."""

import asyncio
from dataclasses import dataclass, field, replace
from time import monotonic, time
from typing import Any, Literal

from msgspec import Struct

from greenroom.errors import GreenroomError
from greenroom.ledger.codec import decode
from greenroom.ledger.events import Event, RunEnded
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import ended, seconds
from greenroom.ledger.trajectory import trajectory
from greenroom.results.data import outcome_data, verdict_from
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import broken, unmeasured
from greenroom.suite.settings import Settings
from greenroom.suite.trial import observer
from greenroom.suite.trial_state import OnEvent, TrialState
from greenroom.suite.workers.blobs import hand_over, take_over
from greenroom.world.records import describe_error

GRACE = 1.0
"""Seconds after its deadline until a trial counts as blocked; its worker's own watchdog needs less."""
BEGINNING = 60.0
"""Seconds that an idle worker gets to begin a trial."""


class Done(Struct, frozen=True):
    """The worker sent a verdict."""

    message: dict[str, Any]


class Died(Struct, frozen=True):
    """The worker is gone; `how` names the signal or exit code."""

    how: str


class Lost(Struct, frozen=True):
    """The worker is gone together with its machine, which says nothing about the trial."""

    how: str


class Cut(Struct, frozen=True):
    """The worker was ended by its parent, because this or another trial was overdue."""

    overdue: Literal["", "simulating", "measuring"] = ""
    """The part for which this trial took too long; empty if another trial was at fault."""


Ending = Done | Died | Lost | Cut


@dataclass(slots=True, eq=False)
class WorkerTrial:
    """One trial, and all that its workers have reported about it."""

    state: TrialState
    settings: Settings
    ledger: Ledger = field(init=False)
    judging: Ledger = field(init=False)
    notes: list[str] = field(default_factory=list[str])
    deaths: int = 0
    losses: int = 0
    over: "asyncio.Future[Ending]" = field(init=False)
    waiting: set[str] = field(default_factory=set[str])
    """The calls of real tools that its worker was not yet allowed to begin."""
    missed: int = 0
    """How often in a row it was found overdue."""
    _sent: float = 0.0
    _since: float | None = None
    """When its simulation or measuring began in this worker; None while it waits for its turn."""
    _spent: float = 0.0
    """Seconds it ran in earlier workers, including time that left no trace in the ledger."""
    _observers: dict[bool, OnEvent | None] = field(init=False)

    def __post_init__(self) -> None:
        state = self.state
        self.ledger = Ledger() if state.ledger is None else state.ledger
        self.judging = state.judging
        self._spent = seconds(self.ledger)
        self._observers = {
            False: observer(state.on_event, state, self.settings),
            True: observer(state.on_judging, state, self.settings),
        }

    # In a worker

    def order(self) -> dict[str, Json]:
        """The message to the next worker."""
        self.over = asyncio.get_running_loop().create_future()
        self._sent, self._since, self.missed = monotonic(), None, 0
        self.waiting.clear()
        trial, replayed = self.state.trial, self.state.recorded
        ledger = self.ledger.dumps()
        hand_over(ledger)
        return {
            "position": trial.position,
            "case_id": trial.case.id,
            "trial": trial.number,
            "run_id": self.state.run_id,
            "ledger": ledger,
            "judging": self.judging.dumps(),
            "is_recorded": self.state.before_live is not None,
            "now": self.state.now,
            "scores": {name: outcome_data(one) for name, one in self.state.scores.items()},
            "replays": None if replayed is None else replayed.dumps(),
        }

    def begin(self) -> None:
        """Start its clock: the worker has begun with it."""
        self._since = monotonic()

    def pause_clock(self, seconds: float) -> None:
        """Do not count the seconds for which another trial blocked the worker."""
        if self._since is not None:
            self._since = min(self._since + seconds, monotonic())

    def add_event(self, line: str, *, judging: bool) -> None:
        """Take an event from the worker; BadLedger if it does not follow what is known."""
        ledger = self.judging if judging else self.ledger
        take_over(line)
        for event in decode([line], "a worker"):
            # A worker that was interrupted while sending sends the event again.
            if event.seq >= len(ledger):
                self._write(ledger, event, event.at, self._observers[judging])
        if not judging and self.is_simulated:
            self.begin()  # with the measuring

    def _write(self, ledger: Ledger, event: Event, at: float, observe: OnEvent | None) -> None:
        written = ledger.append(event, at)
        if observe is not None:
            observe(written)

    def settle(self, ending: Ending) -> None:
        """Set how it ended in this worker; the first ending counts."""
        if not self.over.done():
            self.over.set_result(ending)

    @property
    def is_simulated(self) -> bool:
        """Whether the simulation is over, and only measuring is left."""
        return ended(self.ledger) is not None

    @property
    def has_begun(self) -> bool:
        """Whether its worker has begun with it."""
        return self._since is not None

    def is_overdue(self, now: float) -> bool:
        """Whether it has run for longer than its own limits allow."""
        return self._since is not None and now > self._since + self._allowed() + GRACE

    def is_stuck(self, now: float) -> bool:
        """Whether its worker should long have begun."""
        return self._since is None and now > self._sent + BEGINNING

    def _allowed(self) -> float:
        if self.is_simulated:
            return self.measuring_seconds
        return self.settings.seconds_for(self.state.trial.case) - self._spent

    @property
    def measuring_seconds(self) -> float:
        """How long its metrics may take in total."""
        measuring = self.settings.measuring
        return measuring.seconds_for(len(measuring.names(self.state.trial.case)))

    def cut(self) -> Cut:
        """How this trial ends when its worker is ended because one was overdue."""
        if self.missed < 2:
            return Cut()
        return Cut("measuring" if self.is_simulated else "simulating")

    # Between workers

    def resume(self, state: TrialState, *, was_blocked: bool) -> None:
        """Begin the next time where `state` does; update the journal if that is not the end."""
        ledger = Ledger() if state.ledger is None else state.ledger
        is_shorter = len(ledger) < len(self.ledger) or len(state.judging) < len(self.judging)
        if is_shorter:
            self._restart(ledger, state.judging)
        elif not was_blocked:
            self._spent = seconds(ledger)
        elif self._since is not None and not self.is_simulated:
            self._spent += monotonic() - self._since

    def go_back(self) -> bool:
        """Whether the agent left the recorded path, and the trial can run again from there."""
        state = TrialState(
            self.state.trial,
            self.ledger,
            self.judging,
            on_restart=self._restart,
            notes=self.state.notes,
            drifted_at=self.state.drifted_at,
        )
        is_back = state.go_back(self.ledger)
        self.state.drifted_at = state.drifted_at
        return is_back and not state.doubt

    def _restart(self, ledger: Ledger, judging: Ledger) -> None:
        self.ledger, self.judging, self.state.judging = ledger, judging, judging
        self._spent = seconds(ledger)
        if self.state.on_restart is not None:
            self.state.on_restart(ledger, judging)

    def end(self, event: RunEnded) -> None:
        """End the run in the ledger, because its worker no longer can."""
        self._write(self.ledger, event, time(), self._observers[False])

    # The result

    def result(self, message: dict[str, Any]) -> CaseResult:
        """The result from a worker's verdict."""
        case, keeps = self.state.trial.case, self.settings.keep_ledgers
        # An author's tags may be anything; they come from the case itself.
        data: dict[str, Any] = {**message["verdict"], "tags": []}
        verdict = verdict_from(data, f"the verdict on case {case.id!r}", None)
        notes = (*verdict.notes, *self.notes)
        result = replace(verdict, asked=case, tags=tuple(case.tags), notes=notes)
        result = self.settings.hooks.metrics_completed(case, result)
        if not message["kept"]:
            return result
        if keeps:
            return replace(result, kept=self.ledger, blamed=None)
        steps = () if result.passed else tuple(trajectory(self.ledger, brief=True))
        return replace(result, steps=steps)

    def error_result(self, error: GreenroomError) -> CaseResult:
        """The result of a trial that no worker could finish."""
        case = self.state.trial.case
        names = self.settings.measuring.names(case)
        if not len(self.ledger):
            return broken(case, error, metrics=names)
        if ended(self.ledger) is None:
            self.end(RunEnded(reason="error", phase=error.phase, **describe_error(error)))
        keeps = self.settings.keep_ledgers
        result = unmeasured(
            case, self.ledger, error, names, judging=self.judging, keep_ledger=keeps
        )
        return replace(result, notes=(*result.notes, *self.notes))
