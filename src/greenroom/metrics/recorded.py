"""The verdict that another tool recorded with a conversation."""

from typing import ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score
from greenroom.ledger.events import Noted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import is_object
from greenroom.metrics.builtin import BuiltIn, checked_threshold, written
from greenroom.metrics.needs import NOTHING, Needs
from greenroom.traces.writer import VERDICTS
from greenroom.world.world import World


class RecordedVerdict(BuiltIn, frozen=True, kw_only=True):
    """Repeats a verdict that came with a trace; it measures nothing itself."""

    needs: ClassVar[Needs] = NOTHING
    verdict: str
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The verdict as it was recorded, if it is a number from 0 to 1, or true or false."""
        for note in ledger.of(Noted):
            if note.name != VERDICTS or not is_object(note.data):
                continue
            name = self.verdict or next(iter(note.data), "")
            value = note.data.get(name)
            if isinstance(value, bool | int | float) and 0 <= value <= 1:
                reason = f"{name} was recorded as {value}"
                return Score(float(value), threshold=self.threshold, name=self.name, reason=reason)
        return NotApplicable("no such verdict came with the record")


def recorded_verdict(verdict: str = "", *, threshold: float = 1.0) -> RecordedVerdict:
    """The verdict of the tool that recorded the conversation, such as tau-bench's `reward`.

    Without a name it is the first recorded verdict. It is quoted, not measured.
    """
    checked_threshold(threshold, "recorded_verdict(...)")
    shown = written("recorded_verdict", verdict=verdict or None, name=None)
    return RecordedVerdict(
        verdict=verdict, threshold=threshold, name="recorded_verdict", shown=shown["shown"]
    )
