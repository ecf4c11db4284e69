"""What both reports have of a case: its trials then and now, and whether it asks for the same.

The verdict on each case is in `greenroom.results.verdicts`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, without_addresses
from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.results.exact import ALPHA, fisher, fisher_floor
from greenroom.results.intervals import Tally
from greenroom.results.report import Report, Summary
from greenroom.results.result import EVALUATED, UNKNOWN_CODE, CaseResult

Verdict = Literal[
    "regressed",
    "suspect",
    "flipped",
    "flaky",
    "improved",
    "unchanged",
    "unclear",
    "changed",
    "added",
    "removed",
]

_UNTOUCHED = ("name", "description", "tags")


@dataclass(frozen=True, slots=True)
class MetricChange:
    """The mean of one metric, then and now."""

    name: str
    before: float
    now: float
    p: float | None = None
    """How likely the cases differ so much if nothing changed, where many of them were compared."""
    cases: int = 1
    """How many cases were measured on both sides."""

    @property
    def delta(self) -> float:
        """How much it rose."""
        return self.now - self.before


@dataclass(frozen=True, slots=True)
class CaseChange:
    """What became of one case."""

    case_id: str
    verdict: Verdict
    why: str = ""
    before: Summary | None = None
    now: Summary | None = None
    metrics: Mapping[str, MetricChange] = field(default_factory=dict[str, MetricChange])
    p: float | None = None
    """How likely such a difference is if nothing changed, where several trials were compared."""
    known: bool = True
    """Whether the case is known to ask for the same; not if its data or its code was not kept."""
    adjusted: float | None = None
    """The same, corrected for as many cases as were tested at once; the verdict rests on it."""
    cost: MetricChange | None = None
    """What a trial cost in USD on average; None where it is unknown."""
    seconds: MetricChange | None = None
    """How long a trial took on average; None where it is unknown."""
    again: Summary | None = None
    """How it ended when it was run again because it failed after it had passed."""
    tags: Sequence[str] = ()

    @property
    def fell(self) -> bool:
        """Whether its pass rate is lower than it was."""
        return _rise(self.before, self.now) < 0

    @property
    def tallies(self) -> tuple[Tally, Tally] | None:
        """How many trials passed of how many evaluated, then and now; None where one side has none."""
        then, now = self.before, self.now
        if then is None or now is None:
            return None
        earlier, later = then.evaluated, now.evaluated
        return ((then.passed, earlier), (now.passed, later)) if earlier and later else None


def _rise(then: Summary | None, now: Summary | None) -> int:
    """Whether the pass rate rose (above 0), fell (below 0) or stayed."""
    if then is None or now is None:
        return 0
    return now.passed * then.evaluated - then.passed * now.evaluated


def paired(baseline: Report, current: Report) -> dict[str, "Pair"]:
    """The trials of every case that both reports have, in the order of the current one."""
    then, now = by_case(baseline), by_case(current)
    return {
        case_id: Pair(case_id, _counted(baseline, then[case_id]), _counted(current, results))
        for case_id, results in now.items()
        if case_id in then
    }


def by_case(report: Report) -> dict[str, Sequence[CaseResult]]:
    """The trials of each case, by an id without secrets, which is the only one that files have."""
    cases = report.by_case()
    clean = clean_ids(cases, redactor())
    return {clean[case_id]: results for case_id, results in cases.items()}


def _counted(report: Report, results: Sequence[CaseResult]) -> Sequence[CaseResult]:
    """The trials that count: of an adaptive run the first, since how many followed depends on how they ended."""
    return [first_evaluated(results)] if report.adaptive else results


def first_evaluated(results: Sequence[CaseResult]) -> CaseResult:
    """The first trial that was evaluated; the first of all if none was."""
    return next((result for result in results if result.status in EVALUATED), results[0])


class Pair:
    """The trials of one case on both sides."""

    def __init__(self, case_id: str, then: Sequence[CaseResult], now: Sequence[CaseResult]) -> None:
        self.case_id, self.then, self.now = case_id, then, now
        self.before, self.after = Report(then).summary, Report(now).summary

    @cached_property
    def same(self) -> bool | None:
        """Whether both sides ask for the same; None if that is unknown."""
        return same_case(self.then[0], self.now[0])

    @property
    def compares(self) -> bool:
        """Whether both sides ask for the same and were evaluated."""
        return self.same is not False and bool(self.before.evaluated and self.after.evaluated)

    @property
    def several(self) -> bool:
        """Whether a side has enough trials for a test of the difference."""
        return self.before.evaluated > 1 or self.after.evaluated > 1

    @property
    def rise(self) -> int:
        """Whether the pass rate rose (above 0), fell (below 0) or stayed."""
        return _rise(self.before, self.after)

    @property
    def is_suspect(self) -> bool:
        """Whether it passed every time before and fails every time now."""
        before, after = self.before, self.after
        return self.compares and before.passed == before.evaluated and not after.passed

    @property
    def is_proved(self) -> bool:
        """Whether a trial failed that leaves nothing to chance, so that it would have failed before as well."""
        failed = any(result.fixed and result.status != "passed" for result in self.now)
        return self.compares and failed and bool(self.before.passed)

    @property
    def fails_on_both_sides(self) -> bool:
        """Whether the first evaluated trial passed on neither side."""
        firsts = first_evaluated(self.then), first_evaluated(self.now)
        return self.compares and not any(result.passed for result in firsts)

    @cached_property
    def p(self) -> float:
        """How likely pass rates so different are if nothing changed."""
        then, now = self.before, self.after
        return fisher(now.passed, now.evaluated, then.passed, then.evaluated)

    @property
    def can_tell(self) -> bool:
        """Whether the test could have noticed anything, whichever side had the passed trials."""
        good = self.before.passed + self.after.passed
        return fisher_floor(good, self.after.evaluated, self.before.evaluated) <= ALPHA

    @cached_property
    def metrics(self) -> dict[str, MetricChange]:
        """The metrics that both sides measured."""
        names = dict.fromkeys(name for result in self.now for name in result.measured)
        sides = {name: (_scores(self.then, name), _scores(self.now, name)) for name in names}
        return {
            name: MetricChange(name, mean(before), mean(after))
            for name, (before, after) in sides.items()
            if before and after
        }

    @property
    def cost(self) -> MetricChange | None:
        """What a trial cost on average."""
        return self._took("cost")

    @property
    def seconds(self) -> MetricChange | None:
        """How long a trial took on average."""
        return self._took("seconds")

    def _took(self, name: Literal["cost", "seconds"]) -> MetricChange | None:
        sides: list[float] = []
        for results in (self.then, self.now):
            # A case that never ran took nothing, which says nothing.
            took: list[float | None] = [getattr(r, name) for r in results if r.ended is not None]
            known = [value for value in took if value is not None]
            if not took or len(known) < len(took):
                return None
            sides.append(mean(known))
        before, now = sides
        return MetricChange(name, before, now)


def _scores(results: Iterable[CaseResult], name: str) -> list[float]:
    """The scores of a metric in the trials that were evaluated."""
    return [
        result.measured[name].value
        for result in results
        if result.status in EVALUATED and name in result.measured
    ]


# Several reports as one


def pooled(reports: Sequence[Report]) -> Report:
    """Several reports of the same cases as one baseline: all their trials, numbered anew.

    A case counts as the last report has it: trials in which it asked for something else are left out.
    A single report is returned as it is.
    """
    if not reports:
        raise BadInput("there is no report to pool; give one or more.")
    # The same run given twice is no more evidence than once.
    reports = list({report.id or id(report): report for report in reports}.values())
    if len(reports) == 1:
        return reports[0]
    found: dict[str, list[CaseResult]] = {}
    for report in reversed(reports):
        for case_id, results in report.by_case().items():
            known = found.setdefault(case_id, [])
            counted = _counted(report, results)
            known += [r for r in counted if not known or same_case(r, known[0]) is not False]
    last = reports[-1]
    return Report(
        [replace(r, trial=n) for trials in found.values() for n, r in enumerate(trials, start=1)],
        name=last.name,
        seconds=sum(report.seconds for report in reports),
        notes=list(dict.fromkeys(note for report in reports for note in report.notes)),
        id="+".join(report.id for report in reports),
        evalset_id=last.evalset_id,
        at=last.at,
    )


# What the case asks for


def same_case(then: CaseResult, now: CaseResult) -> bool | None:
    """Whether both sides ask for the same; None if that is unknown."""
    if then.asks and then.asks == now.asks:
        return True
    before, after = _asked(then), _asked(now)
    if not before or not after:
        return None
    if _text(before) != _text(after):
        # A report from a file has lost its secrets.
        clean = redactor().value
        if _text(clean(before)) != _text(clean(after)):
            return False
    return None if UNKNOWN_CODE in _text(before) else True


def _asked(result: CaseResult) -> dict[str, Json]:
    """What the case asks for; names and tags may change."""
    try:
        return {name: v for name, v in (result.case or {}).items() if name not in _UNTOUCHED}
    except BadInput:
        return {}


def _text(data: Json) -> str:
    return without_addresses(json.dumps(data, sort_keys=True, default=repr))


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    found = list(values)
    return sum(found) / len(found)
