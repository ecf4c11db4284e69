"""Pools of threads that one case makes and others use: each task belongs to the case that gave it."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from greenroom import Case, Report, evaluate, tool
from greenroom.ledger.questions import tool_calls
from greenroom.metrics import contains

PAID: list[int] = []


@tool
def pay(order: int) -> str:
    """Pay an order back."""
    PAID.append(order)
    return f"paid {order}"


@pytest.fixture(autouse=True)
def no_payments():
    PAID.clear()
    yield
    PAID.clear()


Way = Callable[[ThreadPool], Any]


def by_callback(pool: ThreadPool) -> list[str]:
    answers: list[str] = []
    pool.apply_async(int, callback=lambda order: answers.append(pay(order)))
    pool.close()
    pool.join()
    return answers


def orders() -> Iterator[str]:
    yield pay(1)


WAYS: dict[str, Way] = {
    "apply": lambda pool: pool.apply(pay, (1,)),
    "apply_async": lambda pool: pool.apply_async(func=pay, kwds={"order": 1}).get(),
    "map": lambda pool: pool.map(pay, [1]),
    "starmap": lambda pool: pool.starmap(pay, [(1,)]),
    "imap": lambda pool: list(pool.imap(pay, [1])),
    "imap_unordered": lambda pool: list(pool.imap_unordered(pay, [1], chunksize=2)),
    "callback": by_callback,
    "iterable": lambda pool: list(pool.imap(str, orders())),
}


async def paid_by(way: Way, pool: ThreadPool, *cases: Case) -> Report:
    """The cases, one after the other, with an agent that gives its work to this pool."""

    async def clerk(message: str) -> str:
        return str(await asyncio.to_thread(way, pool))

    return await evaluate(clerk, cases, store=False, concurrency=1)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_pool_made_before_the_run_works_for_the_case_that_gives_the_task(way: Way) -> None:
    case = Case("c", "Hi", mocks={"pay": "mocked"}, metrics=[contains("mocked")])
    with ThreadPool(1) as pool:
        report = await paid_by(way, pool, case)
    assert [call.result for call in tool_calls(report["c"].ledger)] == ["mocked"]
    assert (report.passed, PAID, report.faults) == (True, [], [])


async def test_a_pool_that_one_case_made_works_for_the_next_one() -> None:
    pools: list[ThreadPool] = []

    async def clerk(message: str) -> str:
        if not pools:
            pools.append(ThreadPool(1))
        return str(await asyncio.to_thread(pools[0].apply, pay, (1,)))

    cases = [
        Case(name, "Hi", mocks={"pay": name}, metrics=[contains(name)]) for name in ("one", "two")
    ]
    report = await evaluate(clerk, cases, store=False, concurrency=1)
    pools[0].terminate()
    assert [result.status for result in report.results] == ["passed", "passed"]


async def test_a_case_cannot_use_what_another_one_named_by_way_of_its_pool() -> None:
    pools: list[ThreadPool] = []
    made, used = asyncio.Event(), asyncio.Event()

    async def clerk(message: str) -> str:
        if message == "allowed":
            pools.append(ThreadPool(1))
            answer = await asyncio.to_thread(pools[0].apply, pay, (1,))
            made.set()
            await used.wait()
            return str(answer)
        await made.wait()
        try:
            return str(await asyncio.to_thread(pools[0].apply, pay, (2,)))
        finally:
            used.set()

    report = await evaluate(
        clerk,
        [
            Case("a", "allowed", allow_tools=["pay"], metrics=[contains("paid")]),
            Case("b", "not allowed", metrics=[contains("paid")]),
        ],
        store=False,
    )
    pools[0].terminate()
    error = report["b"].error
    assert error is not None
    assert (error.type, report["a"].status, PAID) == ("ToolRefused", "passed", [1])


async def test_leak_a_thread_that_another_case_feeds_by_a_queue_acts_for_the_case_that_started_it() -> (
    None
):
    jobs: queue.Queue[Future[str] | None] = queue.Queue()
    used = asyncio.Event()

    def work() -> None:
        while (job := jobs.get()) is not None:
            job.set_result(pay(1))

    async def clerk(message: str) -> str:
        if message == "first":
            threading.Thread(target=work, daemon=True).start()
            await used.wait()
            return "started"
        job: Future[str] = Future()
        jobs.put(job)
        answer = await asyncio.wrap_future(job)
        jobs.put(None)
        used.set()
        return answer

    cases = [
        Case(name, name, mocks={"pay": name}, metrics=[contains("first")])
        for name in ("first", "second")
    ]
    report = await evaluate(clerk, cases, store=False)
    assert report["second"].status == "passed"
