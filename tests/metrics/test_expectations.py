"""What a case expects of its turns is measured turn by turn."""

from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Expect, NotApplicable, Score, Turn, Unmeasured
from greenroom.ledger import AgentSaid, Event, Ledger, ToolCalled, call
from greenroom.ledger.plain import plain
from greenroom.metrics import metric
from greenroom.metrics.expectations import ExpectedTools
from metrics.runs import agent, answered, answered_tool, changed, run, tool, user, world

LOOK, REFUND = call("look", id=7), call("refund", order=7)


def two_turns(first: Expect | None, second: Expect | None) -> Case:
    return Case("two", turns=[Turn("one", first), Turn("two", second)])


async def outcome(name: str, case: Case, ledger: Ledger) -> Any:
    return (await score(ledger, case=case))[f"expected_{name}"]


async def test_the_expected_calls_in_the_expected_turns_pass():
    case = two_turns(Expect(tools=[LOOK]), Expect(tools=[REFUND, "mail"]))
    ledger = run(
        user("one"), tool("look", id=7), agent("Found."),
        user("two"), tool("refund", order=7), tool("mail", to="me"), agent("Done."),
    )  # fmt: skip
    found = await outcome("tools", case, ledger)
    assert (found.value, found.passed, found.reason) == (1.0, True, "as expected")
    assert found.evidence[0] == "turn 1: look(id=7)"


async def test_a_call_in_the_wrong_turn_is_missing_in_one_and_extra_in_the_other():
    case = two_turns(Expect(tools=[LOOK]), Expect(tools=[]))
    ledger = run(user("one"), agent("Hm."), user("two"), tool("look", id=7), agent("Found."))
    found = await outcome("tools", case, ledger)
    assert (found.value, found.passed) == (0.0, False)
    assert found.reason == "turn 1: missing look(id=7). turn 2: extra look(id=7)"


async def test_the_details_are_json_whatever_is_expected_and_whatever_was_done():
    def is_seven(value: object) -> bool:
        return value == 7

    awkward = call("refund", order=is_seven, at={"$gt": 5})
    state = {"session": {"order": is_seven}}
    expect = Expect(
        tools=[awkward], response="Hm.", contains=["é", "x"], state=state,
        state_after={"clerk": state}, reference="Paid back.", stopped_by="guardrail",
    )  # fmt: skip
    case = two_turns(expect, Expect(tools=["mail", awkward]))
    ledger = run(
        user("one"), tool("refund", order=8, at=[1.5, None]), agent("Paid."),
        user("two"), tool("refund", order=7, at=6), tool("ping"), agent("Done."),
    )  # fmt: skip
    found = await score(ledger, case=case)
    assert len(found) == 7
    assert [plain(one.details) for one in found.values()] == [one.details for one in found.values()]


async def test_missing_extra_and_wrong_arguments_are_told_apart():
    case = Case("c", says="Hi", expect=Expect(tools=[LOOK, REFUND, "mail"]))
    ledger = run(user("Hi"), tool("look", id=8), tool("mail"), tool("ping"), agent("Done."))
    found = await outcome("tools", case, ledger)
    assert found.details == [
        {
            "turn": 1,
            "value": 0.0,
            "missing": ["refund(order=7)"],
            "extra": ["ping()"],
            "misplaced": [],
            "wrong_arguments": ["look(id=8) instead of look(id=7)"],
        }
    ]
    assert found.reason == (
        "turn 1: missing refund(order=7); extra ping(); "
        "wrong arguments look(id=8) instead of look(id=7)"
    )


@pytest.mark.parametrize(
    "made, value",
    [
        ([tool("look", id=7), tool("refund", order=7)], 1.0),
        ([tool("look", id=7), tool("refund", order=8)], 0.5),
        ([tool("refund", order=7), tool("look", id=7)], 0.0),
        ([tool("look", id=7)], 0.0),
        ([tool("look", id=7), tool("refund", order=7), tool("ping")], 0.0),
        ([], 0.0),
    ],
)
async def test_the_value_is_the_share_in_place_if_the_lengths_agree(made, value):
    case = Case("c", says="Hi", expect=Expect(tools=[LOOK, REFUND]))
    found = await outcome("tools", case, run(user("Hi"), *made, agent("Done.")))
    assert (found.value, found.passed) == (value, value == 1.0)


async def test_the_right_calls_in_another_order_are_misplaced():
    case = Case("c", says="Hi", expect=Expect(tools=[LOOK, REFUND]))
    found = await outcome(
        "tools", case, run(user("Hi"), tool("refund", order=7), tool("look", id=7))
    )
    assert found.reason == "turn 1: misplaced look(id=7) (place 2, expected in place 1)"


async def test_an_empty_list_allows_no_calls():
    case = Case("c", says="Hi", expect=Expect(tools=[]))
    assert (await outcome("tools", case, run(user("Hi"), agent("Hello")))).passed
    assert not (await outcome("tools", case, run(user("Hi"), tool("look"), agent("Hello")))).passed


async def test_an_expected_call_has_exactly_its_arguments_and_a_bare_name_any():
    made = run(user("Hi"), tool("look", id=7, deep=True))
    for wanted, passes in [("look", True), (LOOK, False), (call("look"), False)]:
        case = Case("c", says="Hi", expect=Expect(tools=[wanted]))
        assert (await outcome("tools", case, made)).passed is passes


async def test_true_is_not_1_in_arguments():
    case = Case("c", says="Hi", expect=Expect(tools=[call("set", to=[{"on": True}])]))
    assert (await outcome("tools", case, run(user("Hi"), tool("set", to=[{"on": True}])))).passed
    assert not (await outcome("tools", case, run(user("Hi"), tool("set", to=[{"on": 1}])))).passed


async def test_turns_that_expect_nothing_do_not_count():
    case = two_turns(None, Expect(tools=[LOOK]))
    ledger = run(user("one"), tool("ping"), agent("x"), user("two"), tool("look", id=7))
    found = await outcome("tools", case, ledger)
    assert (found.value, len(found.details)) == (1.0, 1)


async def test_a_turn_that_was_never_reached_fails():
    expect = Expect(tools=[], response="Bye.", contains="Bye", state={"session": {"a": 1}})
    case = two_turns(None, expect)
    found = await score(run(user("one"), agent("Bye.")), case=case)
    assert list(found) == [
        "expected_tools",
        "expected_response",
        "expected_contains",
        "expected_state",
    ]
    for one in found.values():
        assert isinstance(one, Score)
        assert (one.value, one.passed, one.reason) == (0.0, False, "turn 2: never reached")


async def test_a_message_inside_a_waiting_loop_begins_the_next_turn():
    case = two_turns(Expect(tools=["look"], response="Which?"), Expect(tools=["refund"]))
    ledger = run(
        user("one"), tool("look"), agent("Which?"), answered("two"), tool("refund"), agent("Done.")
    )
    found = await score(ledger, case=case)
    assert all(isinstance(o, Score) and o.passed for o in found.values())


async def test_an_answer_to_a_tool_does_not_begin_a_turn():
    case = two_turns(Expect(tools=["ask", "look"]), Expect(tools=[]))
    ledger = run(
        user("one"), tool("ask"), answered_tool("ask", "blue"), tool("look"), agent("x"),
        user("two"), agent("y"),
    )  # fmt: skip
    assert (await outcome("tools", case, ledger)).passed


async def test_what_comes_after_the_script_belongs_to_no_scripted_turn():
    case = Case("c", says="one", expect=Expect(tools=["look"], response="Found."))
    ledger = run(
        user("one"), tool("look"), agent("Found."), user("and now?"), tool("refund"), agent("Bye.")
    )
    found = await score(ledger, case=case)
    assert all(isinstance(o, Score) and o.passed for o in found.values())


async def test_the_agents_opening_is_the_first_turn_when_the_user_says_nothing():
    case = Case(
        "c", turns=[Turn("", Expect(contains="Welcome")), Turn("Hi", Expect(contains="help"))]
    )
    ledger = run(agent("Welcome!"), user("Hi"), agent("How can I help?"))
    assert (await outcome("contains", case, ledger)).passed


async def test_the_users_own_tool_calls_are_not_the_agents():
    reveal = ToolCalled(call_id="r", tool="reveal", args={}, voice="user")
    case = Case("c", says="Hi", expect=Expect(tools=[]))
    assert (await outcome("tools", case, run(user("Hi"), [reveal], agent("x")))).passed


async def test_what_a_user_agent_says_on_its_own_side_is_not_the_response():
    thought = AgentSaid(text="Let me think.", voice="user")
    case = Case("c", says="Hi", expect=Expect(response="Hello."))
    assert (await outcome("response", case, run(user("Hi"), agent("Hello."), [thought]))).passed


async def test_a_response_is_compared_with_the_last_words_of_its_turn():
    case = two_turns(Expect(response="Which one?"), Expect(response="Done."))
    ledger = run(user("one"), agent("Hm."), agent(" Which one?\n"), user("two"), agent("No."))
    found = await outcome("response", case, ledger)
    assert (found.value, found.passed) == (0.5, False)
    assert found.reason == "turn 2: said 'No.'; expected 'Done.'"


@pytest.mark.parametrize("after", [[], user("two")])
async def test_the_last_words_of_a_turn_are_those_said_last_whoever_said_them(after):
    said: list[Event] = [
        AgentSaid(text="First.", path="a"),
        AgentSaid(text="Second.", path="b"),
        AgentSaid(text="Third.", path="a"),
        AgentSaid(text="Aside.", path="c", voice="user"),
    ]
    case = two_turns(Expect(response="Third."), None)
    assert (await outcome("response", case, run(user("one"), said, after))).passed


@pytest.mark.parametrize("after", [[], user("three")])
async def test_words_of_an_earlier_turn_are_no_response(after):
    case = two_turns(None, Expect(response="Done."))
    found = await outcome("response", case, run(user("one"), agent("Done."), user("two"), after))
    assert found == Unmeasured("the agent's response is empty in turn 2")


async def test_contained_texts_count_by_their_share():
    case = two_turns(Expect(contains=["a", "b", "c", "d"]), Expect(contains="e"))
    found = await outcome("contains", case, run(user("one"), agent("a b"), user("two"), agent("e")))
    assert (found.value, found.passed) == (0.75, False)
    assert found.reason == "turn 1: missing 'c', 'd'"


@pytest.mark.parametrize("said", [[], agent(""), agent("  "), agent("\u200b\u2060")])
async def test_an_empty_response_is_unmeasured(said):
    case = Case("c", says="Hi", expect=Expect(response="x", contains="y", reference="z"))
    found = await score(run(user("Hi"), said), case=case)
    assert all(isinstance(one, Unmeasured) for one in found.values())
    assert found["expected_response"] == Unmeasured("the agent's response is empty in turn 1")


async def test_the_state_is_that_at_the_end_of_the_turn():
    case = two_turns(
        Expect(state={"session": {"step": 1}}), Expect(state={"session": {"step": {"$gt": 1}}})
    )
    ledger = run(
        user("one"), changed(session={"step": 1}), agent("x"),
        user("two"), changed(session={"step": 2}), agent("y"),
    )  # fmt: skip
    assert (await outcome("state", case, ledger)).passed


async def test_a_function_may_stand_in_an_expected_state():
    def enough(total):
        return total > 3

    case = Case("c", says="Hi", expect=Expect(state={"session": {"total": enough}}))
    assert (await outcome("state", case, run(user("Hi"), changed(session={"total": 4})))).passed
    found = await outcome("state", case, run(user("Hi"), changed(session={"total": 3})))
    assert found.reason.endswith("expected {'session': {'total': enough}}")
    assert not (await outcome("state", case, run(user("Hi"), changed(session={"n": 9})))).passed


async def test_scored_again_from_the_ledger_a_function_leaves_it_unmeasured():
    case = Case("c", says="Hi", expect=Expect(state={"session": {"total": lambda v: v > 3}}))
    ledger = run(user("Hi"), changed(session={"total": 4}), case=case)
    (found,) = (await score(ledger)).values()
    assert isinstance(found, Unmeasured)
    assert "Pass the case itself" in found.why


async def test_a_state_that_differs_is_shown():
    case = Case("c", says="Hi", expect=Expect(state={"session": {"step": 2}}))
    found = await outcome("state", case, run(user("Hi"), changed(session={"step": 1})))
    assert found.reason == (
        "turn 1: the state is {'session': {'step': 1}}; expected {'session': {'step': 2}}"
    )


async def test_an_unknown_scope_is_unmeasured():
    case = Case("c", says="Hi", expect=Expect(state={"pateint": {"x": {"$exists": False}}}))
    found = await outcome("state", case, run(user("Hi"), agent("x")))
    assert isinstance(found, Unmeasured)
    assert "'pateint'" in found.why


@pytest.mark.parametrize("expect", [None, Expect()])
async def test_an_expectation_that_everything_would_meet_is_none(expect):
    case = Case("c", says="Hi", expect=expect)
    assert await score(run(user("Hi"), agent("x")), case=case) == {}


def test_measured_by_hand_without_an_expectation_it_does_not_apply():
    found = ExpectedTools().measure(Case("c", says="Hi"), run(user("Hi")), world())
    assert isinstance(found, NotApplicable)


async def test_a_given_metric_does_not_replace_an_expectation():
    @metric(name="expected_tools")
    def forged(ledger):
        return True

    case = Case("c", says="Hi", expect=Expect(tools=["look"]))
    found = (await score(run(user("Hi"), agent("x")), [forged], case))["expected_tools"]
    assert isinstance(found, Score)
    assert not found.passed


COMPOSED, DECOMPOSED = "Orl\u00e9ans", "Orle\u0301ans"


@pytest.mark.parametrize("wanted, did", [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
async def test_letters_are_the_same_however_unicode_writes_them(wanted: str, did: str) -> None:
    expect = Expect(tools=[call("find", city=wanted)], contains=wanted, response=f"In {wanted}.")
    ledger = run(user("Where?"), tool("find", city=did), agent(f"In {did}."))
    found = await score(ledger, case=Case("a", says="Where?", expect=expect))
    assert [outcome.value for outcome in found.values()] == [1.0, 1.0, 1.0]


async def test_a_letter_is_not_part_of_the_same_letter_with_an_accent() -> None:
    case = Case("a", says="Where?", expect=Expect(contains="Orle"))
    for city in (COMPOSED, DECOMPOSED):
        found = await outcome("contains", case, run(user("Where?"), agent(city)))
        assert found.value == 0.0
