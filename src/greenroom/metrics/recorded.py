"""The verdict that another tool recorded with a conversation."""

from typing import ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.events import Noted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, as_object, short_repr
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
        recorded: dict[str, Json] = {}
        for note in ledger.of(Noted):
            if note.name == VERDICTS:
                recorded |= as_object(note.data, "the note of verdicts")
        if not recorded:
            return NotApplicable("no verdict came with the record")
        name = self.verdict or next(iter(recorded))
        if name not in recorded:
            return Unmeasured(f"no verdict {name!r} came with the record; there are {[*recorded]}")
        value = recorded[name]
        if not isinstance(value, bool | int | float) or not 0 <= value <= 1:
            return Unmeasured(
                f"{name} was recorded as {short_repr(value)}, which is neither true or false nor a "
                f"number from 0 to 1"
            )
        reason = f"{name} was recorded as {value}"
        return Score(float(value), threshold=self.threshold, name=self.name, reason=reason)


def recorded_verdict(verdict: str = "", *, threshold: float = 1.0) -> RecordedVerdict:
    """The verdict of the tool that recorded the conversation, such as tau-bench's `reward`.

    Without a name it is the first recorded verdict. It is quoted, not measured.
    """
    checked_threshold(threshold, "recorded_verdict(...)")
    shown = written("recorded_verdict", verdict=verdict or None, name=None)
    return RecordedVerdict(
        verdict=verdict, threshold=threshold, name="recorded_verdict", shown=shown["shown"]
    )
