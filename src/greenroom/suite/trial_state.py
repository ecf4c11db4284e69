"""A trial in progress: which one it is, and what an earlier process left of it."""

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from greenroom.backends.backend import DRIFTED, Backend
from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome
from greenroom.ledger.events import Event, Noted, RunResumed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import is_object
from greenroom.ledger.questions import ended, started
from greenroom.results.words import number_of
from greenroom.simulation.gate import BeforeLive
from greenroom.suite.storage.resume import before_calls, reason_for_doubt, up_to_last_pause

if TYPE_CHECKING:
    from greenroom.suite.recordings import RecordedTrial

OnEvent = Callable[[Event], None]
FindBackend = Callable[[], Backend | None]
"""Finds the backend of a trial when it is called."""


class Trial(Struct, frozen=True):
    """One trial of a case: which repeat it is, and the position of its result in the report."""

    position: int
    case: Case
    number: int = 1


class PartialTrial(Protocol):
    """A trial that was in progress when its process ended, as far as it was recorded."""

    ledger: Ledger
    judging: Ledger


class TrialState(Struct, eq=False):
    """A trial in progress: the part that an earlier process ran, and its observers."""

    trial: Trial
    ledger: Ledger | None = None
    """The beginning of the conversation, if an earlier process was interrupted in it."""
    judging: Ledger = field(default_factory=Ledger)
    """The ledger of what metrics have asked models so far."""
    on_event: OnEvent | None = None
    on_judging: OnEvent | None = None
    on_restart: Callable[[Ledger, Ledger], None] | None = None
    """Called with the parts of both ledgers that still count when a part of the trial runs again."""
    before_live: BeforeLive | None = None
    """Makes sure that the call of a real tool is on disk before its body begins."""
    paid: float = 0.0
    """What the part that an earlier process ran has cost, in USD."""
    notes: list[str] = field(default_factory=list[str])
    """Notes for the report on how it was run."""
    drifted_at: float = inf
    """The event at which it was last found to differ from the recorded trial."""
    doubt: str = ""
    """Why it cannot run again: a real tool may have acted in the interrupted part."""
    recorded: "RecordedTrial | None" = None
    """The trial whose answers are repeated, in a replay."""
    run_id: str = ""
    """The run of the store that it belongs to, if there is one."""
    now: float | None = None
    """The time on its clock, if the trial is recorded or replayed."""
    scores: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    """What metrics found in an earlier attempt, of which only others broke: these do not measure again."""
    earlier_costs: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    """What attempts that broke, and run again, have cost, by role."""

    def resume(
        self, cut: PartialTrial, backend: Backend | None, not_begun: Collection[str] = ()
    ) -> str:
        """Begin where an earlier process was interrupted; the reason if some of its work is repeated.

        `not_begun` are calls of real tools that were recorded, but never allowed to act.
        """
        case, first = self.trial.case, started(cut.ledger)
        if first is None or backend is None:
            return ""
        if ended(cut.ledger) is not None:
            self.ledger, self.judging = cut.ledger, cut.judging
            return ""
        is_changed = first.digest != backend.digest
        if is_changed or backend.resumes == "no":
            self.doubt = reason_for_doubt(case, cut.ledger, 0, not_begun)
            if is_changed:
                return (
                    "run from its beginning, because the agent has changed since the interruption"
                )
            return f"run from its beginning: the {backend.name!r} backend cannot resume an agent"
        known = before_calls(cut.ledger, not_begun)
        self.ledger = known if backend.resumes != "checkpoint" else up_to_last_pause(known)
        self.doubt = reason_for_doubt(case, cut.ledger, len(self.ledger), not_begun)
        lost = len(known) - len(self.ledger)
        again = number_of(lost, "event")
        return f"resumed at its last pause; what came after it runs again ({again})" if lost else ""

    def go_back(self, ledger: Ledger) -> bool:
        """Begin again where the agent left the recorded path; False if it did not leave it."""
        if self.ledger is None or self.on_restart is None:
            return False
        last = next((e for e in reversed(ledger.events) if _ends_search(e)), None)
        if not isinstance(last, Noted):
            return False
        noted = last.data if is_object(last.data) else {}
        seq = noted.get("seq")
        # Each restart must be further back, or a note of other origin could cause an endless loop.
        if type(seq) is not int or not 0 < seq < self.drifted_at:
            return False
        self.drifted_at = seq
        self.doubt = reason_for_doubt(self.trial.case, ledger, seq)
        self.ledger = Ledger(ledger.events[:seq])
        # A run that resumes after another interruption must find the same doubt.
        if not self.doubt:
            self.on_restart(self.ledger, self.judging)
        self.notes.append(f"{noted.get('told')}; from there on it was run again")
        return True


def _ends_search(event: Event) -> bool:
    """Whether an event says that the agent left the recorded path, or precedes any event that could."""
    return isinstance(event, RunResumed) or (isinstance(event, Noted) and event.name == DRIFTED)
