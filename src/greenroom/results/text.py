"""A report as plain text: what `print(report)` shows."""

from collections.abc import Sequence

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.redaction import without_secrets
from greenroom.ledger.shown import harmless, on_one_line
from greenroom.results.intervals import percent
from greenroom.results.report import Report, Summary
from greenroom.results.result import CaseResult

_NAMED = 10


def plain_text(report: Report) -> str:
    """One line a case, the reasons of those that did not pass, and the counts; without secrets."""
    width = max((len(result.label) for result in report.results), default=0)
    lines = [line for result in report.results for line in _case(result, width)]
    return harmless(without_secrets("\n".join([*lines, _totals(report)])))


def _case(result: CaseResult, width: int) -> list[str]:
    scores = "  ".join(
        f"{on_one_line(name)} {shown(outcome)}" for name, outcome in result.scores.items()
    )
    first = f"{result.status:<10}  {result.label:<{width}}  {scores}".rstrip()
    return [first, *(f"    {line}" for line in reasons(result))]


def shown(outcome: Outcome) -> str:
    """An outcome in one word."""
    match outcome:
        case Score():
            return f"{outcome.value:.2f}"
        case NotApplicable():
            return "n/a"
        case Unmeasured():
            return "unmeasured"


def reasons(result: CaseResult) -> list[str]:
    """Why a case did not pass, a line at a time; nothing for one that did."""
    if result.passed:
        return []
    found: list[str] = []
    if result.error is not None:
        first, *rest = result.error.message.splitlines() or [result.error.type]
        found += [f"{result.error.phase}: {first}", *rest]
    if result.status == "terminated":
        turns = number_of(result.turns, "turn")
        found.append(f"the run was cut at its limit ({result.ended}) after {turns}")
    for name, outcome in result.scores.items():
        if isinstance(outcome, Score) and not outcome.passed:
            found.append(f"{name}: {outcome.reason or 'below its threshold'}")
    return [*found, *result.notes]


def number_of(count: int, noun: str) -> str:
    """So many of them: `1 case`, `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str]) -> str:
    """The names on one line; of many the first, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def counted(summary: Summary) -> str:
    """The counts in words, leaving out what is zero."""
    parts = [f"{summary.passed} passed"]
    named = {
        "failed": summary.failed,
        "error": summary.errors,
        "terminated": summary.terminated,
        "skipped": summary.skipped,
    }
    parts += [f"{count} {word}" for word, count in named.items() if count]
    return ", ".join(parts)


def how_many(report: Report) -> str:
    """How many cases there were, and how many trials of them if there were more."""
    results, cases = len(report.results), len(report.by_case())
    noun = number_of(cases, "case")
    return noun if results == cases else f"{results} trials of {noun}"


def repeats(report: Report) -> list[str]:
    """What only several trials of a case can show: how many are flaky, how many pass every time."""
    cases = [case for case in report.per_case.values() if case.counts.evaluated]
    fewest = min((case.counts.evaluated for case in cases), default=0)
    flaky = sum(case.flaky for case in cases)
    steady = report.all_of(fewest) if fewest > 1 else None
    told = [f"{flaky} flaky"] if flaky else []
    return told if steady is None else [*told, f"pass^{fewest} {percent(steady)}"]


def _totals(report: Report) -> str:
    models = ", ".join(report.models)
    answered = f"; answered by {models}" if models else ""
    if report.user_models:
        answered += f"; users played by {', '.join(report.user_models)}"
    if report.judge_models:
        answered += f"; judged by {', '.join(report.judge_models)}"
    notes = "".join(f"\nnote: {note}" for note in report.notes)
    told = "".join(f"; {words}" for words in _sureness(report))
    again = "".join(f"\n{line}" for line in played_again(report))
    return f"{how_many(report)}: {counted(report.summary)}{told}{answered}{again}{notes}"


def played_again(report: Report) -> list[str]:
    """How cases ended that were played again because they passed in a baseline; a line each."""
    found: dict[str, list[CaseResult]] = {}
    for result in report.confirmed:
        found.setdefault(result.case_id, []).append(result)
    return [
        f"played again: {case_id} {number_of(len(results), 'time')}, "
        f"{counted(Report(results).summary)}"
        for case_id, results in found.items()
    ]


def _sureness(report: Report) -> list[str]:
    """How sure the pass rate is, where cases were played several times."""
    if len(report.results) == len(report.by_case()):
        return []
    interval = report.interval
    return [*([] if interval is None else [f"{interval} passing"]), *repeats(report)]
