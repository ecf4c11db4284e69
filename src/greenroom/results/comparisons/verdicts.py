"""The verdict on each case between two reports.

A single flip is not proof: with one trial on each side, a case that ended differently is `flipped`.
Where suspects were run again, that decides (see `greenroom.results.comparisons.confirmation`). Otherwise an exact
test decides, corrected for the number of cases tested (Holm), and says so where the counts are too
small. Errors and skipped cases prove nothing either way.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.results.breakdown import summary_of
from greenroom.results.comparisons.changes import CaseChange, Pair, Verdict, sides
from greenroom.results.comparisons.confirmation import MOST, Confirming
from greenroom.results.endings import EVALUATED
from greenroom.results.report import UNFINISHED, Report
from greenroom.results.result import CaseResult
from greenroom.results.statistics.exact import ALPHA, holm
from greenroom.results.summary import Summary


def changes(baseline: Report, current: Report) -> tuple[list[CaseChange], "Confirmed | None"]:
    """How each case changed, those of the current report first; and what running suspects again showed."""
    then, now = sides(baseline), sides(current)
    pairs = {c: Pair.of(c, then[c], side) for c, side in now.items() if c in then}
    confirmed = _confirmed(pairs, baseline, current)
    adjusted = _adjusted(list(pairs.values()))
    found = [
        _case(pairs[case_id], adjusted, confirmed)
        if case_id in pairs
        else _one_sided(case_id, "added", baseline, now=side.counts)
        for case_id, side in now.items()
    ]
    gone = [case_id for case_id in then if case_id not in now]
    lost = [_one_sided(c, "removed", current, before=then[c].counts) for c in gone]
    return [*found, *lost], confirmed


def _one_sided(
    case_id: str,
    verdict: Literal["added", "removed"],
    other: Report,
    *,
    before: Summary | None = None,
    now: Summary | None = None,
) -> CaseChange:
    """A case that the other report does not have; an unfinished run may still have to run it."""
    if not other.unfinished:
        fell = now is not None and now.passed < now.total
        why = (
            f"passed {now.passed} of {now.total}, with nothing to compare to"
            if now and fell
            else ""
        )
        return CaseChange(case_id, verdict, why, before, now)
    side = "before" if verdict == "added" else "now"
    return CaseChange(case_id, "unclear", f"not run {side}: {UNFINISHED}", before, now)


def _adjusted(pairs: Sequence[Pair]) -> dict[str, float]:
    """Each p, corrected for the number of cases that were tested and could have shown a change.

    Which cases could is known before looking at which side did better, so leaving out the others
    costs no certainty.
    """
    ps = {p.case_id: p.p for p in pairs if p.compares and p.several and p.can_tell}
    return dict(zip(ps, holm(list(ps.values())), strict=True))


# Suspects that were run again


class Confirmed(Struct, frozen=True, eq=False):
    """What running suspects again has shown."""

    decided: Confirming
    again: Mapping[str, Sequence[CaseResult]]
    """The further trials of each suspect."""

    @property
    def trials(self) -> list[CaseResult]:
        """Every trial that was run for it."""
        return [r for results in self.again.values() for r in results if _was_run(r)]

    @property
    def cost(self) -> float | None:
        """What these trials cost in USD; None where a price is unknown."""
        prices = [result.spent for result in self.trials]
        known = [price for price in prices if price is not None]
        return sum(known, 0.0) if len(known) == len(prices) else None


def confirming(pairs: Iterable[Pair], most: int) -> Confirming:
    """The confirmation that decides which cases run again, from how they ended on both sides."""
    found = list(pairs)
    suspects = [pair for pair in found if pair.is_suspect and not pair.is_proved]
    then = {pair.case_id: pair.before.evaluated for pair in suspects}
    failing = sum(pair.fails_on_both_sides for pair in found)
    now = min((pair.after.evaluated for pair in suspects), default=1)
    return Confirming(then, failing, now=now, most=most)


def _confirmed(pairs: Mapping[str, Pair], baseline: Report, current: Report) -> "Confirmed | None":
    """The result for the suspects, if running again was asked for against this baseline."""
    if current.against is None or current.against != baseline.id:
        return None
    # The trials that were run again of each case, by an id without secrets.
    cases = Report(current.confirmed).by_case()
    clean = clean_ids(cases, redactor())
    again = {clean[case_id]: results for case_id, results in cases.items()}
    # The limit is unknown here, but every trial that ran was within it.
    decided = confirming(pairs.values(), most=1 + max(map(len, again.values()), default=0))
    waiting = {case_id: iter(results) for case_id, results in again.items()}
    while due := decided.due():
        ran = [(c, next(waiting.get(c, iter(())), None)) for c in due]
        for case_id, result in ran:
            if result is not None and _was_run(result):
                decided.take(case_id, end_of(result))
        if any(result is None or not _was_run(result) for _, result in ran):
            break  # the run stopped here
    return Confirmed(decided, again)


def end_of(result: CaseResult) -> bool | None:
    """Whether a trial passed; None if it is not an observation."""
    return result.passed if result.status in EVALUATED else None


def _was_run(result: CaseResult) -> bool:
    return result.status != "skipped" or result.error is not None


# One case


Judged = tuple[Verdict, str]


def _case(pair: Pair, bars: Mapping[str, float], confirmed: Confirmed | None) -> CaseChange:
    case_id, before, after, known = pair.case_id, pair.before, pair.after, pair.same is not None
    tags = pair.now.tags
    if pair.same is False:
        why = "the case was changed: not comparable"
        return CaseChange(case_id, "changed", why, before, after, tags=tags)
    if not pair.compares:
        whys = {"before": pair.then.problem, "now": pair.now.problem}
        why = "; ".join(why.replace("{side}", side, 1) for side, why in whys.items() if why)
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
        summary_of(again) if again else None,
        tags,
        pair.then.measured.unlike(pair.now.measured),
    )


def _judged(pair: Pair, adjusted: float | None, confirmed: Confirmed | None) -> Judged:
    if pair.is_proved:
        shares = f"passed {_share(pair.before)} before, failed now"
        return "regressed", f"{shares}; this run is deterministic"
    if confirmed is not None and pair.is_suspect:
        return _by_confirming(pair, confirmed)
    if adjusted is not None:
        return _by_counts(pair, adjusted, tested=confirmed is None)
    then, now = pair.then.status, pair.now.status
    if (then == "passed") == (now == "passed"):
        return "unchanged", ""
    return "flipped", f"{then} before, {now} now (1 trial each)"


def _by_counts(pair: Pair, adjusted: float, *, tested: bool) -> Judged:
    """The verdict from several trials' counts; a fall only if suspects were not run again."""
    if pair.rise == 0:
        return "unchanged", ""
    shares = f"passed {_share(pair.before)} before, {_share(pair.after)} now (p = {pair.p:.2g})"
    if pair.rise < 0 and not tested:
        return "unclear", f"{shares}: it did not fail every time, so it was not run again"
    if adjusted <= ALPHA:
        return ("improved" if pair.rise > 0 else "regressed"), shares
    verdict: Verdict = "suspect" if pair.is_suspect else "unclear"
    many = f" among this many cases ({adjusted:.2g})" if pair.p <= ALPHA else ""
    return verdict, f"{shares}: too few trials to tell{many}"


def _by_confirming(pair: Pair, confirmed: Confirmed) -> Judged:
    decided, case_id = confirmed.decided, pair.case_id
    again = summary_of(confirmed.again.get(case_id, ()))
    failed, ran = again.evaluated - again.passed, pair.after.evaluated + again.evaluated
    shares = f"passed {_share(pair.before)} before, failed {ran} of {ran} now"
    if case_id in decided.regressed:
        return "regressed", shares
    if case_id in decided.cleared:
        times = pair.after.evaluated + failed
        often = "once" if times == 1 else f"{times} times"
        return "flaky", f"passed {_share(pair.before)} before, failed {often}, then passed"
    return "suspect", f"{shares}{_why_open(pair, confirmed, failed)}"


def _why_open(pair: Pair, confirmed: Confirmed, failed: int) -> str:
    """Why a suspect was not decided."""
    decided, again = confirmed.decided, confirmed.again.get(pair.case_id, ())
    if left_out := next((r for r in again if not _was_run(r)), None):
        return f"; {'; '.join(left_out.notes)}"
    if again and end_of(again[-1]) is None:
        return "; it could not continue: its last trial broke"
    if pair.case_id in decided.crowded_out:
        return "; it was not continued, because too many cases that had passed failed"
    if failed >= MOST and pair.before.evaluated == 1:
        others = f"{decided.failing} other cases fail"
        return (
            ". One baseline trial is not enough to tell a change from a case that was lucky: "
            f"{others} on both sides. Make the baseline with --trials 3."
        )
    return "; more trials would be needed to tell" if failed else "; it was not run again"


def _share(counts: Summary) -> str:
    return f"{counts.passed} of {counts.evaluated}"
