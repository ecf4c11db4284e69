"""What is due in a run: every trial of every case, each with its place in the report."""

from collections.abc import Callable
from math import inf

from greenroom.cases.case import Case
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record

OnEvent = Callable[[Event], None]


@record
class Play:
    """One trial of a case, and where its result belongs."""

    position: int
    case: Case
    trial: int = 1


class Take:
    """A play under way: what was done of it before, and who hears what happens."""

    __slots__ = (
        "doubt",
        "goes_back_to",
        "judged",
        "ledger",
        "notes",
        "on_event",
        "on_judging",
        "on_restart",
        "paid",
        "play",
    )

    def __init__(
        self,
        play: Play,
        ledger: Ledger | None = None,
        judging: Ledger | None = None,
        on_event: OnEvent | None = None,
        on_judging: OnEvent | None = None,
        *,
        on_restart: Callable[[Ledger, Ledger], None] | None = None,
        notes: list[str] | None = None,
        goes_back_to: float = inf,
    ) -> None:
        self.play = play
        self.ledger = ledger
        """The beginning of the run, if an earlier process was cut off in it."""
        self.judged = judging
        """What the metrics have asked models so far, if any of them has."""
        self.on_event = on_event
        self.on_judging = on_judging
        self.on_restart = on_restart
        """Hears how much of the run and of its judging still counts, when some is played again."""
        self.paid = 0.0
        """What the part of it that an earlier process played has cost, in USD."""
        self.notes: list[str] = [] if notes is None else notes
        """What a reader of the report should know of how it was played."""
        self.goes_back_to = goes_back_to
        """The event from which on it was last found to be another run than the recorded one."""
        self.doubt = ""
        """Why it cannot be played again: a real tool may have acted in what was cut off."""

    @property
    def judging(self) -> Ledger:
        """Where metrics that ask models write that down; made for the first that may."""
        if self.judged is None:
            self.judged = Ledger()
        return self.judged

    @judging.setter
    def judging(self, judging: Ledger) -> None:
        self.judged = judging
