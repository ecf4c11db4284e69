"""A report as the head of its page: counts, rates, costs, and what to look at first."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from greenroom.reports.page.shapes import (
    WORST,
    CaseMoved,
    CaseStatus,
    Compared,
    GateLine,
    Head,
    MetricLine,
    Moved,
    NodeLine,
    Rate,
    Reason,
    Row,
    Spent,
    Steady,
    TagLine,
    Verdicts,
)
from greenroom.reports.words import rate_text
from greenroom.results.breakdown import TagSummary
from greenroom.results.comparisons.comparison import CaseChange, Comparison
from greenroom.results.comparisons.comparison_text import NOTABLE, called, certainty, rates, remarks
from greenroom.results.comparisons.families import families, family
from greenroom.results.facts import Facts
from greenroom.results.gate import Decision
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.statistics.intervals import Interval
from greenroom.results.summary import MetricSummary, Summary
from greenroom.results.text import fell_short, node_spending, reasons, spending
from greenroom.results.words import shortened

_MOST_LINES, _MOST_NODES, _MOST_REASONS = 60, 100, 12
_LONGEST_REASON = 200
_BINS = 10
_MOST_CASES = 200
_NOTABLE = 0.005
"""A metric of a case that moved by less is not listed."""


@dataclass(slots=True)
class CaseCounts:
    """Counts of a head that go beyond the totals of its report, collected case by case."""

    cases: int = 0
    statuses: Counter[CaseStatus] = field(default_factory=Counter[CaseStatus])
    tags: Counter[str] = field(default_factory=Counter[str])
    missed: Counter[str] = field(default_factory=Counter[str])
    changes: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """How many trials fell short for each reason, and of how many cases."""
    sharing: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    bins: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """How many scores of each metric fall into each tenth from 0 to 1."""

    def add_row(self, row: Row) -> None:
        """Count a row of the list."""
        self.cases += 1
        self.statuses[row.status] += 1
        for tag in row.tags:  # Counter.update would take longer than all the rest
            self.tags[tag] += 1
        for name in row.missed:
            self.missed[name] += 1
        if row.change:
            self.changes[row.change] += 1

    def add_trials(self, trials: Iterable[Facts]) -> None:
        """Count the trials of a case."""
        whys: list[tuple[str, str]] = []
        for trial in trials:
            if trial.fell_short:
                whys.append((_first_reason(trial), trial.status))
            for name, outcome in trial.scores.items():
                if (value := outcome.value) is not None:
                    bins = self.bins.get(name)
                    if bins is None:
                        bins = self.bins[name] = [0] * _BINS
                    bins[_BINS - 1 if value >= 1 else int(value * _BINS) if value > 0 else 0] += 1
        if whys:
            self.reasons.update(whys)
            self.sharing.update(set(whys))

    @property
    def by_status(self) -> dict[CaseStatus, int]:
        """The number of cases by status, without those that do not occur."""
        return {status: count for status in reversed(WORST) if (count := self.statuses[status])}

    @property
    def choices(self) -> dict[str, dict[str, int]]:
        """The filters of the list besides status, and how many cases each value lists."""
        counts = {"tag": self.tags, "metric": self.missed, "change": self.changes}
        return {kind: dict(found.most_common()) for kind, found in counts.items() if found}

    @property
    def why(self) -> list[Reason]:
        """Reasons that several cases share, the most frequent first."""
        frequent = [why for why in self.reasons.most_common() if self.sharing[why[0]] > 1]
        return [Reason(text=t, status=s, count=n) for (t, s), n in frequent[:_MOST_REASONS] if t]


def head_of(
    report: Report,
    cases: CaseCounts,
    *,
    title: str = "",
    changes: Comparison | None = None,
    decision: Decision | None = None,
) -> Head:
    """The head of a page about this report, whose cases are counted."""
    summary, rate = report.summary, report.pass_rate
    return Head(
        title=title or report.name or report.evalset_id or "Evaluation report",
        run=report.id,
        evalset=report.evalset_id,
        begun=report.at,
        seconds=report.seconds,
        cases=cases.cases,
        trials=summary.total,
        counts=cases.by_status,
        passed=summary.passed,
        evaluated=summary.evaluated,
        rate=None if rate is None else rate_data(rate, report.interval),
        steady=_steady(report),
        cost=report.spent,
        spent=spent_data(report),
        metrics=_metric_lines(report, cases.bins),
        tags=[tag_line(found) for found in [*report.per_tag.values()][:_MOST_LINES]],
        nodes=_nodes(report),
        why=cases.why,
        notes=list(report.notes),
        gate=gate_line(decision),
        compared=None if changes is None else _compared(changes),
        left_out=_left_out(report),
        choices=cases.choices,
    )


def rate_data(share: float, interval: Interval | None) -> Rate:
    """A pass rate with its interval, where that is known."""
    text = rate_text(share, interval)
    if interval is None:
        return Rate(share=share, text=text)
    return Rate(share=share, text=text, low=interval.low, high=interval.high)


def _steady(report: Report) -> Steady | None:
    """How likely all trials of a case pass; None where there is only one."""
    k = min((evaluated for _, evaluated in report.totals.tallies), default=0)
    share = report.all_of(k) if k > 1 else None
    return None if share is None else Steady(k=k, share=share)


def spent_data(whose: Report | CaseResult) -> list[Spent]:
    """What each role spent; one that asked no model is left out."""
    return [
        Spent(
            role=one.role,
            models={shortened(name, 120): times for name, times in one.models.items()},
            cost=one.cost,
            tokens=None if one.usage is None else (one.usage.input, one.usage.output),
        )
        for one in spending(whose)
    ]


def gate_line(decision: Decision | None) -> GateLine | None:
    """The quality gate's verdict; None if there was no gate."""
    if decision is None:
        return None
    missed = [one.why for one in decision.missed]
    return GateLine(passed=decision.passed, exit_code=decision.exit_code, missed=missed)


# Metrics, tags, nodes


def _metric_lines(report: Report, bins: Mapping[str, list[int]]) -> list[MetricLine]:
    """A line for each metric, grouped over its arguments, the worst first; those without measurements last."""
    found = families(report.metrics).values()
    ranked = sorted(found, key=lambda one: _rank(one.whole))[:_MOST_LINES]
    lines: list[MetricLine] = []
    for one in ranked:
        line = _metric(one.whole, one.name)
        found_in = [bins[member.name] for member in one.members if member.name in bins]
        line.bins = [sum(counts) for counts in zip(*found_in, strict=True)] or [0] * _BINS
        if len(one.members) > 1 or one.members[0].name != one.name:
            members = sorted(one.members, key=_rank)[:_MOST_LINES]
            line.members = [_metric(member, member.name) for member in members]
        lines.append(line)
    return lines


def _rank(found: MetricSummary) -> tuple[float, str]:
    return (found.passed / found.measured if found.measured else 2.0), found.name


def _metric(found: MetricSummary, name: str) -> MetricLine:
    return MetricLine(
        name=name,
        passed=found.passed,
        measured=found.measured,
        not_applicable=found.not_applicable,
        unmeasured=found.unmeasured,
        mean=found.mean,
        low=found.min,
        high=found.max,
    )


def tag_line(found: TagSummary) -> TagLine:
    """A tag with how many of its trials passed, and what they cost."""
    rate, counts = found.pass_rate, found.counts
    return TagLine(
        name=found.tag,
        total=counts.total,
        passed=counts.passed,
        evaluated=counts.evaluated,
        rate=None if rate is None else rate_data(rate, found.interval),
        cost=found.cost,
    )


def _nodes(report: Report) -> list[NodeLine]:
    return [
        NodeLine(
            node=shortened(node, 200),
            calls=spent.calls,
            models=list(spent.models)[:20],
            tokens=None if spent.usage is None else (spent.usage.input, spent.usage.output),
            cost=spent.cost,
            known_cost=spent.known_cost,
        )
        for node, spent in [*node_spending(report).items()][:_MOST_NODES]
    ]


def _left_out(report: Report) -> dict[str, int]:
    lines = {"metrics": len(families(report.metrics)), "tags": len(report.per_tag)}
    found = {name: count - _MOST_LINES for name, count in lines.items()}
    found["nodes"] = len(node_spending(report)) - _MOST_NODES
    return {name: count for name, count in found.items() if count > 0}


def _first_reason(result: Facts) -> str:
    """Why it fell short, without details that are specific to this trial."""
    if result.error is not None:
        return next((line for line in reasons(result)), "")[:_LONGEST_REASON]
    for name, outcome in result.scores.items():
        if outcome.passed is False:
            return shortened(
                f"{family(name)}: {fell_short(outcome).splitlines()[0]}", _LONGEST_REASON
            )
    return next((line for line in reasons(result)), "")[:_LONGEST_REASON]


# What changed since the baseline


def _compared(found: Comparison) -> Compared:
    """What got worse or better, was added or removed, each with its differences."""
    moved, rate = rates(found), found.pass_rate
    says = f"pass rate {moved}: {certainty(found)}" if moved else certainty(found)
    baseline, current = found.baseline, found.current
    costs = (baseline.spent, current.spent) if current.models else (None, None)
    then, now = costs
    return Compared(
        against=called(found),
        says=f"{says[:1].upper()}{says[1:]}.",
        before=None if rate is None else rate.before,
        now=None if rate is None else rate.now,
        cost=None if then is None or now is None else (then, now),
        seconds=(baseline.seconds, current.seconds)
        if current.seconds and baseline.seconds
        else None,
        worse=[missed.why for missed in found.worse],
        remarks=list(remarks(found)),
        verdicts=[
            Verdicts(
                verdict=verdict, count=len(cases), cases=[_case(c) for c in cases[:_MOST_CASES]]
            )
            for verdict in NOTABLE
            if (cases := found.of(verdict))
        ],
        unchanged=len(found.of("unchanged")),
    )


def _case(case: CaseChange) -> CaseMoved:
    moved = [change for change in case.metrics.values() if abs(change.delta) >= _NOTABLE]
    return CaseMoved(
        id=case.case_id,
        before=_trials(case.before),
        now=_trials(case.now),
        again=_trials(case.again),
        metrics=[Moved(name=m.name, before=m.before, now=m.now) for m in moved],
        why=case.why,
    )


def _trials(counts: Summary | None) -> dict[str, int]:
    found = {} if counts is None else counts.by_status
    return {status: count for status, count in found.items() if count}
