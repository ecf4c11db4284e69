"""What changed since a baseline, and how sure that is, as the head of a page."""

from collections.abc import Sequence

from greenroom.reports.page.shapes import CaseMoved, Compared, Moved, Verdicts
from greenroom.results.comparisons.comparison import CaseChange, Comparison, Verdict
from greenroom.results.comparisons.comparison_text import NOTABLE, called, certainty, rates, remarks
from greenroom.results.report import Summary

_MOST = 200
_NOTABLE = 0.005


def compared_head(found: Comparison) -> Compared:
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
        verdicts=[_listed(verdict, cases) for verdict in NOTABLE if (cases := found.of(verdict))],
        unchanged=len(found.of("unchanged")),
    )


def _listed(verdict: Verdict, cases: Sequence[CaseChange]) -> Verdicts:
    return Verdicts(verdict=verdict, count=len(cases), cases=[_case(c) for c in cases[:_MOST]])


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
