"""Two reports side by side, case by case: what got worse, what got better, and what nobody can tell.

Cases are matched by id. A case that was changed in between is named, not compared. With one trial
on each side a case is compared as it ended; with more an exact test decides, and says "unclear"
where the counts cannot tell. Errors and skipped cases prove nothing either way.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record
from greenroom.ledger.redaction import redactor
from greenroom.results.exact import ALPHA, apart, fisher, sign
from greenroom.results.report import Report, Summary
from greenroom.results.result import CaseResult

Verdict = Literal["regressed", "improved", "unchanged", "unclear", "changed", "added", "removed"]
Trend = Literal["worse", "better", "unclear", "same"]

THRESHOLD = 0.05
_ROUNDING = 1e-9
_UNTOUCHED = ("name", "description", "tags")
_UNKNOWN_CODE = ':unknown"'
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@record
class MetricChange:
    """The mean score of one metric, then and now."""

    name: str
    before: float
    now: float

    @property
    def delta(self) -> float:
        """How much it rose."""
        return self.now - self.before


@record
class CaseChange:
    """What became of one case."""

    case_id: str
    verdict: Verdict
    why: str = ""
    before: Summary | None = None
    now: Summary | None = None
    metrics: Mapping[str, MetricChange] = field(default_factory=dict[str, MetricChange])
    p: float | None = None
    """How likely such a difference is by luck alone, where several trials were compared."""
    known: bool = True
    """Whether the case is known to ask for the same; not if its data or its code was not kept."""


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

    @property
    def p(self) -> float | None:
        """How likely so uneven a change of pass rates is by luck alone; None if nothing compares."""
        moves = [_move(case) for case in self.compared]
        return sign(moves.count(1), moves.count(-1)) if moves else None

    @property
    def trend(self) -> Trend:
        """Where the pass rates went over all compared cases, if that can be told."""
        moves = [_move(case) for case in self.compared]
        if not any(moves):
            return "same" if moves else "unclear"
        if (self.p or 0) > ALPHA:
            return "unclear"
        return "better" if sum(moves) > 0 else "worse"

    @property
    def metrics(self) -> dict[str, MetricChange]:
        """Each metric over the cases that it measured on both sides; every case counts once."""
        found: dict[str, list[MetricChange]] = {}
        for case in self.compared:
            for name, change in case.metrics.items():
                found.setdefault(name, []).append(change)
        return {
            name: MetricChange(
                name, _mean(c.before for c in changes), _mean(c.now for c in changes)
            )
            for name, changes in found.items()
        }

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
    other way and nothing fell.
    """
    if not 0 <= threshold <= 1:
        raise BadInput(f"threshold={threshold!r} is no difference of scores; give 0 to 1.")
    then, now = baseline.by_case(), current.by_case()
    cases = [_case(case_id, then.get(case_id), found, threshold) for case_id, found in now.items()]
    gone = [
        CaseChange(case_id, "removed", before=_counts(found))
        for case_id, found in then.items()
        if case_id not in now
    ]
    return Comparison([*cases, *gone], baseline, current, threshold)


def compare_all(
    baseline: Report, reports: Iterable[Report], threshold: float = THRESHOLD
) -> list[Comparison]:
    """Each report against one baseline, in order."""
    return [compare(baseline, report, threshold) for report in reports]


# One case


def _case(
    case_id: str, then: Sequence[CaseResult] | None, now: Sequence[CaseResult], threshold: float
) -> CaseChange:
    after = _counts(now)
    if then is None:
        return CaseChange(case_id, "added", now=after)
    before = _counts(then)
    same = _same_case(then[0], now[0])
    if same is False:
        return CaseChange(case_id, "changed", "the case was changed: not comparable", before, after)
    if not before.evaluated or not after.evaluated:
        sides = {"before": then} if not before.evaluated else {}
        sides |= {"now": now} if not after.evaluated else {}
        why = "; ".join(_not_evaluated(side, results[0]) for side, results in sides.items())
        return CaseChange(case_id, "unclear", why, before, after, known=same is not None)
    metrics = _metrics(then, now)
    several = len(then) > 1 or len(now) > 1
    judged = _by_counts(before, after) if several else _by_end(then[0], now[0])
    scores = _by_scores(then, now, metrics, threshold, several)
    verdict, why = _worst(judged[:2], scores)
    return CaseChange(case_id, verdict, why, before, after, metrics, judged[2], same is not None)


Judged = tuple[Verdict, str]


def _by_end(then: CaseResult, now: CaseResult) -> tuple[Verdict, str, None]:
    if then.passed == now.passed:
        return "unchanged", "", None
    return (
        "improved" if now.passed else "regressed",
        f"{then.status} before, {now.status} now",
        None,
    )


def _by_counts(then: Summary, now: Summary) -> tuple[Verdict, str, float]:
    p = fisher(now.passed, now.evaluated, then.passed, then.evaluated)
    told = f"{_share(then)} before, {_share(now)} now (p = {p:.2g})"
    rise = now.passed * then.evaluated - then.passed * now.evaluated
    if rise == 0:
        return "unchanged", "", p
    if p > ALPHA:
        return "unclear", f"{told}: too few trials to tell", p
    return "improved" if rise > 0 else "regressed", told, p


def _by_scores(
    then: Sequence[CaseResult],
    now: Sequence[CaseResult],
    metrics: Mapping[str, MetricChange],
    threshold: float,
    several: bool,
) -> list[Judged]:
    """What the scores say that moved by more than the threshold."""
    found: list[Judged] = []
    for name, change in metrics.items():
        if abs(change.delta) <= threshold + _ROUNDING:
            continue
        told = f"{name}: {change.before:.2f} before, {change.now:.2f} now"
        if several and not _stand_apart(_scores(then, name), _scores(now, name)):
            found.append(("unclear", f"{told}: too few trials to tell"))
        else:
            found.append(("improved" if change.delta > 0 else "regressed", told))
    return found


def _stand_apart(then: Sequence[float], now: Sequence[float]) -> bool:
    """Whether no value of one side reaches those of the other, with values enough to believe it."""
    separate = max(then) < min(now) or max(now) < min(then)
    return separate and apart(len(now), len(then)) <= ALPHA


def _worst(first: Judged, others: Sequence[Judged]) -> Judged:
    """What weighs most: a loss before a gain in how it ended, before a doubt, before a better score."""
    said = [first, *others]
    order: list[Verdict] = ["regressed", "unclear", "improved"]
    if first[0] == "improved":
        order = ["regressed", "improved"]
    for verdict in order:
        if whys := [why for found, why in said if found == verdict]:
            return verdict, "; ".join(whys)
    return first


def _metrics(then: Sequence[CaseResult], now: Sequence[CaseResult]) -> dict[str, MetricChange]:
    names = dict.fromkeys(name for result in now for name in result.measured)
    sides = {name: (_scores(then, name), _scores(now, name)) for name in names}
    return {
        name: MetricChange(name, _mean(before), _mean(after))
        for name, (before, after) in sides.items()
        if before and after
    }


def _scores(results: Iterable[CaseResult], name: str) -> list[float]:
    return [result.measured[name].value for result in results if name in result.measured]


def _same_case(then: CaseResult, now: CaseResult) -> bool | None:
    """Whether both sides ask for the same; None if that cannot be told."""
    before, after = _asked(then), _asked(now)
    if not before or not after:
        return None
    if _told(before) != _told(after):
        # A report from a file has lost its secrets.
        clean = redactor().value
        if _told(clean(before)) != _told(clean(after)):
            return False
    return None if _UNKNOWN_CODE in _told(before) else True


def _asked(result: CaseResult) -> dict[str, Json]:
    """What the case asks for; names and tags may change."""
    try:
        return {name: v for name, v in (result.case or {}).items() if name not in _UNTOUCHED}
    except BadInput:
        return {}


def _told(data: Json) -> str:
    # Objects live elsewhere in every process.
    return _ADDRESS.sub("", json.dumps(data, sort_keys=True, default=repr))


def _not_evaluated(side: str, result: CaseResult) -> str:
    if result.error is None:
        return f"{result.status} {side}"
    first = next(iter(result.error.message.splitlines()), "") or result.error.type
    return f"{result.status} {side} in phase {result.error.phase}: {first}"


# All of it


def _move(case: CaseChange) -> int:
    """Whether a case's pass rate rose (1), fell (-1) or stayed."""
    then, now = case.before, case.now
    if then is None or now is None:
        return 0
    rise = now.passed * then.evaluated - then.passed * now.evaluated
    return (rise > 0) - (rise < 0)


def _counts(results: Sequence[CaseResult]) -> Summary:
    return Report(results).summary


def _share(counts: Summary) -> str:
    return f"{counts.passed} of {counts.evaluated}"


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
