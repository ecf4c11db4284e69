"""A case in two reports: its trials then and now, and whether it was changed in between.

The verdict on each case is in `greenroom.results.comparisons.verdicts`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import fsum, isfinite
from typing import Literal, TypeVar

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.errors import BadInput
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, without_addresses
from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.results.breakdown import summary_of
from greenroom.results.endings import EVALUATED, Status
from greenroom.results.facts import Facts
from greenroom.results.report import Report, shared_measures
from greenroom.results.result import UNKNOWN_CODE, CaseResult, LedgerSource, case_of
from greenroom.results.statistics.exact import ALPHA, fisher, fisher_floor
from greenroom.results.statistics.intervals import Tally
from greenroom.results.summary import Summary
from greenroom.results.totals import Paid, cases_of

F = TypeVar("F", bound=Facts)

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


# A large run has hundreds of thousands of these, and none holds a cycle: so they are not tracked by
# the garbage collector, and a Struct is made in a fraction of the time of a dataclass.


class MetricChange(Struct, frozen=True, gc=False):
    """The mean of one metric, then and now."""

    name: str
    before: float
    now: float
    p: float | None = None
    """How likely a difference this large is if nothing changed, where many cases were compared."""
    cases: int = 1
    """How many cases were measured on both sides."""

    @property
    def delta(self) -> float:
        """How much it rose."""
        return self.now - self.before


class CaseChange(Struct, frozen=True, gc=False):
    """How one case changed."""

    case_id: str
    verdict: Verdict
    why: str = ""
    before: Summary | None = None
    now: Summary | None = None
    metrics: Mapping[str, MetricChange] = {}
    p: float | None = None
    """How likely a difference this large is if nothing changed, where several trials were compared."""
    known: bool = True
    """Whether the case is known to be unchanged; not if its data or its code was not kept."""
    adjusted: float | None = None
    """The p-value corrected for the number of cases tested at once; the verdict depends on it."""
    cost: MetricChange | None = None
    """The average cost of a trial in USD; None where it is unknown."""
    seconds: MetricChange | None = None
    """The average seconds of a trial; None where it is unknown."""
    again: Summary | None = None
    """How it ended when it was run again because it failed after it had passed."""
    tags: Sequence[str] = ()
    unlike: str = ""
    """Which metrics or thresholds it was measured with on one side only; empty if with the same."""

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
    """Every case that both reports have, in the order of the current one."""
    then = sides(baseline)
    return {
        case_id: Pair.of(case_id, then[case_id], side)
        for case_id, side in sides(current).items()
        if case_id in then
    }


def sides(report: Report) -> dict[str, "Side"]:
    """What a comparison needs of each case, by its id without secrets: report files have no other."""
    found: dict[str, Side] = {}
    paid = Paid()
    for trials in cases_of(report):
        found[trials[0].case_id] = Side.of(_counted(report, trials))
        paid.add(trials)
    paid.add(report.confirmed, again=True)
    report.keep_paid(paid)
    clean = clean_ids(found, redactor())
    return {clean[case_id]: side for case_id, side in found.items()}


def _counted(report: Report, results: Sequence[F]) -> Sequence[F]:
    """The trials that count: in an adaptive run only the first, since its outcome decides how many follow."""
    return [first_evaluated(results)] if report.adaptive else results


def first_evaluated(results: Sequence[F]) -> F:
    """The first trial that was evaluated; the very first if none was."""
    return next((result for result in results if result.status in EVALUATED), results[0])


class Side(Struct, kw_only=True, gc=False):
    """The trials of one case in one report, as far as they are compared."""

    counts: Summary
    status: Status
    """How the first evaluated trial ended; the very first if none was."""
    problem: str
    """Why no trial was evaluated; empty if one was."""
    is_fixed: bool
    """Whether a deterministic trial did not pass."""
    tags: tuple[str, ...]
    means: dict[str, float]
    """The mean of each metric over the trials that were evaluated."""
    measured: "Measured"
    cost: float | None
    seconds: float | None
    first: "Asked"

    @classmethod
    def of(cls, trials: Sequence[Facts]) -> "Side":
        """Summarise these trials of a case."""
        evaluated: list[Facts] = []
        tags: dict[str, None] = {}
        is_fixed, ran, seconds = False, 0, 0.0
        cost: float | None = 0.0
        for trial in trials:
            if trial.status in EVALUATED:
                evaluated.append(trial)
            # A trial that never ran took no time and no money, which says nothing.
            if trial.ended is not None:
                ran += 1
                seconds += trial.seconds
                cost = None if cost is None or trial.cost is None else cost + trial.cost
            if trial.fixed and trial.status != "passed":
                is_fixed = True
            for tag in trial.tags:
                tags[str(tag)] = None
        first = trials[0]
        return cls(
            counts=summary_of(trials),
            status=(evaluated or trials)[0].status,
            problem="" if evaluated else _problem(first),
            is_fixed=is_fixed,
            tags=tuple(tags),
            means=_means(evaluated),
            measured=Measured.of(trials),
            cost=cost / ran if ran and cost is not None else None,
            seconds=seconds / ran if ran else None,
            first=Asked(first.asks, first.kept, first.asked),
        )


def _means(trials: Sequence[Facts]) -> dict[str, float]:
    """The mean of each metric over the trials that it measured."""
    if len(trials) == 1:  # as in most runs
        outcomes = trials[0].scores.items()
        return {name: value for name, outcome in outcomes if (value := outcome.value) is not None}
    found: dict[str, list[float]] = {}
    for trial in trials:
        for name, outcome in trial.scores.items():
            if (value := outcome.value) is not None:
                found.setdefault(name, []).append(value)
    return {name: fsum(values) / len(values) for name, values in found.items()}


def _problem(trial: Facts) -> str:
    """Why a trial was not evaluated; `{side}` is replaced by "then" or "now"."""
    if trial.error is None:
        return f"{'not run' if trial.status == 'skipped' else trial.status} {{side}}"
    first = next(iter(trial.error.message.splitlines()), "") or trial.error.type
    return f"{trial.status} {{side}} in phase {trial.error.phase}: {first}"


class Pair(Struct, gc=False):
    """One case on both sides."""

    case_id: str
    then: Side
    now: Side
    before: Summary
    after: Summary
    same: bool | None
    """Whether the case is the same on both sides; None if that is unknown."""
    compares: bool
    """Whether the case is the same on both sides and was evaluated on both."""
    several: bool
    """Whether a side has enough trials for a test of the difference."""

    @classmethod
    def of(cls, case_id: str, then: Side, now: Side) -> "Pair":
        """The pair for a case with these two sides."""
        same = same_case(then.first, now.first)
        earlier, later = then.counts.evaluated, now.counts.evaluated
        compares = same is not False and earlier > 0 and later > 0
        several = earlier > 1 or later > 1
        return cls(case_id, then, now, then.counts, now.counts, same, compares, several)

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
        """Whether a deterministic trial failed, so that it would have failed before too."""
        return self.compares and self.now.is_fixed and bool(self.before.passed)

    @property
    def fails_on_both_sides(self) -> bool:
        """Whether the first evaluated trial passed on neither side."""
        return self.compares and "passed" not in (self.then.status, self.now.status)

    @property
    def p(self) -> float:
        """How likely pass rates this different are if nothing changed."""
        then, now = self.before, self.after
        return fisher(now.passed, now.evaluated, then.passed, then.evaluated)

    @property
    def can_tell(self) -> bool:
        """Whether the test could have noticed anything, whichever side had the passed trials."""
        good = self.before.passed + self.after.passed
        return fisher_floor(good, self.after.evaluated, self.before.evaluated) <= ALPHA

    @property
    def metrics(self) -> dict[str, MetricChange]:
        """The metrics that both sides measured."""
        before = self.then.means
        return {
            name: MetricChange(name, before[name], after)
            for name, after in self.now.means.items()
            if name in before
        }

    @property
    def cost(self) -> MetricChange | None:
        """What a trial cost on average."""
        return _moved("cost", self.then.cost, self.now.cost)

    @property
    def seconds(self) -> MetricChange | None:
        """How long a trial took on average."""
        return _moved("seconds", self.then.seconds, self.now.seconds)


def _moved(name: str, before: float | None, now: float | None) -> MetricChange | None:
    return None if before is None or now is None else MetricChange(name, before, now)


# Several reports as one


def pooled(reports: Sequence[Report]) -> Report:
    """Several reports of the same cases as one baseline: all their trials, numbered again.

    The last report's version of a case counts: trials of another version are left out.
    A single report is returned unchanged.
    """
    if not reports:
        raise BadInput("there is no report to pool; give one or more.")
    # A run given twice is no more evidence than once, nor is one that was measured again: its latest verdicts count.
    latest: dict[object, Report] = {}
    for report in reports:
        run = report.rescored_from or report.id or id(report)
        if (known := latest.get(run)) is None or (known.at or 0.0) <= (report.at or 0.0):
            latest[run] = report
    reports = list(latest.values())
    if len(reports) == 1:
        return reports[0]
    found: dict[str, list[CaseResult]] = {}
    for report in reversed(reports):
        for case_id, results in report.by_case().items():
            known = found.setdefault(case_id, [])
            counted = _counted(report, results)
            known += [r for r in counted if not known or _is_same(r, known[0])]
    last = reports[-1]
    return Report(
        [replace(r, trial=n) for trials in found.values() for n, r in enumerate(trials, start=1)],
        name=last.name,
        seconds=fsum(report.seconds for report in reports),
        notes=list(dict.fromkeys(note for report in reports for note in report.notes)),
        id="+".join(report.id for report in reports),
        evalset_id=last.evalset_id,
        at=last.at,
        measures=shared_measures(reports),
    )


def _is_same(one: CaseResult, other: CaseResult) -> bool:
    asked = [Asked(result.asks, result.kept, result.asked) for result in (one, other)]
    if same_case(*asked) is False:
        return False
    return not Measured.of([one]).unlike(Measured.of([other]))


# What measured the case


class Measured(Struct, frozen=True, gc=False):
    """The metrics that measured the trials of a case on one side."""

    names: frozenset[str]
    """All of them, also those that gave no score."""
    scored: frozenset[str]
    bars: Mapping[str, float]
    """The thresholds of those that have one."""

    @classmethod
    def of(cls, trials: Sequence[Facts]) -> "Measured":
        """What measured these trials of a case."""
        names: dict[str, bool] = {}
        bars: dict[str, float] = {}
        for trial in trials:
            for name, outcome in trial.scores.items():
                names[name] = names.get(name, False) or outcome.value is not None
                if (bar := outcome.threshold) is not None and isfinite(bar):
                    bars.setdefault(name, bar)
        return _measured(tuple(names.items()), tuple(bars.items()))

    def unlike(self, now: "Measured") -> str:
        """Which metrics or thresholds are others now; empty if none is, or that is unknown."""
        found = self._unlike(now)
        # A report from a file has lost its secrets.
        return found and self._clean()._unlike(now._clean())

    def _unlike(self, now: "Measured") -> str:
        if not self.names or not now.names:
            return ""
        # One that applied on neither side decided nothing.
        sides = {"only before": self.scored - now.names, "only now": now.scored - self.names}
        whys = [f"{', '.join(sorted(names))} {side}" for side, names in sides.items() if names]
        whys += [
            f"{name} with threshold {bar:g} before, {now.bars[name]:g} now"
            for name, bar in self.bars.items()
            if now.bars.get(name, bar) != bar
        ]
        return "; ".join(whys)

    def _clean(self) -> "Measured":
        text = redactor().text
        return Measured(
            frozenset(map(text, self.names)),
            frozenset(map(text, self.scored)),
            {text(name): bar for name, bar in self.bars.items()},
        )


@lru_cache(maxsize=1024)
def _measured(names: tuple[tuple[str, bool], ...], bars: tuple[tuple[str, float], ...]) -> Measured:
    """Cached: most cases of a run are measured by the same metrics."""
    scored = frozenset(name for name, has_score in names if has_score)
    return Measured(frozenset(name for name, _ in names), scored, dict(bars))


# What the case asks for


class Asked(Struct, frozen=True, gc=False):
    """What a case asked for, or where to find it."""

    asks: str
    """A digest of it with all its code, where there is one."""
    kept: Ledger | LedgerSource | None
    asked: Case | Mapping[str, Json] | None

    @property
    def data(self) -> dict[str, Json]:
        """What the case asks for as JSON, without names and tags, which may change; None if unknown."""
        try:
            found = case_of(self.asked, self.kept) or {}
        except BadInput:
            return {}
        return {name: value for name, value in found.items() if name not in _UNTOUCHED}


def same_case(then: Asked, now: Asked) -> bool | None:
    """Whether the case is the same on both sides; None if that is unknown."""
    if then.asks and then.asks == now.asks:
        return True
    before, after = then.data, now.data
    if not before or not after:
        return None
    if _text(before) != _text(after):
        # A report from a file has lost its secrets.
        clean = redactor().value
        if _text(clean(before)) != _text(clean(after)):
            return False
    return None if UNKNOWN_CODE in _text(before) else True


def _text(data: Json) -> str:
    return without_addresses(json.dumps(data, sort_keys=True, default=repr))


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    found = list(values)
    return fsum(found) / len(found)
