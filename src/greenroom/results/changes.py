"""What became of one case between two reports.

With one trial on each side a case is compared as it ended. With more an exact test decides, held to
what so many cases at once may show by luck (Holm's correction), and says "unclear" where the counts
cannot tell. Errors and skipped cases prove nothing either way.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Literal

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, without_addresses
from greenroom.ledger.records import record
from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.results.exact import ALPHA, apart, fisher, fisher_floor, holm
from greenroom.results.report import UNFINISHED, Report, Summary
from greenroom.results.result import CaseResult

Verdict = Literal["regressed", "improved", "unchanged", "unclear", "changed", "added", "removed"]

_ROUNDING = 1e-9
_NOT_EVALUATED = ("error", "skipped")
_UNTOUCHED = ("name", "description", "tags")
_UNKNOWN_CODE = ':unknown"'


@record
class MetricChange:
    """The mean of one metric, then and now."""

    name: str
    before: float
    now: float
    p: float | None = None
    """How likely the cases differ so much by luck alone, where many of them were compared."""

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
    adjusted: float | None = None
    """The same where so many cases were asked at once; the verdict rests on it."""
    cost: MetricChange | None = None
    """What a trial cost in USD on average; None where it is unknown."""
    seconds: MetricChange | None = None
    """How long a trial took on average; None where it is unknown."""


# All cases at once


def changes(
    baseline: Report,
    current: Report,
    threshold: float,
) -> list[CaseChange]:
    """What became of each case, in the order of now; then those that are gone."""
    then, now = _by_case(baseline), _by_case(current)
    pairs = {
        case_id: Pair(case_id, then[case_id], now[case_id]) for case_id in now if case_id in then
    }
    bars = _Adjusted([pair for pair in pairs.values() if pair.tested])
    found = [
        _case(pairs[case_id], bars, threshold)
        if case_id in pairs
        else _one_sided(case_id, "added", baseline, now=_counts(results))
        for case_id, results in now.items()
    ]
    gone = [case_id for case_id in then if case_id not in now]
    return [*found, *(_one_sided(c, "removed", current, before=_counts(then[c])) for c in gone)]


def _by_case(report: Report) -> dict[str, Sequence[CaseResult]]:
    """The trials of each case, by an id without secrets: one that was written down has lost them."""
    cases = report.by_case()
    clean = clean_ids(cases, redactor())
    return {clean[case_id]: results for case_id, results in cases.items()}


def _one_sided(
    case_id: str,
    verdict: Literal["added", "removed"],
    other: Report,
    *,
    before: Summary | None = None,
    now: Summary | None = None,
) -> CaseChange:
    """A case that the other report has not: a run that is not finished may have yet to play it."""
    if not other.unfinished:
        return CaseChange(case_id, verdict, before=before, now=now)
    side = "before" if verdict == "added" else "now"
    return CaseChange(case_id, "unclear", f"not played {side}: {UNFINISHED}", before, now)


class Pair:
    """The trials of one case on both sides."""

    def __init__(self, case_id: str, then: Sequence[CaseResult], now: Sequence[CaseResult]) -> None:
        self.case_id, self.then, self.now = case_id, then, now
        self.before, self.after = _counts(then), _counts(now)

    @cached_property
    def same(self) -> bool | None:
        """Whether both sides ask for the same; None if that cannot be told."""
        return _same_case(self.then[0], self.now[0])

    @property
    def compares(self) -> bool:
        """Whether both sides ask for the same and were evaluated."""
        return self.same is not False and bool(self.before.evaluated and self.after.evaluated)

    @property
    def several(self) -> bool:
        """Whether there are trials enough to ask how likely a difference is."""
        return len(self.then) > 1 or len(self.now) > 1

    @property
    def tested(self) -> bool:
        """Whether a test decides on this case."""
        return self.compares and self.several

    @property
    def rise(self) -> int:
        """Whether the pass rate rose (above 0), fell (below 0) or stayed."""
        then, now = self.before, self.after
        return now.passed * then.evaluated - then.passed * now.evaluated

    @cached_property
    def p(self) -> float:
        """How likely pass rates so different are by luck alone."""
        then, now = self.before, self.after
        return fisher(now.passed, now.evaluated, then.passed, then.evaluated)

    @property
    def can_tell(self) -> bool:
        """Whether the test could have noticed anything, whichever side had the passed trials."""
        good = self.before.passed + self.after.passed
        return fisher_floor(good, self.after.evaluated, self.before.evaluated) <= ALPHA

    def scores(self, name: str) -> tuple[list[float], list[float]]:
        """What a metric gave then and now."""
        return _scores(self.then, name), _scores(self.now, name)

    @cached_property
    def metrics(self) -> dict[str, MetricChange]:
        """The metrics that both sides measured."""
        names = dict.fromkeys(name for result in self.now for name in result.measured)
        sides = {name: self.scores(name) for name in names}
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
            # What was never played took nothing, which says nothing.
            played: list[float | None] = [getattr(r, name) for r in results if r.ended is not None]
            known = [value for value in played if value is not None]
            if not played or len(known) < len(played):
                return None
            sides.append(mean(known))
        return MetricChange(name, *sides)


class _Adjusted:
    """Each p for as many cases as were asked the same question and could have given an answer.

    Which cases could is known before looking at which side did better, so leaving out the others
    costs no certainty.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.counts = _corrected({pair.case_id: pair.p for pair in pairs if pair.can_tell})
        names = dict.fromkeys(name for pair in pairs for name in pair.metrics)
        self._scores = {name: _corrected(_separations(pairs, name)) for name in names}

    def score(self, name: str, pair: Pair) -> float:
        """How likely the values of a metric lie so far apart by luck, for so many cases."""
        return self._scores[name].get(pair.case_id, 1.0)


def _corrected(ps: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(ps, holm(list(ps.values())), strict=True))


def _separations(pairs: Sequence[Pair], name: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for pair in pairs:
        if name not in pair.metrics:
            continue
        then, now = pair.scores(name)
        values, least = sorted([*then, *now]), apart(len(now), len(then))
        if least <= ALPHA and any(values[n - 1] < values[n] for n in (len(then), len(now))):
            found[pair.case_id] = least if _stand_apart(then, now) else 1.0
    return found


def _stand_apart(then: Sequence[float], now: Sequence[float]) -> bool:
    """Whether no value of one side reaches those of the other."""
    return max(then) < min(now) or max(now) < min(then)


# One case


Judged = tuple[Verdict, str]


def _case(pair: Pair, bars: _Adjusted, threshold: float) -> CaseChange:
    case_id, before, after, known = pair.case_id, pair.before, pair.after, pair.same is not None
    if pair.same is False:
        return CaseChange(case_id, "changed", "the case was changed: not comparable", before, after)
    if not pair.compares:
        return CaseChange(case_id, "unclear", _not_compared(pair), before, after, known=known)
    adjusted = bars.counts.get(case_id, 1.0) if pair.several else None
    judged = _by_end(pair.then[0], pair.now[0]) if adjusted is None else _by_counts(pair, adjusted)
    verdict, why = _worst(judged, _by_scores(pair, bars, threshold))
    return CaseChange(
        case_id,
        verdict,
        why,
        before,
        after,
        pair.metrics,
        pair.p if pair.several else None,
        known,
        adjusted,
        pair.cost,
        pair.seconds,
    )


def _by_end(then: CaseResult, now: CaseResult) -> Judged:
    if then.passed == now.passed:
        return "unchanged", ""
    return "improved" if now.passed else "regressed", f"{then.status} before, {now.status} now"


def _by_counts(pair: Pair, adjusted: float) -> Judged:
    if pair.rise == 0:
        return "unchanged", ""
    told = f"{_share(pair.before)} before, {_share(pair.after)} now (p = {pair.p:.2g})"
    if pair.p > ALPHA:
        return "unclear", f"{told}: too few trials to tell"
    if adjusted > ALPHA:
        return "unclear", f"{told}: too few trials to tell among so many cases ({adjusted:.2g})"
    return "improved" if pair.rise > 0 else "regressed", told


def _by_scores(pair: Pair, bars: _Adjusted, threshold: float) -> list[Judged]:
    """What the scores say that moved by more than the threshold."""
    found: list[Judged] = []
    for name, change in pair.metrics.items():
        if abs(change.delta) <= threshold + _ROUNDING:
            continue
        told = f"{name}: {change.before:.2f} before, {change.now:.2f} now"
        if pair.several and bars.score(name, pair) > ALPHA:
            found.append(("unclear", f"{told}: too few trials to tell"))
        else:
            found.append(("improved" if change.delta > 0 else "regressed", told))
    return found


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


def _scores(results: Iterable[CaseResult], name: str) -> list[float]:
    """What a metric gave in the trials that were evaluated; one that broke was cut short."""
    return [
        result.measured[name].value
        for result in results
        if result.status not in _NOT_EVALUATED and name in result.measured
    ]


def _not_compared(pair: Pair) -> str:
    sides = {"before": pair.then} if not pair.before.evaluated else {}
    sides |= {"now": pair.now} if not pair.after.evaluated else {}
    return "; ".join(_not_evaluated(side, results[0]) for side, results in sides.items())


def _not_evaluated(side: str, result: CaseResult) -> str:
    if result.error is None:
        return f"not played {side}" if result.status == "skipped" else f"{result.status} {side}"
    first = next(iter(result.error.message.splitlines()), "") or result.error.type
    return f"{result.status} {side} in phase {result.error.phase}: {first}"


# What the case asks for


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
    return without_addresses(json.dumps(data, sort_keys=True, default=repr))


def _counts(results: Sequence[CaseResult]) -> Summary:
    return Report(results).summary


def _share(counts: Summary) -> str:
    return f"{counts.passed} of {counts.evaluated}"


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    found = list(values)
    return sum(found) / len(found)
