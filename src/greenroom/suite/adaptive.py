"""The trials of an adaptive run: as many as the verdict needs, which `greenroom.results.adaptive` decides."""

from collections.abc import Sequence

from greenroom.cases.case import Case
from greenroom.results.adaptive import Conclusion, Rounds
from greenroom.results.report import MAX_TRIALS
from greenroom.results.result import CaseResult
from greenroom.suite.trial_state import Trial


class Adaptive:
    """Which trials are due, round by round, until it is decided whether these cases reach `bar`."""

    def __init__(self, cases: Sequence[Case], bar: float, *, max_trials: int = MAX_TRIALS) -> None:
        self.max_trials = max_trials
        self._places = {case.id: (place, case) for place, case in enumerate(cases)}
        self._rounds = Rounds(list(self._places), bar, max_trials=max_trials)

    def due(self) -> list[Trial]:
        """The trials to run next, in the order of the cases; none when the run is over."""
        return [self._trial(*due) for due in self._rounds.due()]

    def _trial(self, case_id: str, number: int) -> Trial:
        place, case = self._places[case_id]
        return Trial(place * self.max_trials + number - 1, case, number)

    def add(self, result: CaseResult) -> None:
        """Learn how a trial that was due has ended."""
        self._rounds.add(result)

    @property
    def conclusion(self) -> Conclusion:
        """The verdict and the number of trials so far."""
        return self._rounds.conclusion
