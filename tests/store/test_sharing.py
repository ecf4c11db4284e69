"""One store, many writers: nobody waits in vain, and nothing is lost."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Report, Scripted, evaluate, rehearse
from greenroom.metrics import contains
from greenroom.store import Store
from store.timeless import timeless
from warm_python import WarmPython

OK = contains("Answer", name="ok")


def agent(latency: float = 0.0) -> Agent:
    return Agent("a", model=Scripted(then=lambda r: f"Answer to {r.last}", latency=latency))


def cases(name: str, count: int = 20) -> EvalSet:
    return EvalSet(name, [Case(f"{name} {i}", f"Hello {i}") for i in range(count)])


def check(store: Store, reports: list[Report]) -> None:
    """What the store says of each run is what its report said."""
    assert len(store.runs()) == len(reports)
    for report in reports:
        assert report.passed
        assert timeless(store.report(report.id)) == timeless(report)
        assert store.run(report.id).status == "finished"
    assert not list((store.place / "journals").glob("*/*"))


async def test_several_evaluations_at_once_share_a_store(tmp_path: Path) -> None:
    runs = [
        evaluate(agent(), cases(f"set {i}"), store=tmp_path, metrics=[OK], trials=2)
        for i in range(6)
    ]
    check(Store(tmp_path), await asyncio.gather(*runs))


def test_rehearsals_in_threads_share_a_store(tmp_path: Path) -> None:
    def run(number: int) -> Report:
        return rehearse(agent(), cases(f"set {number}"), store=tmp_path, metrics=[OK])

    with ThreadPoolExecutor(6) as pool:
        check(Store(tmp_path), list(pool.map(run, range(6))))


def test_a_store_that_another_is_just_making_is_waited_for(tmp_path: Path) -> None:
    """SQLite says "locked" at once to whoever turns a file to WAL that another writes."""
    store = Store(tmp_path)
    (store.place / "runs.db").touch()
    other = sqlite3.connect(store.place / "runs.db", isolation_level=None)
    other.execute("begin immediate")
    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(store.runs)
        with pytest.raises(TimeoutError):
            opened.result(timeout=0.2)
        other.execute("commit")
        assert opened.result() == []
    other.close()


PLAY = """
import sys
from greenroom import Agent, Case, EvalSet, Scripted, rehearse
from greenroom.metrics import contains

_, place, name = sys.argv
model = Scripted(then=lambda r: f"Answer to {r.last}", latency=0.002)
cases = EvalSet(name, [Case(f"{name} {i}", f"Hello {i}") for i in range(100)])
print("ready", flush=True)
sys.stdin.readline()
report = rehearse(Agent("a", model=model), cases, store=place, metrics=[contains("Answer")])
print(report.id, report.passed, list(report.notes))
"""


def test_two_processes_write_one_store_at_once(tmp_path: Path) -> None:
    place = tmp_path / "store"
    command = [sys.executable, "-c", PLAY, str(place)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        WarmPython([*command, "one"], **pipes) as one,
        WarmPython([*command, "two"], **pipes) as two,
    ):
        for child in (one, two):
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in (one, two):
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        told = [child.communicate()[0].split(maxsplit=2) for child in (one, two)]
    store = Store(place)
    assert {run.id for run in store.runs()} == {run_id for run_id, _, _ in told}
    for run_id, passed, notes in told:
        assert (passed, notes.strip()) == ("True", "[]")
        assert store.run(run_id).counts == {"passed": 100}


@pytest.mark.parametrize("seconds", [1, pytest.param(10, marks=pytest.mark.torture)])
async def test_a_lock_that_somebody_holds_for_a_while_loses_nothing(
    tmp_path: Path, seconds: int
) -> None:
    store = Store(tmp_path)
    with store.database.connected() as connection:
        connection.execute("begin immediate")
        letting_go = threading.Timer(seconds, lambda: None)
        letting_go.start()
        running = asyncio.ensure_future(evaluate(agent(), cases("set"), store=store, metrics=[OK]))
        await asyncio.to_thread(letting_go.join)
        assert not running.done()
        connection.execute("rollback")
    check(store, [await running])


async def test_a_lock_that_is_taken_again_and_again_loses_nothing(tmp_path: Path) -> None:
    store, is_over = Store(tmp_path), threading.Event()
    store.runs()

    def disturb() -> None:
        with store.database.connected() as connection:
            while not is_over.wait(0.002):
                connection.execute("begin immediate")
                is_over.wait(0.02)
                connection.execute("rollback")

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        report = await evaluate(agent(0.001), cases("set", 60), store=store, metrics=[OK])
    finally:
        is_over.set()
        disturbing.join()
    check(store, [report])


async def test_a_run_can_be_looked_at_while_it_goes_on(tmp_path: Path) -> None:
    store, seen = Store(tmp_path), list[int]()

    def look(_: Any) -> None:
        [run] = store.runs()
        assert run.status == "running"
        assert len(store.report(run.id)) >= run.done
        seen.append(run.done)

    report = await evaluate(
        agent(), cases("set"), store=store, metrics=[OK], on_case_complete=look, concurrency=2
    )
    assert report.notes == []
    assert seen == sorted(seen)
    assert (len(seen), seen[-1]) == (20, 20)


async def test_looking_does_not_keep_others_from_beginning(tmp_path: Path) -> None:
    store, is_over = Store(tmp_path), threading.Event()
    await evaluate(agent(), cases("first", 1), store=store, metrics=[OK])

    def look() -> None:
        while not is_over.is_set():
            store.runs()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for number in range(25):
            await evaluate(agent(), cases(f"set {number}", 1), store=store, metrics=[OK])
    finally:
        is_over.set()
        looking.join()
    assert len(store.runs()) == 26
