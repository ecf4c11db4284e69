"""Cases that fail though they passed in the baseline: which trials of them are due once more.

What is due follows from the results alone, so a resumed run asks for the same trials again.
"""

from collections.abc import Sequence

from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadInput
from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.results.comparisons.changes import paired
from greenroom.results.comparisons.confirmation import MOST, Confirming
from greenroom.results.comparisons.verdicts import confirming, end_of
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.store.runs import Key
from greenroom.suite.options import Values
from greenroom.suite.trial_state import Trial


class Suspects:
    """Which cases run again, round by round, at most `most` times each.

    When every case has run, pass all results to `begin()`. Then ask `due()`, run all of it,
    pass every result to `add()`, and ask again until nothing is due.
    """

    def __init__(self, baseline: Report, evalset: EvalSet, most: int, *, adaptive: bool) -> None:
        self.baseline, self.most = baseline, most
        self._trials, self._adaptive = evalset.trials, adaptive
        self._cases = {case.id: (number, case) for number, case in enumerate(evalset)}
        self._first = len(self._cases) * evalset.trials
        """The place behind the last trial of the set."""
        self._own: dict[str, str] = {}
        self._found: Confirming | None = None
        self._runs = dict.fromkeys(self._cases, 0)
        self._cut = False

    def is_again(self, position: int) -> bool:
        """Whether this is the place of a trial that confirms."""
        return position >= self._first

    def begin(self, results: Sequence[CaseResult]) -> None:
        """Find the suspects, once every case has run."""
        report = Report(results, adaptive=self._adaptive)
        clean = clean_ids(report.by_case(), redactor())
        self._own = {name: case_id for case_id, name in clean.items()}
        self._found = confirming(paired(self.baseline, report).values(), self.most)

    def due(self) -> list[Trial]:
        """The trials to run next, in the order of the cases; none when all is clear."""
        if self._found is None or self._cut:
            return []
        ids = [self._own[name] for name in self._found.due()]
        return [self._trial(case_id, self._runs[case_id] + 1) for case_id in ids]

    def add(self, result: CaseResult) -> None:
        """Learn how a trial that was due has ended. One that did not run at all ends it."""
        if self._found is None or (result.status == "skipped" and result.error is None):
            self._cut = True
            return
        self._runs[result.case_id] += 1
        name = next(name for name, own in self._own.items() if own == result.case_id)
        self._found.take(name, end_of(result))

    def trial_of(self, key: Key) -> Trial:
        """The trial that an earlier process finished."""
        return self._trial(key.case_id, key.trial - self._trials)

    def _trial(self, case_id: str, number: int) -> Trial:
        place, case = self._cases[case_id]
        position = self._first + place * self.most + number - 1
        return Trial(position, case, self._trials + number)


def baseline_of(evalset: EvalSet, options: Values) -> Report:
    """The report that a run is compared with; one of other cases is refused."""
    given = options["baseline"]
    baseline = given if isinstance(given, Report) else Report.pooled(given)
    hand = redactor()
    then = set(clean_ids(baseline.by_case(), hand).values())
    if then.isdisjoint(clean_ids(evalset.ids, hand).values()):
        name = baseline.name or baseline.id or "the baseline"
        raise BadInput(
            f"no case of {evalset.name or evalset.id or 'this set'!r} is in {name!r}, so nothing could "
            f"be compared. Give a report of the same cases, or leave the baseline out."
        )
    return baseline


def suspects_for(baseline: Report, evalset: EvalSet, options: Values) -> Suspects | None:
    """The suspects against the baseline, if any case may run again."""
    most = MOST if options["confirm"] is None else options["confirm"]
    # A run that stops at the first failure never runs cases again, and a replay would end the same way again.
    is_once = options["fail_fast"] or options["replay"] is not None
    if is_once or not most:
        return None
    return Suspects(baseline, evalset, most, adaptive=options["trials"] == "auto")
