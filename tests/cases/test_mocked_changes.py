"""A mock that changes the state says so in a file, too."""

from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Lines, Scripted, call, simulate, tool, with_state_change
from greenroom.cases import case_data, case_from, in_turn
from greenroom.errors import BadFile
from greenroom.ledger import append, delete, state
from greenroom.ledger.plain import as_object


@tool
def sell(item: str) -> str:
    """Sell one."""
    raise RuntimeError("never reached in a rehearsal")


AGENT = Agent("shop", model=Scripted(call("sell", item="cup"), "Sold."), tools=[sell])
SOLD = with_state_change(
    "ok", {"session": {"sold": append("cup"), "left": {"cup": 2}, "wish": delete()}}
)


async def test_a_mock_with_changes_comes_back_from_a_file(tmp_path: Path) -> None:
    first = {"session": {"sold": ["mug"], "wish": "cup"}}
    case = Case("c", says="Hi", mocks={"sell": in_turn(SOLD)}, state=first)
    EvalSet("shop", [case]).save(tmp_path / "shop.json")
    again = EvalSet.load(tmp_path / "shop.json")["c"]
    after = {"session": {"sold": ["mug", "cup"], "left": {"cup": 2}}}
    assert state(await simulate(case, AGENT)) == after
    assert state(await simulate(again, AGENT)) == after


@pytest.mark.parametrize(
    "changes",
    [
        5,
        [5],
        [{}],
        [{"scope": "session"}],
        [{"scope": "session", "path": []}],
        [{"scope": "session", "path": ["a", 1]}],
        [{"scope": 1, "path": ["a"]}],
        [{"scope": "session", "path": ["a"], "op": "explode"}],
        [{"scope": "session", "path": ["a"], "op": ["set"]}],
        [{"scope": "session", "path": ["a"], "surprise": 1}],
    ],
)
def test_changes_that_are_none_are_refused(changes: Any) -> None:
    mock = {"value": 1, "changes": changes}
    with pytest.raises(BadFile):
        case_from({"id": "c", "says": "Hi", "mocks": {"sell": mock}})


def test_a_users_line_that_changes_the_state_is_no_data(tmp_path: Path) -> None:
    case = Case("c", says="Hi", user=Lines(with_state_change("M", {"session": {"size": "M"}})))
    assert "live" in as_object(case_data(case)["user"])
    with pytest.raises(BadFile, match="user"):
        EvalSet("shop", [case]).save(tmp_path / "shop.json")
