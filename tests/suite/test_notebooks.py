"""A real notebook: its kernel shows how far a run is, and nothing of that when the run is over."""

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

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


class Watched(NotebookClient):
    """Remembers what the kernel sent to be shown."""

    def __init__(self, *cells: str) -> None:
        self.shown: list[str] = []
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in (SETTING, *cells)]
        super().__init__(notebook, kernel_name="python3", timeout=120)

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.shown.append(msg["content"]["data"].get("text/html", ""))
        return super().process_message(msg, cell, cell_index)

    def left(self, cell: int = 1) -> list[str]:
        """What stands below a cell in the end."""
        outputs = self.nb.cells[cell].outputs
        return [str(output.get("data", {}).get("text/html", "")) for output in outputs]


@pytest.mark.parametrize(
    "cell",
    [
        "report = rehearse(agent, cases, store=False, concurrency=1)",
        "report = await evaluate(agent, cases, store=False, concurrency=1)",
    ],
)
def test_a_cell_shows_how_far_the_run_is_and_takes_it_away(cell):
    client = Watched(cell, "report")
    client.execute()
    assert '<progress max="4" value="0"></progress> 0 of 4 trials: 0 passed' in client.shown[0]
    assert any("2 of 4 trials: 2 passed" in shown for shown in client.shown)
    assert client.shown[-1] == ""
    assert not any("progress" in left for left in client.left())
    assert "<table>" in client.left(2)[0]


def test_no_bar_stays_below_a_cell_that_failed():
    client = Watched(
        "def broken(*_): raise SystemExit\n"
        "def stops(result): token.cancel()\n"
        "from greenroom.suite import Cancel\n"
        "token = Cancel()\n"
        "await evaluate(agent, cases, store=False, on_case_complete=stops, cancel=token)\n"
        "raise KeyError('of the cell')"
    )
    with pytest.raises(CellExecutionError):
        client.execute()
    assert any("<progress" in shown for shown in client.shown)
    assert not any("progress" in left for left in client.left())


def test_it_can_be_left_out():
    client = Watched("report = await evaluate(agent, cases, store=False, progress=False)")
    client.execute()
    assert client.shown == []


def test_outside_a_notebook_there_is_none():
    assert not in_notebook()
    assert rehearse(
        Agent("a", model=Scripted("Hello.")),
        Case("a", "Hi", metrics=[contains("Hello")]),
        store=False,
    ).passed
