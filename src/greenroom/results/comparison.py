"""Two reports side by side: what got worse, what got better, and what nobody can tell.

Cases are matched by id; one that was changed in between is named, not compared. What became of each
stands in `greenroom.results.changes`. Over the whole set every case counts once, however often it
was played.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record
from greenroom.results.changes import CaseChange, MetricChange, Verdict, changes, mean
from greenroom.results.exact import ALPHA, flips, flips_of_values
from greenroom.results.power import detectable
from greenroom.results.report import Report

Trend = Literal["worse", "better", "unclear", "same"]

THRESHOLD = 0.05
_VERDICTS: dict[Trend, Verdict] = {
    "worse": "regressed",
    "better": "improved",
    "unclear": "unclear",
    "same": "unchanged",
}


@record
class Comparison:
    """Two reports side by side. `str(comparison)` is plain text."""

    cases: Sequence[CaseChange]
    baseline: Report = field(repr=False)
    current: Report = field(repr=False)
    threshold: float = THRESHOLD

    def of(self, *verdicts: Verdict) -> list[CaseChange]:
        """The cases with one of these verdicts, in the order of the report."""
        return [case for case in self.cases if case.verdict in verdicts]

    @property
    def regressed(self) -> list[CaseChange]:
        """The cases that got worse."""
        return self.of("regressed")

    @property
    def improved(self) -> list[CaseChange]:
        """The cases that got better."""
        return self.of("improved")

    @property
    def unclear(self) -> list[CaseChange]:
        """The cases of which nobody can tell."""
        return self.of("unclear")

    @property
    def added(self) -> list[CaseChange]:
        """The cases that the baseline does not have."""
        return self.of("added")

    @property
    def removed(self) -> list[CaseChange]:
        """The cases that only the baseline has."""
        return self.of("removed")

    @property
    def changed(self) -> list[CaseChange]:
        """The cases that ask for something else than before."""
        return self.of("changed")

    @property
    def compared(self) -> list[CaseChange]:
        """The cases that were evaluated on both sides and ask for the same."""
        sides = self.of("regressed", "improved", "unchanged", "unclear")
        return [c for c in sides if c.before and c.now and c.before.evaluated and c.now.evaluated]

    # The whole set

    @property
    def pass_rate(self) -> MetricChange | None:
        """The mean of the compared cases' pass rates, then and now; None if nothing compares."""
        rates = [_rates(case) for case in self.compared]
        if not rates:
            return None
        then, now = (mean(side) for side in zip(*rates, strict=True))
        return MetricChange("pass_rate", then, now, self.p)

    @property
    def p(self) -> float | None:
        """How likely so great a change of pass rates is by luck alone; None if nothing compares."""
        moves = [_move(case) for case in self.compared]
        return flips(moves) if moves else None

    @property
    def trend(self) -> Trend:
        """Where the pass rates went over all compared cases, if that can be told."""
        moves = [_move(case) for case in self.compared]
        if not any(above for above, _ in moves):
            return "same" if moves else "unclear"
        if flips(moves) > ALPHA:
            return "unclear"
        return "better" if sum(above / below for above, below in moves) > 0 else "worse"

    @property
    def verdict(self) -> Verdict:
        """What became of the whole set, in the words that are used of a case."""
        return _VERDICTS[self.trend]

    @property
    def repeated(self) -> bool:
        """Whether a case was evaluated more than once on one side."""
        sides = [side for case in self.compared for side in (case.before, case.now)]
        return any(side is not None and side.evaluated > 1 for side in sides)

    @property
    def detectable(self) -> float | None:
        """The smallest change of the pass rate that these cases would show four times in five.

        None where they could show none: with fewer than six cases.
        """
        compared = self.compared
        trials = [c.now.evaluated for c in compared if c.now is not None]
        moves = [now - then for then, now in map(_rates, compared)]
        return detectable(moves, min(trials, default=1))

    @property
    def metrics(self) -> dict[str, MetricChange]:
        """Each metric over the cases that it measured on both sides; every case counts once."""
        found: dict[str, list[MetricChange]] = {}
        for case in self.compared:
            for name, change in case.metrics.items():
                found.setdefault(name, []).append(change)
        return {name: _together(name, changes) for name, changes in found.items()}

    @property
    def cost(self) -> MetricChange | None:
        """What a trial of the compared cases cost in USD; None when a price is unknown."""
        return _all_known("cost", [case.cost for case in self.compared])

    @property
    def seconds(self) -> MetricChange | None:
        """How long a trial of the compared cases took; None when that is unknown."""
        return _all_known("seconds", [case.seconds for case in self.compared])

    def __str__(self) -> str:
        from greenroom.results.comparison_text import comparison_text

        return comparison_text(self)

    def data(self) -> dict[str, Json]:
        """The comparison as JSON, without secrets."""
        from greenroom.results.comparison_text import comparison_data

        return comparison_data(self)

    def save(self, path: str | Path) -> Path:
        """Write it as JSON, whole or not at all, and say where it is."""
        from greenroom.results.writing import write_whole

        text = json.dumps(self.data(), indent=2, allow_nan=False)
        return write_whole(f"{text}\n", path, "the comparison")


def compare(baseline: Report, current: Report, threshold: float = THRESHOLD) -> Comparison:
    """What became of the baseline's cases.

    A case regressed if it passed and does not any more, or if the mean score of one of its metrics
    fell by more than `threshold`, though it may still pass. It improved if the same happened the
    other way and nothing fell. Where there are several trials of it a test must believe it, too.
    """
    if not 0 <= threshold <= 1:
        raise BadInput(f"threshold={threshold!r} is no difference of scores; give 0 to 1.")
    found = changes(baseline, current, threshold)
    return Comparison(found, baseline, current, threshold)


def compare_all(
    baseline: Report, reports: Iterable[Report], threshold: float = THRESHOLD
) -> list[Comparison]:
    """Each report against one baseline, in order."""
    return [compare(baseline, report, threshold) for report in reports]


def _rates(case: CaseChange) -> tuple[float, float]:
    """A compared case's pass rates, then and now."""
    sides = [side.pass_rate if side is not None else None for side in (case.before, case.now)]
    then, now = (0.0 if rate is None else rate for rate in sides)
    return then, now


def _move(case: CaseChange) -> tuple[int, int]:
    """How much a case's pass rate rose, as a fraction."""
    then, now = case.before, case.now
    if then is None or now is None:
        return 0, 1
    rise = now.passed * then.evaluated - then.passed * now.evaluated
    return rise, then.evaluated * now.evaluated


def _together(name: str, found: Sequence[MetricChange]) -> MetricChange:
    p = flips_of_values([change.delta for change in found])
    return MetricChange(name, mean(c.before for c in found), mean(c.now for c in found), p)


def _all_known(name: str, found: Sequence[MetricChange | None]) -> MetricChange | None:
    known = [change for change in found if change is not None]
    return _together(name, known) if known and len(known) == len(found) else None
