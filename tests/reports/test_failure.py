"""A failure told in plain text."""

from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Lines, Scripted, Turn, call, rehearse, step, tool
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
