"""A trial on its way through workers: what is known of it, and by when it must be over."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic, time
from typing import Any, Literal

from greenroom.errors import GreenroomError
from greenroom.ledger.codec import decode
from greenroom.ledger.events import Event, RunEnded
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import ended, seconds, trajectory
from greenroom.ledger.records import record
from greenroom.results.reader import verdict_from
from greenroom.results.result import CaseResult, broken, unmeasured
from greenroom.suite.resume import went_back
from greenroom.suite.trial import Settings, heard_by
from greenroom.suite.trial_state import TrialState
from greenroom.world.records import described

GRACE = 1.0
"""Seconds after its deadline until a trial counts as blocked; its worker's own watchdog needs less."""
BEGINNING = 60.0
"""Seconds in which an idle worker has to begin a trial."""


@record
class Done:
    """The worker came to a verdict."""

    told: dict[str, Any]


@record
class Died:
    """The worker is no more; `how` names the signal or exit code."""

    how: str


@record
class Cut:
    """The worker was ended by its parent, because this trial was overdue, or another."""

    overdue: Literal["", "playing", "measuring"] = ""
    """What this trial took too long for; empty if it was another's fault."""


Ending = Done | Died | Cut


@dataclass(slots=True, eq=False)
class WorkerTrial:
    """One trial, and all that its workers have told of it."""

    take: TrialState
    settings: Settings
    ledger: Ledger = field(init=False)
    judging: Ledger = field(init=False)
    notes: list[str] = field(default_factory=list[str])
    deaths: int = 0
    over: "asyncio.Future[Ending]" = field(init=False)
    waiting: set[str] = field(default_factory=set[str])
    """The calls of real tools that its worker was not yet allowed to begin."""
    missed: int = 0
    """How often in a row it was found overdue."""
    _sent: float = 0.0
    _since: float | None = None
    """When its playing or measuring began in this worker; None while it waits for its turn."""
    _spent: float = 0.0
    """Seconds it was played in earlier workers, also where that left no trace in the ledger."""
    _ears: dict[bool, Callable[[Event], None] | None] = field(init=False)

    def __post_init__(self) -> None:
        take = self.take
        self.ledger = Ledger() if take.ledger is None else take.ledger
        self.judging = take.judging
        self._spent = seconds(self.ledger)
        self._ears = {
            False: heard_by(take.on_event, take, self.settings),
            True: heard_by(take.on_judging, take, self.settings),
        }

    # In a worker

    def order(self) -> dict[str, Any]:
        """What the next worker is told."""
        self.over = asyncio.get_running_loop().create_future()
        self._sent, self._since, self.missed = monotonic(), None, 0
        self.waiting.clear()
        play = self.take.play
        return {
            "position": play.position,
            "case_id": play.case.id,
            "trial": play.trial,
            "ledger": self.ledger.dumps(),
            "judging": self.judging.dumps(),
            "is_recorded": self.take.before_live is not None,
        }

    def begin(self) -> None:
        """The worker has turned to it; its clock runs from here."""
        self._since = monotonic()

    def stand_still(self, seconds: float) -> None:
        """Another trial held up the worker for so long."""
        if self._since is not None:
            self._since = min(self._since + seconds, monotonic())

    def hear(self, line: str, *, judging: bool) -> None:
        """Take an event from the worker; BadLedger if it does not follow what is known."""
        ledger = self.judging if judging else self.ledger
        for event in decode([line], "a worker"):
            # What a worker was cut off from sending it sends once more.
            if event.seq >= len(ledger):
                self._write(ledger, event, event.at, self._ears[judging])
        if not judging and self.is_played:
            self.begin()  # with the measuring

    def _write(
        self, ledger: Ledger, event: Event, at: float, ear: Callable[[Event], None] | None
    ) -> None:
        ledger.append(event, at)
        if ear is not None:
            ear(event)

    def settle(self, ending: Ending) -> None:
        """Say how it went in this worker; what is said first counts."""
        if not self.over.done():
            self.over.set_result(ending)

    @property
    def is_played(self) -> bool:
        """Whether the run is over, and only measuring is left."""
        return ended(self.ledger) is not None

    @property
    def has_begun(self) -> bool:
        """Whether its worker has turned to it."""
        return self._since is not None

    def is_overdue(self, now: float) -> bool:
        """Whether it has been at work for longer than it may be, by its own limits."""
        return self._since is not None and now > self._since + self._allowed() + GRACE

    def is_stuck(self, now: float) -> bool:
        """Whether its worker should long have begun."""
        return self._since is None and now > self._sent + BEGINNING

    def _allowed(self) -> float:
        if self.is_played:
            return self.measuring_seconds
        return self.take.play.case.stop.max_seconds - self._spent

    @property
    def measuring_seconds(self) -> float:
        """How long its metrics may take, all together."""
        return self.settings.measuring.seconds_for(self.take.play.case)

    def cut(self) -> Cut:
        """What is told of this trial when its worker is ended for one that was overdue."""
        if self.missed < 2:
            return Cut()
        return Cut("measuring" if self.is_played else "playing")

    # Between workers

    def go_on(self, take: TrialState, *, was_blocked: bool) -> None:
        """Begin the next time where `take` does; tell the journal if that is not the end."""
        ledger = Ledger() if take.ledger is None else take.ledger
        is_shorter = len(ledger) < len(self.ledger) or len(take.judging) < len(self.judging)
        if is_shorter:
            self._restart(ledger, take.judging)
        elif not was_blocked:
            self._spent = seconds(ledger)
        elif self._since is not None and not self.is_played:
            self._spent += monotonic() - self._since

    def went_back(self) -> bool:
        """Whether the run came another way than before, and can be played anew from there."""
        take = TrialState(
            self.take.play,
            self.ledger,
            self.judging,
            on_restart=self._restart,
            notes=self.take.notes,
            goes_back_to=self.take.goes_back_to,
        )
        is_back = went_back(take, self.ledger)
        self.take.goes_back_to = take.goes_back_to
        return is_back and not take.doubt

    def _restart(self, ledger: Ledger, judging: Ledger) -> None:
        self.ledger, self.judging = ledger, judging
        self._spent = seconds(ledger)
        if self.take.on_restart is not None:
            self.take.on_restart(ledger, judging)

    def end(self, event: RunEnded) -> None:
        """End the run in the ledger, because its worker no longer can."""
        self._write(self.ledger, event, time(), self._ears[False])

    # The result

    def concluded(self, told: dict[str, Any]) -> CaseResult:
        """The result that a worker came to."""
        case, keeps = self.take.play.case, self.settings.keep_ledgers
        # An author's tags may be anything; they come from the case itself.
        data: dict[str, Any] = {**told["verdict"], "tags": []}
        verdict = verdict_from(data, f"the verdict on case {case.id!r}", None)
        notes = (*verdict.notes, *self.notes)
        result = replace(verdict, asked=case, tags=tuple(case.tags), notes=notes)
        for name, outcome in result.scores.items():
            self.settings.hooks.metric_completed(case, name, outcome)
        if not told["kept"]:
            return result
        if keeps:
            return replace(result, kept=self.ledger, blamed=None)
        steps = () if result.passed else tuple(trajectory(self.ledger, brief=True))
        return replace(result, steps=steps)

    def broke(self, error: GreenroomError) -> CaseResult:
        """The result of a trial that no worker could finish."""
        case = self.take.play.case
        names = self.settings.measuring.names(case)
        if not len(self.ledger):
            return broken(case, error, metrics=names)
        if ended(self.ledger) is None:
            self.end(RunEnded(reason="error", phase=error.phase, **described(error)))
        keeps = self.settings.keep_ledgers
        result = unmeasured(
            case, self.ledger, error, names, judging=self.judging, keep_ledger=keeps
        )
        return replace(result, notes=(*result.notes, *self.notes))
