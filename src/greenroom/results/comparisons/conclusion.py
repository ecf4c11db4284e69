"""The conclusion of a comparison: what got worse, what may have, or why nothing can be compared."""

from collections.abc import Iterator, Sequence

from greenroom.results.comparisons.changes import CaseChange
from greenroom.results.comparisons.comparison import SET_ALPHA, Comparison, Missed
from greenroom.results.statistics.exact import holm
from greenroom.results.statistics.intervals import percent
from greenroom.results.words import listed, number_of

_ROUNDING = 1e-9


def worse(comparison: Comparison) -> list[Missed]:
    """What got significantly worse: the set, its tags, its metrics, its cases."""
    whys = [*_rates(comparison), *_metrics(comparison), *_cases(comparison)]
    return [Missed("regression", why) for why in whys]


def _rates(comparison: Comparison) -> Iterator[str]:
    """The set and the named tags, each p corrected for the number tested."""
    parts = {"the pass rate": comparison}
    for tag, part in comparison.per_tag.items() if comparison.tags else ():
        if tag in comparison.tags:
            parts[f"the pass rate of tag {tag!r}"] = part
    adjusted = holm([part.p if part.p is not None else 1.0 for part in parts.values()])
    for (name, part), p in zip(parts.items(), adjusted, strict=True):
        rate = part.pass_rate
        if rate is not None and rate.delta < 0 and p <= SET_ALPHA:
            then, now = percent(rate.before, 0), percent(rate.now, 0)
            yield f"{name} fell from {then} to {now} (p = {p:.2g})"


def _metrics(comparison: Comparison) -> Iterator[str]:
    for name, change in comparison.moved.items():
        if change.delta < -comparison.threshold - _ROUNDING:
            then, now = f"{change.before:.2f}", f"{change.now:.2f}"
            yield f"the mean of {name} fell from {then} to {now} (p = {change.p:.2g})"


def _cases(comparison: Comparison) -> Iterator[str]:
    group = comparison.confirmed.decided.group if comparison.confirmed is not None else None
    together = set(group.case_ids) if group is not None and len(group.case_ids) > 1 else set[str]()
    alone = [case for case in comparison.regressed if case.case_id not in together]
    if alone:
        yield _regressed(alone)
    if together and group is not None:
        found = [case for case in comparison.regressed if case.case_id in together]
        failed = min(_failures(case) for case in found)
        yield (
            f"{_regressed(found)} (passed before, failed {failed} of {failed} now; at least one of "
            f"them has changed, p = {group.p:.2g})"
        )


def _failures(case: CaseChange) -> int:
    sides = [side for side in (case.now, case.again) if side is not None]
    return sum(side.evaluated - side.passed for side in sides)


def _regressed(cases: Sequence[CaseChange]) -> str:
    return f"{number_of(len(cases), 'case')} regressed: {listed([case.case_id for case in cases])}"


def undecided(comparison: Comparison) -> list[Missed]:
    """What may have got worse: suspects, flips, and a change that may exceed the threshold."""
    flips = [case for case in comparison.flipped if case.fell]
    whys = [
        f"{number_of(len(cases), noun)} not decided: {listed([case.case_id for case in cases])}"
        for noun, cases in (("suspect", comparison.suspects), ("flip", flips))
        if cases
    ]
    change = comparison.change
    if change is not None and change.low < -comparison.threshold and comparison.trend != "worse":
        least, bar = 100 * change.low, 100 * comparison.threshold
        whys.append(
            f"the pass rate may have fallen by {-least:.0f} points; a fall of more than {bar:g} is not excluded"
        )
    return [Missed("unclear", why) for why in whys]


def incomparable(comparison: Comparison) -> str:
    """Why nothing can be compared; empty if a case was evaluated on both sides."""
    if comparison.compared:
        return ""
    if not comparison.shared:
        return "no case is shared with the baseline; compare reports of the same cases"
    return f"no case was evaluated on both sides: {left_out(comparison)}"


def left_out(comparison: Comparison) -> str:
    """How many cases do not compare, and why."""
    unclear = [case for case in comparison.unclear if case.tallies is None]
    broke = [case for case in unclear if _has_errors(case)]
    counts = {
        "removed": len(comparison.removed),
        "added": len(comparison.added),
        "changed": len(comparison.changed),
        "ended in an error": len(broke),
        "not evaluated": len(unclear) - len(broke),
    }
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _has_errors(case: CaseChange) -> bool:
    sides = [side for side in (case.before, case.now) if side is not None and not side.evaluated]
    return any(side.errors for side in sides)
