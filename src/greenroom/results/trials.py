"""Compares the trials of one case: how many passed, what differed, and where two of them diverge."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import product

from msgspec import Struct

from greenroom.ledger.difference import Difference, diff
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import tool_calls
from greenroom.results.comparisons.families import family
from greenroom.results.endings import EVALUATED
from greenroom.results.facts import Facts, is_fine
from greenroom.results.report import Report
from greenroom.results.result import CaseResult

Trials = Sequence[CaseResult]
"""All results of one case."""

_MOST_PAIRED = 4
"""How many passed and how many failed trials are compared with each other."""
_MOST_NAMED = 3
_LONGEST_WAY = 60
_WORST = ("error", "failed", "terminated", "passed")


def has_repeats(report: Report) -> bool:
    """Whether a case of the report ran more than once."""
    return report.totals.has_repeats


def status_of(trials: Sequence[Facts]) -> str:
    """How a case ended: `flaky` if some of its trials passed and others did not, else the worst status among them."""
    if len(trials) == 1:
        return trials[0].status
    found = {result.status for result in trials}
    if "passed" in found and found & (set(EVALUATED) - {"passed"}):
        return "flaky"
    return next((status for status in _WORST if status in found), "skipped")


def passes(trials: Sequence[Facts]) -> str:
    """How many trials passed of those that were evaluated, and how many were not: `4 of 5, 1 error`."""
    counts = Counter(result.status for result in trials)
    evaluated = sum(counts[status] for status in EVALUATED)
    apart = [f"{counts[one]} {one}" for one in ("error", "skipped") if counts[one]]
    return ", ".join([f"{counts['passed']} of {evaluated}", *apart] if evaluated else apart)


# What differed


def varied(trials: Trials) -> list[str]:
    """What differed between the trials of a case: metrics, turns and how they ended."""
    ran = [result for result in trials if result.status in EVALUATED]
    found = list(_varied_metrics(ran))
    turns = {result.turns for result in ran}
    if len(turns) > 1:
        found.append(f"{min(turns)} to {max(turns)} turns")
    ends = Counter(str(result.ended) for result in ran)
    if len(ends) > 1:
        found.append(f"ended by {_tallied(ends)}")
    return found


def _varied_metrics(ran: Trials) -> Iterator[str]:
    names = dict.fromkeys(name for result in ran for name in result.scores)
    alike = Counter(map(family, names))
    for name in names:
        scores = [result.measured[name] for result in ran if name in result.measured]
        passed = sum(score.passed for score in scores)
        # The arguments are needed only where there is another metric of the name.
        shown = name if alike[family(name)] > 1 else family(name)
        if 0 < passed < len(scores):
            yield f"{shown} {passed} of {len(scores)}"
        elif len({f"{score.value:.2f}" for score in scores}) > 1:
            values = [score.value for score in scores]
            yield f"{shown} {min(values):.2f} to {max(values):.2f}"


def varied_calls(trials: Trials) -> str:
    """Which tools were called in how many trials, where that differed and the ledgers were kept."""
    ways: Counter[str] = Counter()
    for result in trials:
        if result.status in EVALUATED and (ledger := result.ledger_or_none) is not None:
            way = " → ".join(call.tool for call in tool_calls(ledger)) or "none"
            ways[way if len(way) <= _LONGEST_WAY else f"{way[: _LONGEST_WAY - 1]}…"] += 1
    return f"tools {_tallied(ways)}" if len(ways) > 1 else ""


def _tallied(counts: Counter[str]) -> str:
    """Each value with its count, the most frequent first: `completed (4), max_turns (2)`."""
    listed = [f"{what} ({count})" for what, count in counts.most_common(_MOST_NAMED)]
    more = sum(counts.values()) - sum(count for _, count in counts.most_common(_MOST_NAMED))
    return ", ".join([*listed, *([f"other ({more})"] if more else [])])


# Trials that fell short alike


def alike(trials: Trials) -> list[list[CaseResult]]:
    """The trials in groups that ended the same way, with the same metrics below their thresholds."""
    groups: dict[Hashable, list[CaseResult]] = {}
    for result in trials:
        problem = result.error and (result.error.phase, result.error.type)
        unmet = tuple(name for name, outcome in result.scores.items() if not is_fine(outcome))
        groups.setdefault((result.status, problem, unmet), []).append(result)
    return list(groups.values())


# Where they part


class Parting(Struct, frozen=True):
    """Where a trial that passed and one that did not diverge."""

    passed: int
    failed: int
    first: Difference | None
    """The first event that differs; None if the same happened in both, so that a metric differs."""

    def __str__(self) -> str:
        pair = f"trial {self.passed} passed and trial {self.failed} did not"
        if self.first is None:
            return f"{pair}, though the same happened in both: a metric measured differently"
        return f"{pair}; they part at event {_event(self.first)}, {self.first}"


def parting(trials: Trials) -> Parting | None:
    """Where the trials that passed and those that did not diverge; None if the case is not flaky.

    Of several pairs, it is the one with the most in common. Trials without a ledger are not compared.
    """
    good = [r for r in trials if r.passed and r.kept is not None][:_MOST_PAIRED]
    bad = [r for r in trials if r.status in ("failed", "terminated") and r.kept is not None]
    # Each ledger is read once, though it is compared with several others.
    opened = [(r, r.ledger_or_none) for r in (*good, *bad[:_MOST_PAIRED])] if good and bad else []
    pairs = product(opened[: len(good)], opened[len(good) :])
    found = [_first_difference(*one, *other) for one, other in pairs]
    return max(
        found, key=lambda p: float("inf") if p.first is None else _event(p.first), default=None
    )


def _first_difference(
    good: CaseResult, one: Ledger | None, bad: CaseResult, other: Ledger | None
) -> Parting:
    was, now = f"in trial {good.trial}", f"in trial {bad.trial}"
    found = diff(one, other, was, now) if one is not None and other is not None else []
    return Parting(good.trial, bad.trial, min(found, key=_event, default=None))


def _event(difference: Difference) -> int:
    """The number of the earlier of its two events."""
    return min(seq for seq in (difference.one, difference.other) if seq is not None)
