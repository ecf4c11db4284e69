"""Tasks that a case leaves behind and that wait until the run is over: a report says that nobody saw their work."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, evaluate, rehearse
from greenroom.metrics import completed_within
from greenroom.suite import simulate_all

HELD: list[Any] = []
CASES = [Case(f"c{n}", "Hi", metrics=[completed_within(600)]) for n in range(3)]
LEAVER = """
import asyncio

HELD = []

async def later():
    await asyncio.sleep(3600)

async def agent(message):
    HELD.append(asyncio.create_task(later()))
    return "done"
"""


async def later() -> None:
    await asyncio.sleep(3600)


async def leaver(message: str) -> str:
    HELD.append(asyncio.create_task(later()))
    return "done"


async def of_a_library(message: str) -> str:
    HELD.append(asyncio.create_task(asyncio.sleep(3600)))
    return "done"


async def tidy(message: str) -> str:
    task = asyncio.create_task(later())
    await asyncio.sleep(0)
    task.cancel()
    return "done"


@pytest.fixture(autouse=True)
def nothing_is_held():
    yield
    HELD.clear()


def noted(notes: Any) -> list[str]:
    return [note for note in notes if "left behind" in note]


def test_a_report_says_where_such_a_task_waits() -> None:
    report = rehearse(leaver, CASES, store=False)
    [note] = noted(report.notes)
    assert "in later: what it would have done is not recorded" in note
    assert "test_leftover_tasks.py:" in note
    assert not report.faults


@pytest.mark.parametrize("agent", [of_a_library, tidy])
def test_tasks_of_a_library_and_those_that_ended_are_not_noted(agent: Callable[..., Any]) -> None:
    assert noted(rehearse(agent, CASES, store=False).notes) == []


async def test_a_task_is_noted_by_the_run_that_it_is_of_and_not_by_later_ones() -> None:
    own = asyncio.create_task(later())
    first = await evaluate(leaver, CASES, store=False)
    second = await evaluate(tidy, CASES, store=False)
    assert (len(noted(first.notes)), noted(second.notes)) == (1, [])
    for task in (own, *HELD):
        task.cancel()


def test_worker_processes_report_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(LEAVER)
    monkeypatch.chdir(tmp_path)
    report = rehearse("shop.py:agent", CASES, workers=2, store=False)
    [note] = noted(report.notes)
    assert "shop.py:7 in later" in note


async def test_a_batch_of_conversations_says_so_too() -> None:
    batch = await simulate_all(leaver, CASES)
    assert len(noted(batch.notes)) == 1
    for task in HELD:
        task.cancel()
