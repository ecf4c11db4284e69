"""What became of one case between two reports.

A single flip is no proof: with one trial on each side a case that ended differently is `flipped`. Where
suspects were played again, that decides (see `greenroom.results.confirmation`). Otherwise an exact test
does, corrected for as many cases as were asked (Holm), and says so where the counts cannot tell. Errors
and skipped cases prove nothing either way.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Literal

from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, without_addresses
from greenroom.ledger.records import record
from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.results.confirmation import MOST, Confirming
from greenroom.results.exact import ALPHA, fisher, fisher_floor, holm
from greenroom.results.intervals import Tally
from greenroom.results.report import UNFINISHED, Report, Summary
from greenroom.results.result import UNKNOWN_CODE, CaseResult

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

_EVALUATED = ("passed", "failed", "terminated")
_UNTOUCHED = ("name", "description", "tags")


@record
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
    """How likely such a difference is if nothing changed, where several trials were compared."""
    known: bool = True
    """Whether the case is known to ask for the same; not if its data or its code was not kept."""
    adjusted: float | None = None
    """The same where so many cases were asked at once; the verdict rests on it."""
    cost: MetricChange | None = None
    """What a trial cost in USD on average; None where it is unknown."""
    seconds: MetricChange | None = None
    """How long a trial took on average; None where it is unknown."""
    again: Summary | None = None
    """How it ended when it was played again because it had failed after it had passed."""
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


# All cases at once


def changes(baseline: Report, current: Report) -> tuple[list[CaseChange], "Confirmed | None"]:
    """What became of each case, in the order of now; then those that are gone. And how that was confirmed."""
    pairs = paired(baseline, current)
    then, now = _by_case(baseline), _by_case(current)
    confirmed = _confirmed(pairs, baseline, current)
    adjusted = _adjusted(list(pairs.values()))
    found = [
        _case(pairs[case_id], adjusted, confirmed)
        if case_id in pairs
        else _one_sided(case_id, "added", baseline, now=_counts(results))
        for case_id, results in now.items()
    ]
    gone = [case_id for case_id in then if case_id not in now]
    lost = [_one_sided(c, "removed", current, before=_counts(then[c])) for c in gone]
    return [*found, *lost], confirmed


def paired(baseline: Report, current: Report) -> dict[str, "Pair"]:
    """The trials of every case that both reports have, in the order of now."""
    then, now = _by_case(baseline), _by_case(current)
    return {
        case_id: Pair(
            case_id,
            first_round(then[case_id]) if baseline.adaptive else then[case_id],
            first_round(results) if current.adaptive else results,
        )
        for case_id, results in now.items()
        if case_id in then
    }


def _by_case(report: Report) -> dict[str, Sequence[CaseResult]]:
    """The trials of each case, by an id without secrets: one that was written down has lost them."""
    cases = report.by_case()
    clean = clean_ids(cases, redactor())
    return {clean[case_id]: results for case_id, results in cases.items()}


def first_round(results: Sequence[CaseResult]) -> Sequence[CaseResult]:
    """The first trial that was evaluated: how many followed depends on how they ended."""
    first = next((result for result in results if result.status in _EVALUATED), results[0])
    return [first]


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
        return same_case(self.then[0], self.now[0])

    @property
    def compares(self) -> bool:
        """Whether both sides ask for the same and were evaluated."""
        return self.same is not False and bool(self.before.evaluated and self.after.evaluated)

    @property
    def several(self) -> bool:
        """Whether a side has trials enough to ask how likely a difference is."""
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
        """Whether a trial failed that would have failed before, too, if nothing had changed."""
        failed = any(result.fixed and result.status != "passed" for result in self.now)
        return self.compares and failed and bool(self.before.passed)

    @property
    def fails_on_both_sides(self) -> bool:
        """Whether the first trial that was evaluated did not pass, then as now."""
        return self.compares and not any(
            first_round(side)[0].passed for side in (self.then, self.now)
        )

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
            # What was never played took nothing, which says nothing.
            played: list[float | None] = [getattr(r, name) for r in results if r.ended is not None]
            known = [value for value in played if value is not None]
            if not played or len(known) < len(played):
                return None
            sides.append(mean(known))
        before, now = sides
        return MetricChange(name, before, now)


def _adjusted(pairs: Sequence[Pair]) -> dict[str, float]:
    """Each p for as many cases as were asked the same question and could have given an answer.

    Which cases could is known before looking at which side did better, so leaving out the others
    costs no certainty.
    """
    ps = {p.case_id: p.p for p in pairs if p.compares and p.several and p.can_tell}
    return dict(zip(ps, holm(list(ps.values())), strict=True))


# Suspects that were played again


@record(eq=False)
class Confirmed:
    """What playing suspects again has shown."""

    decided: Confirming
    again: Mapping[str, Sequence[CaseResult]]
    """The further trials of each suspect."""

    @property
    def trials(self) -> list[CaseResult]:
        """Every trial that was played for it."""
        return [r for results in self.again.values() for r in results if _was_played(r)]

    @property
    def cost(self) -> float | None:
        """What these trials cost in USD; None where a price is unknown."""
        prices = [result.spent for result in self.trials]
        known = [price for price in prices if price is not None]
        return sum(known, 0.0) if len(known) == len(prices) else None


def confirming(pairs: Iterable[Pair], most: int) -> Confirming:
    """Which cases are to be played again, from how they ended on both sides."""
    found = list(pairs)
    suspects = [pair for pair in found if pair.is_suspect and not pair.is_proved]
    then = {pair.case_id: pair.before.evaluated for pair in suspects}
    failing = sum(pair.fails_on_both_sides for pair in found)
    now = min((pair.after.evaluated for pair in suspects), default=1)
    return Confirming(then, failing, now=now, most=most)


def _confirmed(pairs: Mapping[str, Pair], baseline: Report, current: Report) -> "Confirmed | None":
    """What became of the suspects, if they were to be played again against this baseline."""
    if current.against is None or current.against != baseline.id:
        return None
    again = _by_case(replace(current, results=current.confirmed))
    # As many trials as there are were allowed.
    decided = confirming(pairs.values(), most=1 + max(map(len, again.values()), default=0))
    waiting = {case_id: iter(results) for case_id, results in again.items()}
    while due := decided.due():
        played = [(c, next(waiting.get(c, iter(())), None)) for c in due]
        for case_id, result in played:
            if result is not None and _was_played(result):
                decided.take(case_id, end_of(result))
        if any(result is None or not _was_played(result) for _, result in played):
            break  # the run did not go on from here
    return Confirmed(decided, again)


def end_of(result: CaseResult) -> bool | None:
    """Whether a trial passed; None if it is no observation."""
    return result.passed if result.status in _EVALUATED else None


def _was_played(result: CaseResult) -> bool:
    return result.status != "skipped" or result.error is not None


# One case


Judged = tuple[Verdict, str]


def _case(pair: Pair, bars: Mapping[str, float], confirmed: Confirmed | None) -> CaseChange:
    case_id, before, after, known = pair.case_id, pair.before, pair.after, pair.same is not None
    tags = tuple(dict.fromkeys(str(tag) for result in pair.now for tag in result.tags))
    if pair.same is False:
        why = "the case was changed: not comparable"
        return CaseChange(case_id, "changed", why, before, after, tags=tags)
    if not pair.compares:
        why = _not_compared(pair)
        return CaseChange(case_id, "unclear", why, before, after, known=known, tags=tags)
    adjusted = bars.get(case_id, 1.0) if pair.several else None
    verdict, why = _judged(pair, adjusted, confirmed)
    again = confirmed.again.get(case_id, ()) if confirmed is not None else ()
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
        _counts(again) if again else None,
        tags,
    )


def _judged(pair: Pair, adjusted: float | None, confirmed: Confirmed | None) -> Judged:
    if pair.is_proved:
        told = f"passed {_share(pair.before)} before, failed now"
        return "regressed", f"{told}; nothing in this run was left to chance"
    if confirmed is not None and pair.is_suspect:
        return _by_confirming(pair, confirmed)
    if adjusted is None:
        return _by_end(pair)
    return _by_counts(pair, adjusted, tested=confirmed is None)


def _by_end(pair: Pair) -> Judged:
    then, now = (first_round(side)[0] for side in (pair.then, pair.now))
    if then.passed == now.passed:
        return "unchanged", ""
    return "flipped", f"{then.status} before, {now.status} now (1 trial each)"


def _by_counts(pair: Pair, adjusted: float, *, tested: bool) -> Judged:
    """What the counts of several trials say; a fall only where suspects were not played again."""
    if pair.rise == 0:
        return "unchanged", ""
    told = f"passed {_share(pair.before)} before, {_share(pair.after)} now (p = {pair.p:.2g})"
    if pair.rise < 0 and not tested:
        return "unclear", f"{told}: it did not fail every time, so it was not played again"
    if adjusted <= ALPHA:
        return ("improved" if pair.rise > 0 else "regressed"), told
    verdict: Verdict = "suspect" if pair.is_suspect else "unclear"
    many = f" among so many cases ({adjusted:.2g})" if pair.p <= ALPHA else ""
    return verdict, f"{told}: too few trials to tell{many}"


def _by_confirming(pair: Pair, confirmed: Confirmed) -> Judged:
    decided, case_id = confirmed.decided, pair.case_id
    again = _counts(confirmed.again.get(case_id, ()))
    failed, played = again.evaluated - again.passed, pair.after.evaluated + again.evaluated
    told = f"passed {_share(pair.before)} before, failed {played} of {played} now"
    if case_id in decided.regressed:
        return "regressed", told
    if case_id in decided.cleared:
        times = pair.after.evaluated + failed
        often = "once" if times == 1 else f"{times} times"
        return "flaky", f"passed {_share(pair.before)} before, failed {often}, then passed"
    return "suspect", f"{told}{_why_open(pair, confirmed, failed)}"


def _why_open(pair: Pair, confirmed: Confirmed, failed: int) -> str:
    """Why a suspect was not decided."""
    decided, again = confirmed.decided, confirmed.again.get(pair.case_id, ())
    if left_out := next((r for r in again if not _was_played(r)), None):
        return f"; {'; '.join(left_out.notes)}"
    if again and end_of(again[-1]) is None:
        return "; it could not be played on: its last trial broke"
    if pair.case_id in decided.crowded_out:
        return "; not played on, because so many cases failed that had passed"
    if failed >= MOST and pair.before.evaluated == 1:
        others = f"{decided.failing} other cases fail"
        return (
            ". One baseline trial is not enough to tell a change from a case that was lucky: "
            f"{others} on both sides. Make the baseline with --trials 3."
        )
    return "; more trials would be needed to tell" if failed else "; it was not played again"


def _scores(results: Iterable[CaseResult], name: str) -> list[float]:
    """What a metric gave in the trials that were evaluated; one that broke was cut short."""
    return [
        result.measured[name].value
        for result in results
        if result.status in _EVALUATED and name in result.measured
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


def same_case(then: CaseResult, now: CaseResult) -> bool | None:
    """Whether both sides ask for the same; None if that cannot be told."""
    if then.asks and then.asks == now.asks:
        return True
    before, after = _asked(then), _asked(now)
    if not before or not after:
        return None
    if _told(before) != _told(after):
        # A report from a file has lost its secrets.
        clean = redactor().value
        if _told(clean(before)) != _told(clean(after)):
            return False
    return None if UNKNOWN_CODE in _told(before) else True


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
