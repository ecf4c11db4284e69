"""A comparison as plain text, for readers."""

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from greenroom.ledger.redaction import without_secrets
from greenroom.ledger.safe_text import harmless, on_one_line
from greenroom.results.comparisons.changes import MetricChange, Verdict
from greenroom.results.comparisons.comparison import Comparison
from greenroom.results.comparisons.conclusion import left_out
from greenroom.results.comparisons.families import shown_names
from greenroom.results.report import Report
from greenroom.results.statistics.exact import ALPHA
from greenroom.results.statistics.intervals import percent
from greenroom.results.words import dollars, dollars_apart, listed, number_of

NOTABLE: tuple[Verdict, ...] = (
    "regressed",
    "suspect",
    "flipped",
    "flaky",
    "unclear",
    "changed",
    "improved",
    "added",
    "removed",
)
"""The verdicts that are worth a line, the most important first."""

_LABEL = 10
_UNLIKE = 3
"""How many ways in which cases were measured differently are told."""
_ROUNDING = 1e-9


def comparison_text(comparison: Comparison) -> str:
    """What changed, one line per case, and how certain that is; without secrets."""
    return harmless(without_secrets("\n".join(_lines(comparison))))


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"Against {called(comparison)}{_sizes(comparison)}:"
    names = [name for name, c in comparison.metrics.items() if abs(c.delta) > _ROUNDING]
    shown = shown_names(comparison.metrics)
    wide = max(_LABEL, *(len(shown[name]) for name in names), 0)
    if rate := rates(comparison):
        yield f"  {'pass rate':<{_LABEL}}  {rate}: {certainty(comparison)}"
    else:
        yield f"  {comparison.incomparable}"
    for name in names:
        yield f"  {shown[name]:<{wide}}  mean {shown_metric(comparison, name)}"
    yield from _cases(comparison)
    yield from remarks(comparison)


def _cases(comparison: Comparison) -> Iterator[str]:
    listed = comparison.of(*NOTABLE)
    width = max((len(on_one_line(case.case_id)) for case in listed), default=0)
    for verdict in NOTABLE:
        for case in comparison.of(verdict):
            why = " ".join(case.why.split())
            yield f"  {verdict:<{_LABEL}}  {on_one_line(case.case_id):<{width}}  {why}".rstrip()


def remarks(comparison: Comparison) -> Iterator[str]:
    """What else a reader should know, a line each."""
    if flips := sum(case.fell for case in comparison.flipped):
        noun = "1 flip is" if flips == 1 else f"{flips} flips are"
        yield f"{noun} not proof. eval run --baseline runs flipped cases again."
    if again := confirmed(comparison):
        yield f"Confirmed {again}."
    yield from _spent(comparison)
    compared, total = len(comparison.compared), len(comparison.cases)
    if compared < total:
        yield f"{compared} of {number_of(total, 'case')} compare: {left_out(comparison)}"
    if untested := comparison.untested_tags:
        yield f"Tags of which too few cases compare to show a change: {listed(untested)}"
    yield from _measured_differently(comparison)
    if unknown := sum(not case.known for case in comparison.compared):
        yield f"It is unknown whether {number_of(unknown, 'case')} asked for the same thing before."
    for side, report in (("baseline", comparison.baseline), ("report", comparison.current)):
        if report.unfinished:
            yield f"note on the {side}: {report.unfinished}"
        if count := replayed_in(report):
            yield (
                f"note on the {side}: {count} of {number_of(len(report.results), 'trial')} "
                f"{'was' if count == 1 else 'were'} replayed from recordings, which is not evidence of "
                f"how good an agent is."
            )


def _measured_differently(comparison: Comparison) -> Iterator[str]:
    """What was measured on one side only: a verdict that differs may be the measurement's, not the agent's."""
    found = Counter(case.unlike for case in comparison.compared if case.unlike)
    for unlike, count in found.most_common(_UNLIKE):
        were = "was" if count == 1 else "were"
        yield (
            f"{number_of(count, 'case')} {were} measured differently, which may be all that changed: "
            f"{unlike}."
        )
    if (more := len(found) - _UNLIKE) > 0:
        yield f"Other cases were measured differently in {number_of(more, 'other way')}."
    if remade := comparison.remade:
        have = "has" if len(remade) == 1 else "have"
        yield (
            f"{listed(remade)} {have} other options, another model or other code now, which may be all "
            f"that changed."
        )


def replayed_in(report: Report) -> int:
    """How many trials of a report were answered from recordings."""
    return report.paid.replayed


def called(comparison: Comparison) -> str:
    """The name of the baseline: that of its set, or of its file if the two differ."""
    name = comparison.baseline.name
    return name if name and name != comparison.current.name else "the baseline"


def short_name(comparison: Comparison) -> str:
    """A baseline's name without folder and file ending."""
    name = called(comparison)
    path = PurePath(name)
    return path.stem if path.suffix == ".json" else name


def _sizes(comparison: Comparison) -> str:
    """How many cases compare, and how often they ran on each side."""
    found = comparison.tallies
    if not found:
        return ""
    then, now = ({side[n][1] for side in set(found)} for n in (0, 1))
    there = f"{_range(then)} {'trial' if then == {1} else 'trials'} there"
    here = f"{_range(now)} here"
    if comparison.current.adaptive:
        here = "the first round here"
    return f" ({number_of(len(found), 'case')}, {there}, {here})"


def _range(counts: set[int]) -> str:
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def rates(comparison: Comparison) -> str:
    """The pass rates then and now, with how sure the change is; empty if no case compares."""
    rate, change = comparison.pass_rate, comparison.change
    if rate is None or change is None:
        return ""
    moved = f"{percent(rate.before, 0)} -> {percent(rate.now, 0)}"
    points, low, high = (_points(share) for share in (change.share, change.low, change.high))
    return f"{moved}  ({points} points, 95 % interval {low} to {high})"


def _points(share: float) -> str:
    """A difference of shares in points; zero has no sign."""
    rounded = round(100 * share)
    return f"{rounded:+d}" if rounded else "0"


def certainty(comparison: Comparison) -> str:
    """Whether the pass rate of the compared cases changed, if that is known."""
    p = comparison.p
    if p is None:
        return comparison.incomparable
    match comparison.trend:
        case "same":
            return "no change"
        case "worse":
            return f"significantly worse (p = {p:.1g})"
        case "better":
            return f"significantly better (p = {p:.1g})"
        case "unclear":
            return f"no significant change{_noticeable(comparison)}"


def _noticeable(comparison: Comparison) -> str:
    """The smallest drop that would have been seen."""
    least = comparison.detectable
    if least is None:
        return ""
    cases = number_of(len(comparison.compared), "case")
    return f"; {cases} would show a drop of {100 * least:.0f} points in 4 of 5 runs"


def shown_metric(comparison: Comparison, name: str) -> str:
    """The mean of a metric then and now, and whether it differs significantly."""
    change = comparison.metrics[name]
    means = f"{change.before:.2f} -> {change.now:.2f}"
    found = comparison.moved.get(name)
    if found is None or found.p is None:
        return f"{means}: no significant change"
    way = "lower" if found.delta < 0 else "higher"
    count = number_of(len(comparison.asked), "metric")
    return f"{means}: significantly {way} (p = {found.p:.1g}, {count} compared)"


def confirmed(comparison: Comparison) -> str:
    """How many suspects were run again, how often, and at what cost; empty if none was."""
    found = comparison.confirmed
    if found is None or not found.trials:
        return ""
    cases = number_of(len({result.case_id for result in found.trials}), "case")
    cost = "cost unknown" if found.cost is None else dollars(found.cost)
    price = f" ({cost})" if found.cost != 0 else ""
    return f"{cases} with {number_of(len(found.trials), 'more trial')}{price}"


def _spent(comparison: Comparison) -> Iterator[str]:
    """What a trial cost and how long it took, where that differs by more than chance explains."""
    cost, seconds = comparison.cost, comparison.seconds
    if cost is not None and _differs(cost):
        before, now = dollars_apart(cost.before, cost.now)
        yield f"cost per trial: {before} before, {now} now"
    if seconds is not None and _differs(seconds):
        yield f"seconds per trial: {seconds.before:.2f} before, {seconds.now:.2f} now"


def _differs(change: MetricChange) -> bool:
    return change.p is not None and change.p <= ALPHA
