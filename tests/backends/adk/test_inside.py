"""Agents of google-adk inside plain functions: their calls meet the gate, whichever way they come."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from backends.adk.insiders import INSIDERS
from backends.adk.scripts import case, ledger_of, result_of
from greenroom import evaluate
from greenroom.ledger.events import ToolCalled
from greenroom.metrics import called, contains
from greenroom.testing import Desk

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MOCKED: dict[str, Any] = {
    "mocks": {"weather": "fine"},
    "metrics": [contains("done"), called("weather")],
}


async def run(clerk: Any) -> None:
    if inspect.iscoroutinefunction(clerk):
        await clerk("hello")
    else:
        await asyncio.to_thread(clerk, "hello")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("name", INSIDERS)
async def test_no_body_runs_inside_a_function_and_a_mock_answers(name: str, tmp_path: Path):
    made, desk = INSIDERS[name], Desk(tmp_path)
    (tmp_path / "open").mkdir()
    open_desk = Desk(tmp_path / "open")
    await run(made(open_desk))
    assert open_desk.marks, "the canary does not fire even without a gate"
    refused = await evaluate(made(desk), case())
    many = [case(f"case {n}") for n in range(8)]
    together = await evaluate(made(desk), many, concurrency=8)
    told = [result.error and result.error.type for result in [*refused, *together]]
    assert set(told) == {"ToolRefused"}
    mocked = await evaluate(made(desk), [case(f"case {n}", **MOCKED) for n in range(8)])
    assert {result.status for result in mocked} == {"passed"}, str(mocked)
    for result in mocked:
        calls = [call.tool for call in ledger_of(result).of(ToolCalled)]
        assert calls.count("weather") == 1
    assert desk.marks == []


@pytest.mark.parametrize("name", INSIDERS)
async def test_a_named_body_runs_once_inside_a_function(name: str, desk: Desk):
    result = await result_of(INSIDERS[name](desk), case(allow_tools=["weather"]))
    assert result.status == "passed", result.error
    assert desk.marks == ["weather Oslo 1"]
