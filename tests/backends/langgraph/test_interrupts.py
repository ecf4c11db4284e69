"""`interrupt()` as people write it: in a tool, in a node, once or twice, with a value or a text."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from backends.keyed_agents import OwnChatModel
from greenroom import (
    Case,
    Expect,
    Ledger,
    Scripted,
    Stop,
    Turn,
    UserAgents,
    call,
    rehearse,
    simulate,
)
from greenroom.cases import in_turn
from greenroom.ledger import responses, tool_calls
from greenroom.ledger.events import Answered, ToolCalled, ToolFailed
from greenroom.metrics import called

BEGUN: list[str] = []


@tool
def book(hotel: str) -> str:
    """Book a hotel."""
    BEGUN.append(hotel)
    answer = interrupt({"question": f"Book {hotel}?"})
    return f"booked {hotel}" if answer["ok"] else f"not booked: {answer['why']}"


@tool
async def rename(name: str) -> str:
    """Rename, and ask twice."""
    first = interrupt({"question": "Really?"})
    second = interrupt({"question": "Really, really?"})
    return f"{name}: {first}, {second}"


def agent(*tools: Any) -> Any:
    return create_agent(OwnChatModel(), [*tools], name="travel")


BOOK = Scripted(call("book", hotel="Ritz"), lambda request: request.last)


@pytest.mark.parametrize(
    "answer, said",
    [({"ok": True}, "booked Ritz"), ({"ok": False, "why": "too dear"}, "not booked: too dear")],
)
def test_a_tool_that_asks_inside_its_body_gets_the_users_answer(answer: Any, said: str) -> None:
    BEGUN.clear()
    case = Case(
        "c",
        "Book the Ritz!",
        user=UserAgents(tools={"book": answer}),
        allow_tools=["book"],
        expect=Expect(response=said),
        metrics=[called("book", at_least=1, at_most=1)],
    )
    report = rehearse(agent(book), [case], model=BOOK)
    assert report.passed, str(report)
    assert BEGUN == ["Ritz", "Ritz"]  # from its first line again, as in LangGraph
    ledger = report["c"].ledger
    assert ledger is not None
    assert (len(ledger.of(ToolCalled)), ledger.of(ToolFailed)) == (1, [])
    assert [one.result for one in tool_calls(ledger)] == [said]


def test_a_mock_answers_without_asking_and_an_unnamed_tool_is_refused() -> None:
    BEGUN.clear()
    mocked = Case("m", "Book!", mocks={"book": "mocked"}, expect=Expect(response="mocked"))
    assert rehearse(agent(book), [mocked], model=BOOK).passed
    bare = Case("b", "Book!", user=UserAgents(tools={"book": {}}), expect=Expect(response="x"))
    [result] = rehearse(agent(book), [bare], model=BOOK).results
    assert result.error is not None
    assert result.error.type == "ToolRefused"
    assert BEGUN == []


def asking_mock(hotel: str) -> str:
    answer = interrupt({"question": f"Book {hotel}?"})
    return f"pretended {hotel}" if answer["ok"] else "left it"


async def asking_later(hotel: str) -> str:
    return f"{interrupt('Which room?')} of {hotel}"


@pytest.mark.parametrize(
    "mock, said",
    [(asking_mock, "pretended Ritz"), (in_turn(asking_mock), "pretended Ritz")],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_a_mock_may_ask_as_its_tool_would(mock: Any, said: str, is_async: bool) -> None:
    BEGUN.clear()
    tools = book if not is_async else tool("book")(_book_later)
    case = Case(
        "c",
        "Book the Ritz!",
        user=UserAgents(tools={"book": {"ok": True}}),
        mocks={"book": mock},
        expect=Expect(response=said),
        metrics=[called("book", at_least=1, at_most=1)],
    )
    report = rehearse(agent(tools), [case], model=BOOK)
    assert report.passed, str(report)
    assert BEGUN == []
    ledger = report["c"].ledger
    assert ledger is not None
    assert (len(ledger.of(ToolCalled)), ledger.of(ToolFailed)) == (1, [])


async def _book_later(hotel: str) -> str:
    """Book a hotel."""
    BEGUN.append(hotel)
    return hotel


async def test_a_mock_that_asks_with_a_text_gets_the_users_next_message() -> None:
    case = Case("c", turns=[Turn("Book!"), Turn("The attic")], mocks={"book": asking_later})
    ledger = await simulate(case, agent(book), model=BOOK)
    assert responses(ledger)[-1] == "The attic of Ritz"


async def test_two_questions_of_one_body_and_of_two_calls_are_answered_in_turn() -> None:
    user = UserAgents(tools={"rename": "yes"})
    model = Scripted(call("rename", name="a"), lambda request: request.last)
    case = Case("c", "Go", user=user, allow_tools=["rename"])
    ledger = await simulate(case, agent(rename), model=model)
    assert responses(ledger) == ["a: yes, yes"]
    both = [call("book", hotel="Ritz"), call("book", hotel="Savoy")]
    user = UserAgents(tools={"book": {"ok": True}})
    case = Case("c", "Go", user=user, allow_tools=["book"])
    ledger = await simulate(case, agent(book), model=Scripted(both, "Done."))
    assert [one.result for one in tool_calls(ledger)] == ["booked Ritz", "booked Savoy"]


async def test_a_run_that_was_cut_at_the_question_goes_on_in_another_process(
    tmp_path: Path,
) -> None:
    user = UserAgents(tools={"book": {"ok": True}})
    case = Case("c", "Book!", user=user, allow_tools=["book"], stop=Stop(max_turns=5))
    whole = await simulate(case, agent(book), model=BOOK)
    at = whole.of(Answered)[0].seq
    (tmp_path / "cut").write_text("\n".join(Ledger(whole[:at]).dumps().splitlines()))
    cut = Ledger.loads((tmp_path / "cut").read_text())
    again = await simulate(case, agent(book), ledger=cut, model=BOOK)
    assert responses(again) == ["booked Ritz"]
    assert len(again.of(ToolCalled)) == 1


async def test_a_node_asks_for_a_value_by_its_name() -> None:
    async def approve(state: MessagesState) -> dict[str, Any]:
        answer = interrupt({"amount": 7})
        return {"messages": [AIMessage(f"approved: {answer}")]}

    building: Any = StateGraph(MessagesState)
    building.add_node("approve", approve)
    building.add_edge(START, "approve")
    case = Case("c", "Go", user=UserAgents(tools={"approve": True}))
    ledger = await simulate(case, building.compile(name="desk"))
    assert responses(ledger) == ["approved: True"]
