"""A real notebook: its kernel shows how far a run is, and nothing of that when the run is over."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, Scripted, rehearse
from greenroom.metrics import contains
from greenroom.suite.notebook import in_notebook

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


def ran(*cells: str, cwd: Path) -> dict[str, Any]:
    """What the cells showed while they ran, what stands below them, and their errors."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("notebooks.py")],
        cwd=cwd,
        input=json.dumps([SETTING, *cells]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "cell",
    [
        "report = rehearse(agent, cases, store=False, concurrency=1)",
        "report = await evaluate(agent, cases, store=False, concurrency=1)",
    ],
)
def test_a_cell_shows_how_far_the_run_is_and_takes_it_away(cell, tmp_path):
    found = ran(cell, "report", cwd=tmp_path)
    assert '<progress max="4" value="0"></progress> 0 of 4 trials: 0 passed' in found["shown"][0]
    assert any("2 of 4 trials: 2 passed" in shown for shown in found["shown"])
    assert found["shown"][-1] == ""
    assert not any("progress" in left for left in found["left"][1])
    assert "<table>" in found["left"][2][0]


@pytest.mark.parametrize("cell, error", [(CANCELLED, "KeyError"), (BROKEN, "TimeoutError")])
def test_no_bar_stays_below_a_cell_that_was_cut_or_failed(cell, error, tmp_path):
    found = ran(cell, cwd=tmp_path)
    assert found["errors"] == [error]
    assert any("<progress" in shown for shown in found["shown"])
    assert not any("progress" in left for left in found["left"][1])


def test_it_can_be_left_out_and_the_kernels_own_connections_are_no_gap_in_the_fence(tmp_path):
    cell = "report = await evaluate(agent, cases, store=False, progress=False)"
    found = ran(cell, "report", f"import zmq\n{cell}", "report", cwd=tmp_path)
    assert found["shown"] == []
    gap = "the fence cannot see connections of pyzmq"
    assert [gap in found["left"][n][0] for n in (2, 4)] == [False, True]


def test_outside_a_notebook_there_is_none():
    assert not in_notebook()
    case = Case("a", "Hi", metrics=[contains("Hello")])
    assert rehearse(Agent("a", model=Scripted("Hello.")), case, store=False).passed
