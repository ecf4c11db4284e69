"""A real notebook: its kernel shows how far a run is, and nothing of that when the run is over."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenroom import Agent, Case, Scripted, rehearse
from greenroom.metrics import contains
from greenroom.suite.notebook import in_notebook
from marks import heavy

SETTING = """
import asyncio
from greenroom import Agent, Case, evaluate, rehearse
from greenroom.metrics import contains
from greenroom.models import ModelReply

class Slow:
    name = "slow"
    async def respond(self, request, on_delta=None):
        await asyncio.sleep(0.15)
        return ModelReply("Hello.")

agent = Agent("slow", model=Slow())
cases = [Case(f"c{n}", "Hi", metrics=[contains("Hello")]) for n in range(4)]
"""

CANCELLED = """
from greenroom.suite import Cancel
token = Cancel()
def stops(result): token.cancel()
await evaluate(agent, cases, store=False, on_case_complete=stops, cancel=token, concurrency=1)
raise KeyError("of the cell")
"""

BROKEN = """
await asyncio.wait_for(evaluate(agent, cases, store=False, concurrency=1), timeout=0.3)
"""


PLAIN = "report = await evaluate(agent, cases, store=False, progress=False)"
CELLS = {
    "setting": SETTING,
    "rehearse": "report = rehearse(agent, cases, store=False, concurrency=1)",
    "rehearsed": "report",
    "evaluate": "report = await evaluate(agent, cases, store=False, concurrency=1)",
    "evaluated": "report",
    "cancelled": CANCELLED,
    "broken": BROKEN,
    "left out": f"{PLAIN}\nreport",
    "beside zmq": f"import zmq\n{PLAIN}\nreport",
}


@dataclass(frozen=True)
class Cell:
    """What it showed while it ran, what stands below it, and its errors."""

    shown: list[str]
    left: list[str]
    errors: list[str]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cell]:
    """All cells in one kernel, for that takes long to start."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("notebooks.py")],
        cwd=tmp_path_factory.mktemp("notebook"),
        input=json.dumps([*CELLS.values()]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    told = zip(found["shown"], found["left"], found["errors"], strict=True)
    return {name: Cell(*cell) for name, cell in zip(CELLS, told, strict=True)}


@pytest.mark.parametrize("name, after", [heavy("rehearse", "rehearsed"), ("evaluate", "evaluated")])
def test_a_cell_shows_how_far_the_run_is_and_takes_it_away(notebook, name, after):
    cell = notebook[name]
    assert '<progress max="4" value="0"></progress> 0 of 4 trials: 0 passed' in cell.shown[0]
    assert any("2 of 4 trials: 2 passed" in shown for shown in cell.shown)
    assert cell.shown[-1] == ""
    assert not any("progress" in left for left in cell.left)
    assert "<table>" in notebook[after].left[0]


@pytest.mark.parametrize("name, error", [("cancelled", "KeyError"), ("broken", "TimeoutError")])
def test_no_bar_stays_below_a_cell_that_was_cut_or_failed(notebook, name, error):
    cell = notebook[name]
    assert cell.errors == [error]
    assert any("<progress" in shown for shown in cell.shown)
    assert not any("progress" in left for left in cell.left)


def test_it_can_be_left_out_and_the_kernels_own_connections_are_no_gap_in_the_fence(notebook):
    gap = "the fence cannot see connections of pyzmq"
    for name, is_told in (("left out", False), ("beside zmq", True)):
        assert notebook[name].shown == []
        assert (gap in notebook[name].left[0]) == is_told


def test_outside_a_notebook_there_is_none():
    assert not in_notebook()
    case = Case("a", "Hi", metrics=[contains("Hello")])
    assert rehearse(Agent("a", model=Scripted("Hello.")), case, store=False).passed
