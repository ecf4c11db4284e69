"""Which cases of a report are shown if there are very many."""

from dataclasses import replace
from heapq import heappop, heappush

from greenroom.reports.page.shapes import WORST
from greenroom.results.report import Report
from greenroom.results.stored_results import cases_in
from greenroom.results.totals import by_case
from greenroom.results.trials import status_of

MOST_TRIALS = 10_000
"""At most this many trials are shown: a reader can look through them, and the page opens in seconds."""

_RANK = {status: -rank for rank, status in enumerate(WORST)}


class WorstCases:
    """Collects cases: all of them, or if there are very many trials, those that ended worst."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, int, str, int]] = []
        self._trials = 0
        self.added = 0

    def add(self, case_id: str, status: str, trials: int) -> None:
        """Add a case with its number of trials. The worst case is kept, however many trials it has."""
        heappush(self._kept, (_RANK.get(status, 0), -self.added, case_id, trials))
        self.added += 1
        self._trials += trials
        while self._trials > MOST_TRIALS and len(self._kept) > 1:
            *_, left_out = heappop(self._kept)
            self._trials -= left_out

    @property
    def ids(self) -> list[str]:
        """The ids of those that are kept, in the order in which they were added."""
        return [case_id for *_, case_id, _ in sorted(self._kept, key=lambda one: -one[1])]

    @property
    def left_out(self) -> int:
        """How many are not kept."""
        return self.added - len(self._kept)


def shown_part(report: Report) -> Report:
    """The report with the cases that a reader is shown; itself if these are all."""
    if len(report) <= MOST_TRIALS:
        return report
    worst = WorstCases()
    for trials in by_case(report):
        worst.add(trials[0].case_id, status_of(trials), len(trials))
    if not worst.left_out:
        return report
    found = cases_in(report)
    return replace(report, results=[result for one in worst.ids for result in found(one)])
