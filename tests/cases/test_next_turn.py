"""A recorded session stands up to a turn, and the next turn is a test of its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Ledger, Lines, call, rehearse, simulate, tool
from greenroom.cases.data import case_data
from greenroom.cases.files import read_evalset, write_evalset
from greenroom.cases.reader import case_from
from greenroom.errors import BadCase
from greenroom.ledger import Forked, ModelReplied, messages, state, with_state_change
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.timeline import timeline
from greenroom.store import Store


@tool
def book(day: str) -> str:
    """Book a table."""
    raise AssertionError("a rehearsal runs no tool")


class Host:
    """A model that books what it is asked for, and remembers the name it was told first."""

    name = "host"

    def __init__(self, words: str = "Booked for") -> None:
        self.words, self.asked = words, 0

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked += 1
        last, first = request.messages[-1], request.messages[0].text
        if last.role == "user" and last.text.startswith("Book"):
            return ModelReply(calls=(call("book", day=last.text.split()[-1]),), cost=0.5)
        return ModelReply(f"{self.words} {first}." if last.role == "tool" else "Fine.", cost=0.5)


def host(words: str = "Booked for", **more: Any) -> Agent:
    return Agent("host", model=Host(words), tools=[book], **more)


TALK = Case(
    "talk",
    says="Ada",
    user=Lines("Book Monday", "Book Friday", "Bye"),
    mocks={"book": with_state_change("ok", {"session": {"booked": True}})},
)


@pytest.fixture
def session() -> Ledger:
    return Ledger.loads(asyncio.run(simulate(TALK, host())).dumps())


def test_only_the_next_turn_is_asked_and_expected(session: Ledger) -> None:
    case = Case.from_ledger(session, turn=2)
    assert [turn.says for turn in case.turns] == ["Ada", "Book Monday", "Book Friday"]
    assert [turn.expect is None for turn in case.turns] == [True, True, False]
    agent = host()
    (result,) = rehearse(agent, case, store=False)
    assert result.status == "passed", result
    assert agent.model.asked == 2  # pyright: ignore[reportAttributeAccessIssue]
    ledger = result.ledger
    assert ledger is not None
    assert [m.text for m in messages(ledger)] == [m.text for m in messages(session)][:6]
    assert ledger.of(Forked)[0].from_run == "talk"


def test_what_an_earlier_turn_did_wrong_does_not_count(session: Ledger) -> None:
    case = Case.from_ledger(session, turn=2, expect=Expect(contains="Sadly"))
    (result,) = rehearse(host("Sadly for"), case, store=False)
    assert result.status == "passed"
    assert Case.from_ledger(session, turn=1).turns[1].says == "Book Monday"
    (wrong,) = rehearse(host(), case, store=False)
    assert wrong.status == "failed"


def test_the_result_says_what_was_replayed_and_costs_what_is_new(session: Ledger) -> None:
    (result,) = rehearse(host(), Case.from_ledger(session, turn=2), store=False)
    first = session.first
    assert first is not None
    assert (result.recorded_at, result.cost) == (first.at, 1.0)
    assert any(note.startswith("replayed in part: 2 of 5") for note in result.notes)
    assert result.seconds < 60
    assert result.ledger is not None
    assert state(result.ledger) == {"session": {"booked": True}}


def test_it_is_written_to_files_and_runs_from_there_and_from_the_store(
    session: Ledger, tmp_path: Path
) -> None:
    case = Case.from_ledger(session, turn=3, id="bye")
    assert case_from(case_data(case)) == case
    path = tmp_path / "next.evalset.json"
    write_evalset(EvalSet("next", [case]), path)
    store = Store(tmp_path / "runs")
    report = rehearse(host(), read_evalset(path), store=store)
    assert report.passed
    kept = store.report(report.id)["bye"]
    assert kept.ledger is not None
    assert len(kept.ledger.of(ModelReplied)) == 6
    assert kept.case is not None
    assert "history" not in kept.case
    rows = timeline(kept.ledger, Trimmer())
    assert "recorded up to here in talk; run again from here" in [row.get("who") for row in rows]


def test_it_is_recorded_and_replayed(session: Ledger, tmp_path: Path) -> None:
    case, agent = Case.from_ledger(session, turn=2), host()
    rehearse(agent, case, store=False, record=tmp_path / "rec")
    assert rehearse(agent, case, store=False, replay=tmp_path / "rec").passed
    assert agent.model.asked == 2  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("turn", [-1, 4, True, 1.0])
def test_a_turn_that_is_not_there_is_refused(session: Ledger, turn: Any) -> None:
    with pytest.raises(BadCase, match="should be a number from 0 to 3"):
        Case.from_ledger(session, turn=turn)


def test_a_history_that_is_none_is_refused(session: Ledger) -> None:
    with pytest.raises(BadCase, match="has no beginning"):
        Case.from_ledger(Ledger(), turn=0)
    for history, words in [
        ([{"kind": "nonsense"}], "is not a session"),
        ([{"kind": "user_said", "text": "Hi", "seq": 0}], "does not begin with run_started"),
    ]:
        with pytest.raises(BadCase, match=words):
            asyncio.run(simulate(Case("c", says="Hi", history=history), host()))
