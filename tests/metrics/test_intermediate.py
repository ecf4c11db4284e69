"""`intermediate_responses` looks at what the agent said before its last words of a turn."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import score
from greenroom.cases import Case, Expect, NotApplicable, Turn, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import AgentSaid, Event, Ledger, ModelReplied
from greenroom.metrics import intermediate_responses
from metrics.runs import agent, run, tool, user, world


def replied(text: str) -> list[Event]:
    return [ModelReplied(model="m-1", text=text)]


def expecting(*texts: str) -> Case:
    return Case("c", says="Hi", expect=Expect(intermediate=list(texts)))


async def outcome(ledger: Ledger, case: Case, **options: Any) -> Any:
    metric = intermediate_responses(**options)
    return (await score(ledger, [metric], case))[metric.name]


LOOKED_UP = run(
    user("Hi"),
    replied("Let me look up your order."),
    tool("find"),
    replied("I found it, and will now ask for the refund."),
    tool("refund"),
    replied("Done, you have your money back."),
    agent("Done, you have your money back."),
)


async def test_words_beside_tool_calls_count_and_may_be_quoted_in_part():
    found = await outcome(LOOKED_UP, expecting("LOOK up  your order", "I found it"))
    assert (found.value, found.passed, found.threshold) == (1.0, True, 1.0)


async def test_a_text_may_be_met_by_one_that_resembles_it():
    case = expecting("I have found it and will now ask for the refund")
    assert (await outcome(LOOKED_UP, case)).passed
    assert not (await outcome(LOOKED_UP, case, likeness=1.0)).passed


async def test_the_last_words_do_not_count():
    found = await outcome(LOOKED_UP, expecting("Done, you have your money back."))
    assert (found.value, found.passed) == (0.0, False)
    assert found.details[0]["missing"] == ["Done, you have your money back."]


async def test_order_counts_and_the_share_says_how_far_it_went():
    found = await outcome(LOOKED_UP, expecting("I found it", "look up your order"))
    assert (found.value, found.passed) == (0.5, False)
    assert "1 of 2 strings found in order" in found.reason
    assert (await outcome(LOOKED_UP, expecting("found it", "look up"), threshold=0.5)).passed


async def test_a_message_meets_one_text_only():
    found = await outcome(LOOKED_UP, expecting("look up", "your order"))
    assert found.value == 0.5


async def test_several_messages_to_the_user_count_but_for_the_last():
    ledger = run(user("Hi"), agent("One moment."), agent("Still there?"), agent("Here."))
    found = await outcome(ledger, expecting("one moment", "still there"))
    assert found.passed
    assert found.details[0]["said"] == ["One moment.", "Still there?"]


async def test_what_the_user_side_says_does_not_count():
    ledger = run(
        user("Hi"),
        [AgentSaid(text="look up", voice="user"), ModelReplied(text="look up", voice="user")],
        agent("Here."),
    )
    assert (await outcome(ledger, expecting("look up"))).value == 0.0


async def test_turns_are_measured_one_by_one():
    turns = [Turn("a", Expect(intermediate=["look"])), Turn("b", Expect(intermediate=["look"]))]
    ledger = run(user("a"), replied("I look"), agent("x"), user("b"), agent("y"))
    found = await outcome(ledger, Case("c", turns=turns))
    assert [part["value"] for part in found.details] == [1.0, 0.0]
    unreached = await outcome(run(user("a"), replied("I look"), agent("x")), Case("c", turns=turns))
    assert unreached.details[1] == {"turn": 2, "value": 0.0, "reached": False}


@pytest.mark.parametrize("expect", [None, Expect(contains="x")])
async def test_without_texts_it_does_not_apply(expect):
    case = Case("c", says="Hi", expect=expect)
    assert isinstance(await outcome(LOOKED_UP, case), NotApplicable)


async def test_an_agent_that_never_spoke_is_unmeasured():
    assert isinstance(await outcome(run(user("Hi")), expecting("x")), Unmeasured)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.lists(st.sampled_from("abc")))
def test_as_many_texts_as_possible_are_found(wanted, said):
    words = {"a": "apple tree", "b": "brown bear", "c": "cold cave"}
    metric = intermediate_responses()
    ledger = run(
        user("Hi"),
        *[event for letter in said for event in (agent(words[letter]), agent("-"))],
        agent("end"),
    )
    case = expecting(*[words[letter] for letter in wanted])
    found: Any = metric.measure(case, ledger, world())
    assert found.value * len(wanted) == pytest.approx(longest_common(wanted, said))


def longest_common(one: list[str], other: list[str]) -> int:
    if not one or not other:
        return 0
    if one[0] == other[0]:
        return 1 + longest_common(one[1:], other[1:])
    return max(longest_common(one[1:], other), longest_common(one, other[1:]))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"threshold": 2}, "threshold=2; its scale is 0 to 1: give a number above 0, at most 1"),
        (
            {"likeness": -1},
            r"intermediate_responses\(\.\.\.\) has likeness=-1; its scale is 0 to 1",
        ),
        ({"stem": "yes"}, "stem='yes'"),
    ],
)
def test_a_bad_option_is_refused_by_its_name(options, words):
    with pytest.raises(BadMetric, match=words):
        intermediate_responses(**options)
