"""A failure told in plain text."""

from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Lines,
    Score,
    Scripted,
    Turn,
    call,
    metric,
    rehearse,
    step,
    tool,
)
from greenroom.cases import Metric
from greenroom.metrics import (
    contains,
    exact,
    reference_recall,
    tool_name_match,
    tool_trajectory_avg_score,
)
from greenroom.reports.failure import differences, failure_text
from greenroom.results import CaseResult


@tool
def refund(order: int) -> str:
    """Pay an order back."""
    raise RuntimeError("never reached in a rehearsal")


def played(*turns: Turn, **options: Any) -> CaseResult:
    agent = Agent("clerk", model=Scripted(call("refund", order=7), "Done.\nBye."), tools=[refund])
    case = Case("late", turns=turns, mocks={"refund": "ok"}, **options)
    return rehearse(agent, case)["late"]


def test_what_was_expected_stands_beside_what_came() -> None:
    expect = Expect(tools=[call("refund", order=8), "mail"], contains=["gone", "Bye"])
    found = differences(played(Turn("Refund!", expect)))
    assert [(d.turn, d.part, d.expected, d.actual) for d in found] == [
        (1, "tools", ["refund(order=8)", "mail(…)"], ["refund(order=7)"]),
        (1, "contains", ["gone", "Bye"], ["Done.\nBye."]),
    ]


def test_what_was_met_is_no_difference() -> None:
    assert differences(played(Turn("Refund!", Expect(tools=["refund"], contains="Bye")))) == []


def test_no_calls_are_expected_and_seen_as_such() -> None:
    [found] = differences(played(Turn("Refund!", Expect(tools=[]))))
    assert (found.expected, found.actual) == (["no calls"], ["refund(order=7)"])


def test_further_lines_stand_below_the_first() -> None:
    text = failure_text(played(Turn("Refund!", Expect(response="Gone."))), again="play it again")
    assert text.splitlines() == [
        "case 'late': failed",
        "  expected_response: turn 1: said 'Done.\\nBye.'; expected 'Gone.'",
        "  expected (-) and actual (+)",
        "    turn 1 response  - Gone.",
        "                     + Done.",
        "                       Bye.",
        "  conversation",
        "    user         Refund!",
        '    tool         refund(order=7) → "ok"  (mock)',
        "    agent        Done.",
        "                 Bye.",
        "    end          the user had nothing more to say",
        "  again: play it again",
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_a_long_conversation_is_cut_in_the_middle_unless_it_is_to_be_whole(whole: bool) -> None:
    agent = step(lambda ctx: f"You said {ctx.input}", name="echo")
    lines = Lines(*(f"line {n}" for n in range(18)))
    result = rehearse(agent, Case("long", "Hi", user=lines, expect=Expect(contains="no")))["long"]
    text = failure_text(result, whole=whole)
    assert ("more; -vv shows them all" in text, "You said line 5\n" in text) == (not whole, whole)
    assert "You said Hi" in text
    assert "You said line 17" in text


@pytest.mark.parametrize(
    "criterion, expect, difference",
    [
        (
            tool_trajectory_avg_score(),
            Expect(tools=["mail", call("refund", order=8)]),
            ("tools", ["mail(…)", "refund(order=8)"], ["refund(order=7)"]),
        ),
        (tool_name_match(), Expect(tools=["mail"]), ("tools", ["mail(…)"], ["refund(order=7)"])),
        (contains(), Expect(contains=["gone"]), ("contains", ["gone"], ["Done.\nBye."])),
        (exact(), Expect(reference="Gone."), ("reference", ["Gone."], ["Done.\nBye."])),
        (exact(), Expect(response="Gone."), ("reference", ["Gone."], ["Done.\nBye."])),
        (reference_recall(), Expect(reference="Gone."), ("reference", ["Gone."], ["Done.\nBye."])),
    ],
)
def test_a_criterion_shows_what_the_case_expected_and_what_came(
    criterion: Metric, expect: Expect, difference: Any
) -> None:
    [found] = differences(played(Turn("Refund!", expect), metrics=[criterion], implied=False))
    assert (found.part, found.expected, found.actual) == difference


def test_a_score_just_below_its_threshold_is_not_rounded_up_to_it() -> None:
    @metric(name="near", threshold=0.8)
    def near() -> float:
        return 0.79999

    found = failure_text(played(Turn("Refund!"), metrics=[near]))
    assert "near: 0.79999 is below its threshold of 0.8" in found


def test_a_score_that_fails_above_the_usual_threshold_says_so_itself() -> None:
    @metric
    def strict() -> Score:
        return Score(0.7, False)

    assert "strict: its Score says passed=False" in failure_text(
        played(Turn("Refund!"), metrics=[strict])
    )
