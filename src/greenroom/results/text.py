"""A report as plain text: what `print(report)` shows."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Literal, NamedTuple

from greenroom.cases.scores import DEFAULT_THRESHOLD, Outcome, told_apart
from greenroom.ledger import questions
from greenroom.ledger.messages import Usage
from greenroom.ledger.redaction import without_secrets
from greenroom.ledger.safe_text import harmless, on_one_line
from greenroom.ledger.simulated import SIMULATED
from greenroom.results.breakdown import summary_of
from greenroom.results.facts import Facts, OutcomeFacts
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.statistics.intervals import percent
from greenroom.results.stored_results import ReadResults
from greenroom.results.trials import Trials, alike, passes, status_of, varied
from greenroom.results.words import counted, listed, number_of, outcome_text


def plain_text(report: Report) -> str:
    """One line per case, the reasons of those that did not pass, and the counts; without secrets."""
    cases = [_case(trials) for trials in _by_case(report)]
    width = max((len(case_id) for _, case_id, *_ in cases), default=0)
    lines: list[str] = []
    for status, case_id, words, why in cases:
        lines += [f"{status:<10}  {case_id:<{width}}  {words}".rstrip(), *why]
    return harmless(without_secrets("\n".join([*lines, _totals(report)])))


def _by_case(report: Report) -> Iterable[Trials]:
    if not isinstance(report.results, ReadResults):
        return report.by_case().values()
    return ([*trials] for _, trials in groupby(report, lambda trial: trial.case_id))


def _case(trials: Trials) -> tuple[str, str, str, list[str]]:
    """How a case ended, its name, what was found, and why it did not pass."""
    result, *others = trials
    if others:
        words = "  ".join([passes(trials), *map(on_one_line, varied(trials))])
    else:
        scores = result.scores.items()
        words = "  ".join(f"{on_one_line(name)} {outcome_text(found)}" for name, found in scores)
    why: list[str] = []
    for first, *alike_ones in alike([one for one in trials if one.status != "passed"]):
        numbers = listed([str(one.trial) for one in (first, *alike_ones)])
        which = f"trial {numbers}: " if others and not alike_ones else f"trials {numbers}: "
        why += [f"    {which if others else ''}{line}" for line in reasons(first)]
    return status_of(trials), on_one_line(result.case_id), words, why


def reasons(result: Facts) -> list[str]:
    """Why a case did not pass, a line at a time; nothing for one that did."""
    if result.passed:
        return []
    found: list[str] = []
    if result.error is not None:
        first, *rest = result.error.message.splitlines() or [result.error.type]
        found += [f"{result.error.phase}: {first}", *rest]
    if result.status == "terminated":
        turns = number_of(result.turns, "turn")
        found.append(f"the trial was stopped at its limit ({result.ended}) after {turns}")
    for name, outcome in result.scores.items():
        if outcome.passed is False:
            found.append(f"{name}: {fell_short(outcome)}{mark(result, name)}")
    return [*found, *result.notes]


def fell_short(found: Outcome | OutcomeFacts) -> str:
    """Why a score did not pass: its reason, else that it was below its threshold, unless it was not."""
    value, bar = found.value, DEFAULT_THRESHOLD if found.threshold is None else found.threshold
    if found.reason or value is None or value >= bar:
        return found.reason or "its Score says passed=False"
    return f"{told_apart(value, bar)} is below its threshold of {bar:g}"


def mark(result: Facts, metric: str) -> str:
    """A remark, after the reason, that a hook replaced the outcome; empty if none did."""
    return f" (replaced {result.replaced[metric]})" if metric in result.replaced else ""


def how_many(report: Report) -> str:
    """How many cases there were, and how many trials of them if there were more."""
    results, cases = len(report.results), report.totals.cases
    noun = number_of(cases, "case")
    return noun if results == cases else f"{results} trials of {noun}"


def repeats(report: Report) -> list[str]:
    """What only several trials of a case can show: how many are flaky, how many pass every time."""
    tallies = report.totals.tallies
    fewest = min((evaluated for _, evaluated in tallies), default=0)
    flaky = sum(0 < passed < evaluated for passed, evaluated in tallies)
    steady = report.all_of(fewest) if fewest > 1 else None
    found = [f"{flaky} flaky"] if flaky else []
    return found if steady is None else [*found, f"pass^{fewest} {percent(steady)}"]


def _totals(report: Report) -> str:
    parts = [f"{how_many(report)}: {counted(report.summary)}"]
    # An interval of the pass rate is shown only if cases ran several times.
    if len(report.results) > report.totals.cases:
        parts += [f"{report.interval} passing"] if report.interval is not None else []
        parts += repeats(report)
    parts += [f"{spent.did} {', '.join(spent.models)}" for spent in spending(report)]
    lines = ["; ".join(parts), *run_again(report), *(f"note: {note}" for note in report.notes)]
    return "\n".join(lines)


class Spent(NamedTuple):
    """What the models of one role used and cost, in a result or in a whole report."""

    role: Literal["agent", "user", "judge"]
    did: str
    """What they did, such as "answered by"."""
    models: Mapping[str, int]
    usage: Usage | None
    cost: float | None


def spending(whose: Report | CaseResult) -> list[Spent]:
    """What each role spent; one that asked no model is left out."""
    # A model that answers for tools counts with those that speak for users.
    has_tools = any(note.startswith(SIMULATED) for note in whose.notes)
    simulating = "simulated by" if has_tools else "users simulated by"
    roles = [
        Spent("agent", "answered by", whose.models, whose.usage, whose.cost),
        Spent("user", simulating, whose.user_models, whose.user_usage, whose.user_cost),
        Spent("judge", "judged by", whose.judge_models, whose.judge_usage, whose.judge_cost),
    ]
    return [spent for spent in roles if spent.models]


def node_spending(report: Report) -> dict[str, questions.Spending]:
    """What each node of the agent spent, the most expensive first.

    Empty if all of it was free, or no node is known.
    """
    found = report.nodes
    if not any(found):
        return {}
    nodes = {node or "unknown node": spent for node, spent in found.items() if _spends(spent)}
    return dict(sorted(nodes.items(), key=lambda named: -named[1].known_cost))


def _spends(spent: questions.Spending) -> bool:
    return spent.cost != 0 or spent.usage is None or spent.usage.total > 0


def run_again(report: Report) -> list[str]:
    """How cases ended that were run again because they had passed in a baseline; a line each."""
    found: dict[str, list[CaseResult]] = {}
    for result in report.confirmed:
        found.setdefault(result.case_id, []).append(result)
    return [
        f"run again: {case_id} {number_of(len(results), 'time')}, {counted(summary_of(results))}"
        for case_id, results in found.items()
    ]
