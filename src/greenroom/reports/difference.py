"""What a case expected, beside what it got: for the expectations that were not met."""

from collections.abc import Sequence
from dataclasses import dataclass

from greenroom.cases.case import Case, Expect
from greenroom.cases.data import case_from
from greenroom.cases.scores import Score
from greenroom.errors import BadInput
from greenroom.ledger.messages import ToolCall
from greenroom.reports.words import as_called
from greenroom.results.result import CaseResult

_FIELDS = {
    "expected_tools": "tools",
    "expected_response": "response",
    "expected_contains": "contains",
    "tool_trajectory_avg_score": "tools",
    "expected_reference": "reference",
    "response_match_score": "reference",
}
"""Which part of an expectation a metric looks at."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One part of one turn's expectation, and what came instead; nothing if nobody could see it."""

    turn: int
    part: str
    expected: Sequence[str]
    actual: Sequence[str]


def differences(result: CaseResult) -> list[Difference]:
    """Every expectation that was not met, in the order of the turns."""
    missed = {n: s for n, s in result.measured.items() if not s.passed and n in _FIELDS}
    case = _case(result) if missed else None
    if case is None:
        return []
    found: dict[tuple[int, str], Difference] = {}
    for name, score in missed.items():
        for one in _of_score(case, score, _FIELDS[name]):
            found.setdefault((one.turn, one.part), one)
    return [found[place] for place in sorted(found, key=lambda place: place[0])]


def _case(result: CaseResult) -> Case | None:
    """The case itself, or what was recorded of it; None if that does not suffice."""
    if isinstance(result.asked, Case):
        return result.asked
    try:
        data = result.case
        return None if data is None else case_from(data, "the recorded case", live=True)
    except BadInput:
        return None


def _of_score(case: Case, score: Score, part: str) -> list[Difference]:
    found: list[Difference] = []
    for number, turn in enumerate(case.script, start=1):
        expected = _said(turn.expect, part) if turn.expect is not None else None
        actual = _seen(score, number)
        if expected is not None and expected != actual and f"turn {number}: " in score.reason:
            found.append(Difference(number, part, expected, actual))
    return found


def _said(expect: Expect, part: str) -> list[str] | None:
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
    """Calls as one would type them; a bare name takes any arguments."""
    shown = [f"{t}(…)" if isinstance(t, str) else as_called(t.tool, t.args) for t in tools]
    return shown or ["no calls"]


def _seen(score: Score, number: int) -> list[str]:
    """What a metric shows as its evidence of one turn."""
    mark = f"turn {number}: "
    return [seen.removeprefix(mark) for seen in score.evidence if seen.startswith(mark)]
