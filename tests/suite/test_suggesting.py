"""Mocks to begin with: shaped by the tools' own annotations, and read back as they are."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from greenroom import Agent, Case, Scripted, call, rehearse, tool
from greenroom.metrics import contains
from greenroom.suite.inputs.sources import load_mocks
from greenroom.suite.mock_suggestions import mocked_everywhere, mocks_block, unmocked_tools


@dataclass
class Order:
    id: int
    state: Literal["open", "sent"]
    notes: list[str]
    parent: "Order | None" = None


@tool
def weather(city: str, days: int = 1) -> str:
    """The weather."""
    raise AssertionError


@tool
def order(id: int) -> Order:
    """An order."""
    raise AssertionError


@tool
def untold(what):  # pyright: ignore[reportUnknownParameterType]
    """Says nothing about itself."""
    raise AssertionError


@tool(yields=True)
def ask_boss(question: str) -> str:
    """The user answers."""
    raise AssertionError


def clerk(*lines: Any, tools: Any = (weather, order, untold, ask_boss)) -> Agent:
    return Agent("clerk", model=Scripted(*lines), tools=tools)


def test_every_tool_that_lacks_a_mock_is_suggested_with_its_types():
    assert mocks_block(unmocked_tools(clerk(), ["untold"])).splitlines() == [
        "mocks:",
        "  # weather(city: string, days: integer) -> string",
        '  "weather": {value: ""}',
        "  # order(id: integer) -> object",
        '  "order": {value: {"id": 0, "state": "open", "notes": [], "parent": null}}',
    ]


def test_what_is_suggested_can_be_pasted(tmp_path):
    (tmp_path / "mocks.yaml").write_text(mocks_block(unmocked_tools(clerk())))
    read = load_mocks(str(tmp_path / "mocks.yaml"))
    assert read["untold"] is None
    assert set(read) == {"weather", "order", "untold"}


def test_an_agent_with_suggested_mocks_runs(tmp_path):
    agent = clerk(call("weather", city="Oslo"), call("order", id=1), "done")
    (tmp_path / "mocks.yaml").write_text(mocks_block(unmocked_tools(agent)))
    case = Case("one", says="hello", metrics=[contains("done")])
    mocks = load_mocks(str(tmp_path / "mocks.yaml"))
    assert rehearse(agent, [case], mocks=mocks)["one"].passed


def test_a_tool_lacks_a_mock_if_one_case_has_none_for_it():
    cases = [Case("a", mocks={"weather": "", "order": 1}), Case("b", allow_tools=[weather])]
    assert mocked_everywhere(cases) == {"weather"}
    assert mocked_everywhere(cases, ["order"]) == {"weather", "order"}
    assert mocked_everywhere([]) == set()


@pytest.mark.parametrize("agent", [clerk(tools=[]), clerk(tools=[ask_boss]), lambda message: ""])
def test_nothing_is_suggested_where_nothing_lacks_or_nobody_knows(agent: Any):
    assert (mocks_block([]), unmocked_tools(agent)) == ("", [])
