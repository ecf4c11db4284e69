"""What would be played a second time must not let a real tool act twice."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from greenroom import Case, Ledger, live, tool
from greenroom.ledger import (
    InvocationStarted,
    ModelCalled,
    Noted,
    RunStarted,
    ToolCalled,
    ToolReturned,
)
from greenroom.ledger.events import Event, Source
from greenroom.simulation.gate import CALLED_DIRECTLY
from greenroom.suite.trial_state import Trial, TrialState


@tool
def pay(amount: int) -> dict[str, Any]:
    """Pay."""
    return {"paid": amount}


@dataclass
class Resting:
    """A backend that goes on at its pauses only."""

    digest: str = "same"
    name: ClassVar[str] = "resting"
    resumes: ClassVar[str] = "checkpoint"


@dataclass
class Cut:
    ledger: Ledger
    judging: Ledger


def cut(*events: Event) -> Cut:
    ledger = Ledger()
    start = RunStarted(run_id="a", case={"id": "a"}, agent=None, digest="same")
    for event in (start, InvocationStarted(path="@1"), ModelCalled(path="@1"), *events):
        ledger.append(event, 0.0)
    return Cut(ledger, Ledger())


def called() -> ToolCalled:
    return ToolCalled(path="@1", call_id="1", tool="pay", args={"amount": 3})


def returned(source: Source) -> ToolReturned:
    return ToolReturned(path="@1", call_id="1", tool="pay", value={"ok": True}, source=source)


def state_of(case: Case, left: Cut, digest: str = "same") -> TrialState:
    state = TrialState(Trial(0, case))
    state.resume(left, Resting(digest))  # pyright: ignore[reportArgumentType]
    return state


@pytest.mark.parametrize("digest", ["same", "another"])
def test_a_real_tool_that_returned_is_not_called_a_second_time(digest: str) -> None:
    state = state_of(Case("a", says="Pay."), cut(called(), returned("live")), digest)
    assert (
        "tool 'pay' was called for real before the interruption with {'amount': 3}" in state.doubt
    )


@pytest.mark.parametrize("mocks", [{}, {"pay": live(pay, hosts=["bank"])}, {"pay": pay}])
def test_nor_is_one_of_which_nobody_knows_whether_it_acted(mocks: dict[str, Any]) -> None:
    assert state_of(Case("a", says="Pay.", mocks=mocks), cut(called())).doubt


@pytest.mark.parametrize("mock", [{"ok": True}, lambda amount: {"ok": amount}])  # pyright: ignore[reportUnknownLambdaType]
def test_a_mocked_tool_is_played_again_without_a_word(mock: Any) -> None:
    case = Case("a", says="Pay.", mocks={"pay": mock})
    assert state_of(case, cut(called())).doubt == ""
    assert state_of(case, cut(called(), returned("mock"))).doubt == ""


def test_what_is_kept_of_the_run_raises_no_doubt() -> None:
    left = cut(called(), returned("live"))
    left.ledger.append(InvocationStarted(path="@2"), 0.0)
    state = state_of(Case("a", says="Pay."), left)
    assert (state.doubt, state.ledger) == ("", left.ledger)


@dataclass
class Exact(Resting):
    """A backend that goes on anywhere."""

    resumes: ClassVar[str] = "exact"


def test_a_real_tool_that_was_not_allowed_to_begin_raises_no_doubt() -> None:
    """The process that played it died before it was told that its call is on disk."""
    left, state = cut(called()), TrialState(Trial(0, Case("a", says="Pay.")))
    state.resume(left, Exact(), not_begun={"1"})  # pyright: ignore[reportArgumentType]
    assert not state.doubt
    assert state.ledger is not None
    assert state.ledger.events == left.ledger.events[:-1], "it is called again"


def test_but_one_that_acted_beside_it_does() -> None:
    beside = ToolCalled(path="@1", call_id="2", tool="pay", args={"amount": 4})
    state = TrialState(Trial(0, Case("a", says="Pay.")))
    state.resume(cut(called(), beside), Exact(), not_begun={"1"})  # pyright: ignore[reportArgumentType]
    assert "would act twice" in state.doubt


def test_ids_that_mean_two_calls_clear_none_of_them() -> None:
    state = TrialState(Trial(0, Case("a", says="Pay.")))
    again = ToolCalled(path="@1", call_id="1", tool="pay", args={"amount": 5})
    state.resume(cut(called(), again), Resting(), not_begun={"1"})  # pyright: ignore[reportArgumentType]
    assert state.doubt


@pytest.mark.parametrize("resumes", [Exact, Resting])
def test_a_tool_that_code_called_past_the_gate_raises_doubt(resumes: type[Resting]) -> None:
    state = TrialState(Trial(0, Case("a", says="Pay.")))
    note = Noted(name=CALLED_DIRECTLY, data={"tool": "pay"})
    state.resume(cut(note), resumes())  # pyright: ignore[reportArgumentType]
    assert "'pay' itself" in state.doubt


def test_a_user_agents_own_tool_is_a_part_of_the_simulation_and_may_run_again() -> None:
    state = TrialState(Trial(0, Case("a", says="Pay.", mocks={"look": "nothing"})))
    looked = ToolCalled(path="u", call_id="u1", tool="look", args={}, voice="user")
    state.resume(cut(looked), Resting())  # pyright: ignore[reportArgumentType]
    assert not state.doubt
