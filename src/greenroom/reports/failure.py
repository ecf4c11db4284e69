"""Why a case did not pass: what it expected and what happened instead, as data and as plain text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from greenroom.cases.case import Case, Expect
from greenroom.cases.reader import case_from
from greenroom.cases.scores import Score
from greenroom.errors import BadInput
from greenroom.ledger.messages import ToolCall, call_text
from greenroom.ledger.redaction import redactor
from greenroom.reports.transcript import LONGEST, retold, transcript
from greenroom.reports.words import printable
from greenroom.results.redaction import redacted
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons
from greenroom.results.words import shortened

CHECKED_BY = {
    "expected_tools": "tools",
    "expected_response": "response",
    "expected_contains": "contains",
    "tool_trajectory_avg_score": "tools",
    "tool_name_match": "tools",
    "expected_reference": "reference",
    "response_match_score": "reference",
    "reference_recall": "reference",
    "exact()": "reference",
    "contains()": "contains",
}
"""Which part of an expectation a metric checks."""
_AT_THE_END = "contains()"
"""This one looks at the last turn only."""
_DIFFS = ("tool_trajectory_avg_score", "tool_name_match")
"""The evidence of these is a diff: two characters before each call say what is wrong with it."""
_MISSING = "- "


def failure_text(result: CaseResult, *, again: str = "", whole: bool = False) -> str:
    """Why a case did not pass; `again` is the command that runs it again.

    Long conversations are shortened in the middle and long lines at their end, unless `whole` is set. Secrets
    and control characters are replaced.
    """
    # Redact before shortening: half a secret is not recognised. The case itself is needed to show what was
    # expected, but a redacted result leaves out a case with secrets.
    unmet = redactor().value(differences(result))
    [result] = redacted(Report([result]))
    lines = [f"case {result.label!r}: {result.status}"]
    lines += [f"  {line}" for line in reasons(result)]
    lines += [f"  {line}" for line in _difference_lines(unmet, whole)]
    if (ledger := result.ledger_or_none) is not None:
        hint = "; -vv shows them all"
        said = retold(transcript(ledger), whole=whole, hint=hint)
        lines += ["  conversation", *(f"    {line}".replace("\n", "\n    ") for line in said)]
    if again:
        lines.append(f"  again: {again}")
    return printable("\n".join(lines))


def _difference_lines(found: "Sequence[Difference]", whole: bool) -> Iterator[str]:
    if found:
        yield "expected (-) and actual (+)"
    width = max((len(one.part) for one in found), default=0)
    for one in found:
        label = f"turn {one.turn} {one.part:<{width}}"
        for mark, said in (("-", one.expected), ("+", one.actual)):
            for text in said:
                kept = text if whole else shortened(text, LONGEST)
                # Further lines of the text are aligned with its first.
                kept = kept.replace("\n", f"\n{' ' * (len(label) + 8)}")
                yield f"  {label}  {mark} {kept}"
                label = " " * len(label)


# What was expected


@dataclass(frozen=True, slots=True)
class Difference:
    """One part of one turn's expectation, and what happened instead; empty if that is unknown."""

    turn: int
    part: str
    expected: Sequence[str]
    actual: Sequence[str]


def differences(result: CaseResult) -> list[Difference]:
    """Every expectation that was not met, in the order of the turns."""
    missed = {n: s for n, s in result.measured.items() if not s.passed and n in CHECKED_BY}
    case = _case(result) if missed else None
    if case is None:
        return []
    found: dict[tuple[int, str], Difference] = {}
    for name, score in missed.items():
        for one in _of_score(case, name, score):
            found.setdefault((one.turn, one.part), one)
    return [found[place] for place in sorted(found, key=lambda place: place[0])]


def _case(result: CaseResult) -> Case | None:
    """The case itself, or what was recorded of it; None if that is not enough."""
    if isinstance(result.asked, Case):
        return result.asked
    try:
        data = result.case
        return None if data is None else case_from(data, "the recorded case", live=True)
    except BadInput:
        return None


def _of_score(case: Case, name: str, score: Score) -> list[Difference]:
    found: list[Difference] = []
    last, part = len(case.script), CHECKED_BY[name]
    for number, turn in enumerate(case.script, start=1):
        if name == _AT_THE_END:
            told, actual = number == last, [*score.evidence]
        else:
            mark = f"turn {number}: "
            told = mark in score.reason
            actual = [seen.removeprefix(mark) for seen in score.evidence if seen.startswith(mark)]
        if name in _DIFFS:
            actual = [seen[2:] for seen in actual if not seen.startswith(_MISSING)]
        if not told or turn.expect is None:
            continue
        expected = _expected(turn.expect, part)
        if expected is None and name == "exact()":
            expected = _expected(turn.expect, "response")
        if expected is not None and expected != actual:
            found.append(Difference(number, part, expected, actual))
    return found


def _expected(expect: Expect, part: str) -> list[str] | None:
    """One part of an expectation in words, or None if it says nothing about it."""
    match part:
        case "tools":
            return None if expect.tools is None else _calls(expect.tools)
        case "contains":
            given = expect.contains
            return None if given is None else [given] if isinstance(given, str) else list(given)
        case _:
            text: str | None = getattr(expect, part)
            return None if text is None else [text]


def _calls(tools: Sequence[ToolCall | str]) -> list[str]:
    """Calls as in the evidence of metrics; a bare name matches any arguments."""
    shown = [f"{t}(…)" if isinstance(t, str) else call_text(t.tool, t.args) for t in tools]
    return shown or ["no calls"]
