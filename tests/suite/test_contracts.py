"""Every evaluation checks its agent with each case's own starting state, before the first model call."""

from typing import Any

import pytest

from greenroom import Agent, Case, Lines, Scripted, rehearse, step, tool
from greenroom.agents import Issue, StateSchema, register_check
from greenroom.agents.contracts import forget_check
from greenroom.cases import by_args, in_turn
from greenroom.errors import BadAgent
from greenroom.ledger import with_state_change

asked: list[Any] = []


def answer(request: Any) -> str:
    asked.append(request)
    return "Done."


@tool
def find() -> str:
    return "real"


def reader(**options: Any) -> Agent:
    return Agent("reader", model=Scripted(then=answer), reads="order", **options)


ORDER = {"session": {"order": 7}}


def notes(agent: Any, *cases: Case, **options: Any) -> list[str]:
    return [note for note in rehearse(agent, cases, **options).notes if "contracts" in note]


def test_each_case_counts_with_the_state_that_it_begins_with() -> None:
    cases = [Case("fresh", says="hi"), Case("begun", says="hi", state=ORDER)]
    (note,) = notes(reader(), *cases)
    assert note.startswith("contracts: error reader: reads session.order, but no node before it")
    assert note.endswith("(case 'fresh')")
    assert notes(reader(), cases[1]) == []


def test_errors_can_stop_a_run_before_a_model_is_asked() -> None:
    asked.clear()
    with pytest.raises(BadAgent, match=r"so no case was run:\n  error reader: reads session.order"):
        rehearse(reader(), [Case("c", says="hi")], check="error")
    assert asked == []
    (result,) = rehearse(reader(), [Case("c", says="hi", state=ORDER)], check="error")
    assert result.ended == "completed"
    assert asked


def test_a_run_can_be_left_unchecked() -> None:
    assert notes(reader(), Case("c", says="hi"), check="off") == []


def test_many_cases_with_one_error_are_one_note() -> None:
    cases = [Case(f"c{n}", says="hi") for n in range(5)]
    (note,) = notes(reader(), *cases, Case("fine", says="hi", state=ORDER))
    assert note.endswith("(cases 'c0', 'c1', 'c2' and 2 more)")
    (note,) = notes(reader(), *cases)
    assert note.endswith("there.")


def test_a_starting_value_of_the_wrong_type_is_named_with_its_case() -> None:
    class Desk(StateSchema):
        order: int

    agent = Agent("clerk", model=Scripted(then=answer), reads=Desk.order)
    wrong = Case("wrong", says="hi", state={"session": {"order": "seven"}})
    (note,) = notes(agent, Case("right", says="hi", state=ORDER), wrong)
    assert "begins with a wrong value at session.order" in note
    assert note.endswith("(case 'wrong')")


def test_the_agent_and_the_target_of_a_case_are_what_is_checked() -> None:
    writer = Agent("writer", model=Scripted(then=answer), writes="order")
    whole = writer >> reader()
    assert notes(whole, Case("c", says="hi")) == []
    assert notes(whole, Case("c", says="hi", target="reader"))
    assert notes(writer, Case("c", says="hi", agent=reader()))
    assert notes(None, Case("c", says="hi", agent=writer)) == []


def changes(ctx: Any) -> str:
    ctx.state.session["order"] = 7
    return "found"


def by_result() -> Any:
    return with_state_change("found", ORDER)


@pytest.mark.parametrize(
    "mock",
    [
        changes,
        by_result,
        with_state_change("found", ORDER),
        in_turn("x", changes),
        by_args(({}, changes)),
    ],
    ids=["context", "result", "value", "in_turn", "by_args"],
)
def test_a_mock_that_may_change_the_state_leaves_it_open(mock: Any) -> None:
    finder = Agent("finder", model=Scripted(then=answer), tools=[find])
    assert notes(finder >> reader(), Case("c", says="hi", mocks={"find": mock})) == []
    assert notes(finder >> reader(), Case("c", says="hi", mocks={"find": "found"}))


def test_a_user_or_a_bridge_that_may_change_the_state_leaves_it_open() -> None:
    @step
    def person(input: Any) -> str:
        return "and?"

    assert notes(reader(), Case("c", says="hi", user=Lines("more")))
    assert notes(reader(), Case("c", says="hi", user=Lines(then=person))) == []


def test_agents_of_other_frameworks_are_not_checked() -> None:
    async def foreign(message: str) -> str:
        return "hi"

    assert notes(foreign, Case("c", says="hi"), check="error") == []


def test_an_agent_that_was_checked_before_is_checked_by_what_was_registered_since() -> None:
    agent = Agent("clerk", model=Scripted("Hello."))
    cases = [Case("hi", says="Hi")]
    assert not rehearse(agent, cases).notes
    register_check("nitpick", lambda *_: [Issue("nit", "error", "clerk", "", "too friendly.")])
    try:
        assert ["too friendly" in note for note in rehearse(agent, cases).notes] == [True]
    finally:
        forget_check("nitpick")
    assert not rehearse(agent, cases).notes
