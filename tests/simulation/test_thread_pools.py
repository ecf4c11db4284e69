"""Pools of threads that one case makes and others use: each task belongs to the case that gave it."""

import asyncio
import queue
import threading
from asyncio import create_task
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Report,
    Scripted,
    Stop,
    call,
    evaluate,
    rehearse,
    simulate,
    tool,
)
from greenroom.errors import ToolRefused
from greenroom.ledger.events import ToolCalled
from greenroom.ledger.questions import tool_calls
from greenroom.metrics import contains
from greenroom.world.call_context import place_here
from rehearsals import end_of

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


def in_a_thread(_: ThreadPool) -> str:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(pay(1)))
    thread.start()
    thread.join()
    return answers[0]


def by_submit(_: ThreadPool) -> str:
    return OLD.submit(pay, 1).result()


def in_a_new_pool(_: ThreadPool) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(pay, 1).result()


def when_a_future_is_done(_: ThreadPool) -> str:
    answers: list[str] = []
    future: Future[int] = Future()
    future.add_done_callback(lambda _: answers.append(pay(1)))
    thread = threading.Thread(target=future.set_result, args=(1,))
    thread.start()
    thread.join()
    return answers[0]


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    pool = ThreadPool(1)
    yield pool
    pool.close()  # a task that is under way ends: what waits for it would wait forever
    pool.join()


OLD = ThreadPoolExecutor(1)
EVERY_WAY: dict[str, Way] = {
    "apply": WAYS["apply"],
    "submit": by_submit,
    "new pool": in_a_new_pool,
    "thread": in_a_thread,
    "callback of a future": when_a_future_is_done,
}


@pytest.mark.parametrize("way", EVERY_WAY.values(), ids=EVERY_WAY)
async def test_a_call_in_a_thread_has_the_place_of_the_code_that_gave_the_work(
    way: Way, pool: ThreadPool
) -> None:
    @tool
    def outer(order: int) -> str:
        """Pay, and more."""
        return str(way(pool))

    agent = Agent("clerk", model=Scripted(call("outer", order=1), "done"), tools=[outer])
    case = Case("c", "Hi", mocks={"pay": "mocked"}, allow_tools=["outer"])
    ledger = await simulate(case, agent)
    by_model, by_code = ledger.of(ToolCalled)
    assert (by_code.tool, by_code.path) == ("pay", f"{by_model.path}/call:{by_model.call_id}")


@pytest.mark.parametrize("way", EVERY_WAY.values(), ids=EVERY_WAY)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_the_user_s_threads_call_no_tool_of_the_agent_s_either(
    way: Way, pool: ThreadPool
) -> None:
    async def user(input: str) -> str:
        return str(await asyncio.to_thread(way, pool))

    async def clerk(message: str) -> str:
        return "Anything else?"

    case = Case("c", "Hi", user=user, mocks={"pay": "mocked"}, stop=Stop(max_turns=3))
    ledger = await simulate(case, clerk)
    assert end_of(ledger).error.startswith("code in case 'c' called the tool 'pay' itself")
    assert (ledger.of(ToolCalled), PAID) == ([], [])


async def test_a_pool_works_for_user_and_agent_of_several_cases_at_once() -> None:
    both = asyncio.Barrier(2)

    async def user(input: str) -> str:
        await both.wait()
        return await asyncio.wrap_future(OLD.submit(lambda: str(place_here())))

    async def clerk(message: str) -> str:
        if message != "agent":
            return "Anything else?"
        await both.wait()
        return await asyncio.wrap_future(OLD.submit(pay, 1))

    report = await evaluate(
        clerk,
        [
            Case("a", "agent", mocks={"pay": "mocked"}, metrics=[contains("mocked")]),
            Case("u", "user", user=user, stop=Stop(max_turns=2), metrics=[contains("else")]),
        ],
        store=False,
    )
    [paid] = report["a"].ledger.of(ToolCalled)
    assert (paid.path, paid.voice) == ("@1/clerk", "agent")
    assert report["u"].ledger.of(ToolCalled) == []


@pytest.mark.parametrize("allowed", [(), ("pay",)], ids=["refused", "named"])
@pytest.mark.parametrize("is_thread", [True, False], ids=["thread", "task"])
async def test_what_a_user_left_behind_acts_no_more_when_the_case_is_over(
    allowed: tuple[str, ...], is_thread: bool
) -> None:
    refused: list[str] = []
    kept: list[object] = []
    go, acted = threading.Event(), threading.Event()

    def act() -> None:
        try:
            pay(1)
        except ToolRefused as error:
            refused.append(str(error))
        acted.set()

    async def later() -> None:
        await asyncio.to_thread(go.wait)
        act()

    async def user(input: str) -> str | None:
        if kept:
            return None
        kept.append(OLD.submit(lambda: (go.wait(), act())) if is_thread else create_task(later()))
        return "more"

    async def clerk(message: str) -> str:
        if message == "second":
            go.set()
            await asyncio.to_thread(acted.wait)
        return "done"

    cases = [
        Case("first", "Hi", user=user, allow_tools=allowed, metrics=[contains("done")]),
        Case("second", "second", metrics=[contains("done")]),
    ]
    report = await evaluate(clerk, cases, store=False, concurrency=1)
    assert refused == ["the trial of case 'first' is over; no further call is allowed."]
    assert {result.status for result in report.results} == {"passed"}
    assert (PAID, len(report.faults)) == ([], 0 if allowed else 1)


def test_a_worker_born_in_a_case_keeps_nothing_of_it_for_work_from_outside() -> None:
    pools: list[ThreadPoolExecutor] = []

    def user(input: str) -> str | None:
        if pools:
            return None
        pools.append(ThreadPoolExecutor(1))
        pools[0].submit(int).result()
        return "more"

    rehearse(lambda message: "done", [Case("c", "Hi", user=user)], store=False)
    with pools[0] as pool:
        assert (pool.submit(pay, 1).result(), PAID) == ("paid 1", [1])


def test_a_pool_s_threads_keep_a_program_s_own_variables_as_python_does() -> None:
    own = ContextVar("own", default="unset")
    found: list[str] = []

    def clerk(message: str) -> str:
        own.set("set here")
        found.append(OLD.submit(own.get).result())
        OLD.submit(own.set, "set in the thread").result()
        found.append(OLD.submit(own.get).result())
        return "done"

    rehearse(clerk, [Case("c", "Hi")], store=False)
    assert found == ["unset", "set in the thread"]


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
