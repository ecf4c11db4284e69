"""Compares two reports: what got worse, what got better, and what is undecided.

Cases are matched by id; one that was changed in between is named, not compared. The verdict on each is
made in `greenroom.results.comparisons.verdicts`. Over the whole set every case counts once, however often it ran.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec import structs

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.results.comparisons.changes import CaseChange, MetricChange, Verdict, mean, pooled
from greenroom.results.comparisons.verdicts import Confirmed, changes
from greenroom.results.report import Report
from greenroom.results.statistics.exact import flips_of_values, holm, stratified
from greenroom.results.statistics.intervals import Interval, Tally, of_changes
from greenroom.results.statistics.power import detectable

Trend = Literal["worse", "better", "unclear", "same"]
Metrics = Literal["all"] | Sequence[str]

THRESHOLD = 0.05
SET_ALPHA = 0.04
"""How often the pass rate of the set may be called different when nothing changed: 2 % on each side."""
METRICS_ALPHA = 0.01
"""How often the mean of any metric may be, over all that are compared."""
FEWEST_CASES = 8
"""A metric that was measured on fewer cases is shown, and never called different."""
FEWEST_IN_TAG = 6
"""A tag with fewer cases could never show a difference."""

_VERDICTS: dict[Trend, Verdict] = {
    "worse": "regressed",
    "better": "improved",
    "unclear": "unclear",
    "same": "unchanged",
}


@dataclass(frozen=True, slots=True)
class Missed:
    """One reason why the quality gate fails."""

    kind: Literal[
        "errors", "pass_rate", "regression", "unclear", "removed", "incomparable", "skipped", "cost"
    ]
    why: str


@dataclass(frozen=True)
class Comparison:
    """Two reports compared, case by case and as a whole. `str(comparison)` is plain text."""

    cases: Sequence[CaseChange]
    baseline: Report = field(repr=False)
    current: Report = field(repr=False)
    threshold: float = THRESHOLD
    tags: Sequence[str] = ()
    """The tags whose cases are tested like the whole set."""
    gated: Metrics = "all"
    """The metrics whose means are tested."""
    confirmed: Confirmed | None = None
    """What running suspects again has shown; None if that was not asked for."""

    def of(self, *verdicts: Verdict) -> list[CaseChange]:
        """The cases with one of these verdicts, in the order of the report."""
        return [case for case in self.cases if case.verdict in verdicts]

    @property
    def regressed(self) -> list[CaseChange]:
        """The cases that got worse."""
        return self.of("regressed")

    @property
    def suspects(self) -> list[CaseChange]:
        """The cases that passed every time before and fail every time now, without proof of a change."""
        return self.of("suspect")

    @property
    def flipped(self) -> list[CaseChange]:
        """The cases that ran once on each side, and ended differently."""
        return self.of("flipped")

    @property
    def flaky(self) -> list[CaseChange]:
        """The cases that failed after they had passed, and passed when they were run again."""
        return self.of("flaky")

    @property
    def improved(self) -> list[CaseChange]:
        """The cases that got better."""
        return self.of("improved")

    @property
    def unclear(self) -> list[CaseChange]:
        """The cases without a clear verdict."""
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
        """The cases that were changed since the baseline."""
        return self.of("changed")

    @property
    def shared(self) -> list[CaseChange]:
        """The cases that both reports have."""
        return [case for case in self.cases if case.before is not None and case.now is not None]

    @cached_property
    def compared(self) -> list[CaseChange]:
        """The unchanged cases that were evaluated on both sides."""
        return [c for c in self.cases if c.verdict != "changed" and c.tallies is not None]

    # The whole set

    @property
    def pass_rate(self) -> MetricChange | None:
        """The mean of the compared cases' pass rates, then and now; None if no case compares."""
        found = self.tallies
        if not found:
            return None
        sides = zip(*found, strict=True)
        then, now = (mean(passed / count for passed, count in side) for side in sides)
        return MetricChange("pass_rate", then, now, self.p, len(found))

    @property
    def p(self) -> float | None:
        """How likely a change this large in the pass rates is if nothing changed; None if no case compares."""
        tails = self._tails
        return None if tails is None else min(1.0, 2 * min(tails))

    @cached_property
    def _tails(self) -> tuple[float, float] | None:
        found = self.tallies
        return stratified((*then, *now) for then, now in found) if found else None

    @property
    def trend(self) -> Trend:
        """The direction of the pass rate over all compared cases."""
        tails = self._tails
        if tails is None:
            return "unclear"
        if not any(then[0] * now[1] - now[0] * then[1] for then, now in self.tallies):
            return "same"
        if 2 * min(tails) > SET_ALPHA:
            return "unclear"
        return "worse" if tails[0] < tails[1] else "better"

    @cached_property
    def tallies(self) -> list[tuple[Tally, Tally]]:
        """How many trials of each compared case passed and were evaluated, then and now."""
        return [tallies for case in self.compared if (tallies := case.tallies) is not None]

    @cached_property
    def change(self) -> Interval | None:
        """How much the pass rate rose, with its 95 % interval; None if no case compares."""
        return of_changes(self.tallies)

    @property
    def verdict(self) -> Verdict:
        """How the whole set changed, in the words used for a case."""
        return _VERDICTS[self.trend]

    @cached_property
    def per_tag(self) -> Mapping[str, "Comparison"]:
        """A comparison of the cases of each tag, in alphabetical order."""
        tags = sorted({tag for case in self.cases for tag in case.tags})
        return {tag: self._of_tag(tag) for tag in tags}

    @property
    def untested_tags(self) -> list[str]:
        """The tags that were named although too few of their cases compare to show a change."""
        found = ((tag, self._of_tag(tag)) for tag in self.tags)
        return [tag for tag, part in found if len(part.compared) < FEWEST_IN_TAG]

    def _of_tag(self, tag: str) -> "Comparison":
        return replace(self, cases=[case for case in self.cases if tag in case.tags], tags=())

    @property
    def repeated(self) -> bool:
        """Whether a case was evaluated more than once on one side."""
        return any(side[1] > 1 for sides in self.tallies for side in sides)

    @cached_property
    def detectable(self) -> float | None:
        """The smallest change of the pass rate that these cases would reveal four times in five.

        None where they could show none: with fewer than six cases.
        """
        found = self.tallies
        moves = [now[0] / now[1] - then[0] / then[1] for then, now in found]
        return detectable(moves, min((now[1] for _, now in found), default=1))

    # Metrics, cost and time

    @cached_property
    def metrics(self) -> dict[str, MetricChange]:
        """Each metric over the cases that it measured on both sides; every case counts once."""
        found: dict[str, list[MetricChange]] = {}
        for case in self.compared:
            for name, change in case.metrics.items():
                found.setdefault(name, []).append(change)
        return {name: _together(name, changes) for name, changes in found.items()}

    @cached_property
    def moved(self) -> dict[str, MetricChange]:
        """The metrics that differ significantly, each p corrected for the number compared."""
        asked = self.asked
        adjusted = holm([change.p if change.p is not None else 1.0 for change in asked.values()])
        return {
            name: structs.replace(change, p=p)
            for (name, change), p in zip(asked.items(), adjusted, strict=True)
            if p <= METRICS_ALPHA
        }

    @property
    def asked(self) -> dict[str, MetricChange]:
        """The metrics that were measured on enough cases to be tested."""
        return {
            name: change
            for name, change in self.metrics.items()
            if change.cases >= FEWEST_CASES and (self.gated == "all" or name in self.gated)
        }

    @property
    def remade(self) -> list[str]:
        """The metrics of the run that have kept their name, and are made of something else now."""
        then, now = self.baseline.measures, self.current.measures
        known = then.keys() & now.keys()
        return [name for name in self.metrics if name in known and then[name] != now[name]]

    @property
    def cost(self) -> MetricChange | None:
        """The average cost of a trial of the compared cases in USD; None when a price is unknown."""
        return _all_known("cost", [case.cost for case in self.compared])

    @property
    def seconds(self) -> MetricChange | None:
        """The average seconds of a trial of the compared cases; None when that is unknown."""
        return _all_known("seconds", [case.seconds for case in self.compared])

    # What it comes to

    @property
    def worse(self) -> Sequence[Missed]:
        """What got significantly worse, each with its reason; the gate and `eval compare` use this."""
        from greenroom.results.comparisons.conclusion import worse

        return worse(self)

    @property
    def undecided(self) -> Sequence[Missed]:
        """What may have got worse, without proof."""
        from greenroom.results.comparisons.conclusion import undecided

        return undecided(self)

    @property
    def incomparable(self) -> str:
        """Why nothing can be compared; empty if a case was evaluated on both sides."""
        from greenroom.results.comparisons.conclusion import incomparable

        return incomparable(self)

    def __str__(self) -> str:
        from greenroom.results.comparisons.comparison_text import comparison_text

        return comparison_text(self)

    def data(self) -> dict[str, Json]:
        """The comparison as JSON, without secrets."""
        from greenroom.results.comparisons.comparison_data import comparison_data

        return comparison_data(self)

    def save(self, path: str | Path) -> Path:
        """Write it as JSON, atomically, and return its path."""
        from greenroom.results.files import json_text, write_whole

        return write_whole(f"{json_text(self.data())}\n", path, "the comparison")


def compare(
    baseline: Report | Sequence[Report],
    current: Report,
    threshold: float = THRESHOLD,
    *,
    tags: Sequence[str] = (),
    metrics: Metrics = "all",
) -> Comparison:
    """How the baseline's cases changed; several baselines count together.

    The whole got worse if the pass rate fell by more than chance explains, or the mean of a metric by
    more than `threshold`; `tags` are tested like the whole. A single case regressed if its trials
    prove it; one flip does not.
    """
    if not 0 <= threshold <= 1:
        raise BadInput(f"threshold={threshold!r} is not a difference of scores; give 0 to 1.")
    before = baseline if isinstance(baseline, Report) else pooled(baseline)
    found, confirmed = changes(before, current)
    return Comparison(found, before, current, threshold, tuple(tags), metrics, confirmed)


def compare_all(
    baseline: Report, reports: Iterable[Report], threshold: float = THRESHOLD
) -> list[Comparison]:
    """Each report against one baseline, in order."""
    return [compare(baseline, report, threshold) for report in reports]


def _together(name: str, found: Sequence[MetricChange]) -> MetricChange:
    p = flips_of_values([change.delta for change in found])
    before, now = mean(c.before for c in found), mean(c.now for c in found)
    return MetricChange(name, before, now, p, len(found))


def _all_known(name: str, found: Sequence[MetricChange | None]) -> MetricChange | None:
    known = [change for change in found if change is not None]
    return _together(name, known) if known and len(known) == len(found) else None
