"""What is due in a run: every trial of every case, each with its place in the report."""

from collections.abc import Callable
from dataclasses import field
from math import inf

from greenroom.cases.case import Case
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record
from greenroom.simulation.durable_calls import BeforeLive

OnEvent = Callable[[Event], None]


@record
class Trial:
    """One trial of a case, and where its result belongs."""

    position: int
    case: Case
    trial: int = 1


@record(frozen=False, eq=False)
class TrialState:
    """A play under way: what was done of it before, and who hears what happens."""

    play: Trial
    ledger: Ledger | None = None
    """The beginning of the run, if an earlier process was cut off in it."""
    judged: Ledger | None = None
    """What the metrics have asked models so far, if any of them has."""
    on_event: OnEvent | None = None
    on_judging: OnEvent | None = None
    on_restart: Callable[[Ledger, Ledger], None] | None = None
    """Hears how much of the run and of its judging still counts, when some is played again."""
    before_live: BeforeLive | None = None
    """Makes sure that the call of a real tool is written down for good, before its body begins."""
    paid: float = 0.0
    """What the part of it that an earlier process played has cost, in USD."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the report should know of how it was played."""
    goes_back_to: float = inf
    """The event from which on it was last found to be another run than the recorded one."""
    doubt: str = ""
    """Why it cannot be played again: a real tool may have acted in what was cut off."""

    @property
    def judging(self) -> Ledger:
        """Where metrics that ask models write that down; made for the first that may."""
        if self.judged is None:
            self.judged = Ledger()
        return self.judged
