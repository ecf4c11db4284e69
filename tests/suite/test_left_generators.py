"""Generators that a case leaves suspended: what they do as they end is refused. Those still in use are not ended."""

import asyncio
import gc
import socket
import sys
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, Report, Stop, evaluate, rehearse, simulate, tool
from greenroom.ledger.questions import response
from greenroom.metrics import completed_within
from greenroom.simulation.fence import generators, put_up
from greenroom.suite import simulate_all

PAID: list[int] = []
TRIED: list[str] = []
HELD: list[Any] = []


@tool
def pay(order: int) -> str:
    """Pay an order back."""
    PAID.append(order)
    return "paid"


class Server:
    """Listens, and knows whether anything has connected."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.setblocking(False)

    @property
    def was_reached(self) -> bool:
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture(autouse=True)
def server() -> Iterator[Server]:
    server = Server()
    HELD[:] = [server.socket.getsockname()]
    yield server
    server.socket.close()
    for kept in (PAID, TRIED, HELD):
        kept.clear()


def act() -> None:
    for attempt in (lambda: socket.create_connection(HELD[0]).close(), lambda: pay(1)):
        try:
            TRIED.append(f"done: {attempt()!r}")
        except Exception as error:
            TRIED.append(type(error).__name__)


REFUSED = ["FenceBreach", "ToolRefused"]
DONE = ["done: None", "done: 'paid'"]


async def numbers() -> AsyncGenerator[int]:
    try:
        yield 1
        yield 2
    finally:
        act()


async def slow_numbers() -> AsyncGenerator[int]:
    try:
        yield 1
    finally:
        await asyncio.sleep(0.05)
        act()


async def around() -> AsyncGenerator[int]:
    async for number in numbers():
        yield number


def plain_numbers() -> Generator[int]:
    try:
        yield 1
    finally:
        act()


async def held(message: str) -> str:
    HELD.append(numbers())
    return str(await anext(HELD[-1]))


async def held_slow(message: str) -> str:
    HELD.append(slow_numbers())
    return str(await anext(HELD[-1]))


async def nested(message: str) -> str:
    HELD.append(around())
    return str(await anext(HELD[-1]))


async def in_a_cycle(message: str) -> str:
    cycle: list[Any] = [numbers()]
    cycle.append(cycle)
    return str(await anext(cycle[0]))


async def dropped(message: str) -> str:
    async for number in slow_numbers():
        return str(number)
    return ""


Agent = Callable[[str], Any]
LEAVERS: list[Agent] = [in_a_cycle, dropped]
HOLDERS: list[Agent] = [held, held_slow, nested]


def by_rehearse(agent: Agent, *cases: Case) -> Report:
    return rehearse(agent, cases, store=False)


def by_evaluate(agent: Agent, *cases: Case) -> Report:
    return asyncio.run(evaluate(agent, cases, store=False))


def as_in_a_notebook(agent: Agent, *cases: Case) -> Report:
    async def cell() -> Report:
        return rehearse(agent, cases, store=False)

    return asyncio.run(cell())


def case(name: str = "c", **given: Any) -> Case:
    return Case(name, name, metrics=[completed_within(600)], **given)


@pytest.mark.parametrize("run", [by_rehearse, by_evaluate, as_in_a_notebook])
@pytest.mark.parametrize("agent", LEAVERS)
def test_they_end_inside_the_run_and_what_they_try_is_a_fault_of_it(
    agent: Agent, run: Callable[..., Report], server: Server
) -> None:
    report = run(agent, case())
    assert (TRIED, PAID, server.was_reached) == (REFUSED, [], False)
    connecting, calling = report.faults
    assert "work that case 'c' left behind tried socket.connect" in connecting
    assert "work that case 'c' left behind tried a call of the tool 'pay'" in calling


@pytest.mark.parametrize("run", [by_rehearse, by_evaluate, as_in_a_notebook])
@pytest.mark.parametrize("agent", HOLDERS)
def test_those_that_are_held_end_with_their_loop_and_what_they_try_is_refused(
    agent: Agent, run: Callable[..., Report], server: Server
) -> None:
    report = run(agent, case())
    assert (TRIED, PAID, server.was_reached) == (REFUSED, [], False)
    assert report.faults == []
    assert any(
        "still held when the run ended, at test_left_generators.py:" in n for n in report.notes
    )


def test_outside_of_rehearsals_they_act_as_ever(server: Server) -> None:
    rehearse(lambda message: "Hi", case(), store=False)
    asyncio.run(held(""))
    asyncio.run(in_a_cycle(""))
    assert (TRIED, server.was_reached) == ([*DONE, *DONE], True)


async def test_each_is_a_fault_of_its_own_case_when_several_run_at_once() -> None:
    report = await evaluate(dropped, [case("one"), case("two")], store=False)
    for name in ("one", "two"):
        assert sum(f"case {name!r} left behind" in fault for fault in report.faults) == 2


async def test_the_next_case_may_take_one_up_that_another_case_began() -> None:
    async def clerk(message: str) -> str:
        if message == "one":
            HELD.append(numbers())
        return str(await anext(HELD[-1]))

    report = await evaluate(clerk, [case("one"), case("two")], store=False, concurrency=1)
    assert [response(result.ledger) for result in report.results] == ["1", "2"]
    assert TRIED == []


async def test_one_that_is_collected_while_another_case_runs_is_not_held_against_that_case() -> (
    None
):
    async def clerk(message: str) -> str:
        if message == "first":
            return await in_a_cycle(message)
        gc.collect()
        await asyncio.sleep(0.01)
        return "done"

    report = await evaluate(clerk, [case("first"), case("second")], store=False, concurrency=1)
    assert report["second"].status == "passed"
    assert all("case 'first' left behind" in fault for fault in report.faults)
    assert len(report.faults) == 2


def test_one_of_a_case_that_was_stopped_ends_inside_the_run_as_well(server: Server) -> None:
    async def clerk(message: str) -> str:
        await in_a_cycle(message)
        await asyncio.sleep(60)
        return "never"

    report = by_evaluate(clerk, case(stop=Stop(max_seconds=1)))
    assert (TRIED, server.was_reached, len(report.faults)) == (REFUSED, False, 2)


async def test_one_that_does_not_end_keeps_no_run_waiting() -> None:
    async def endless() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(60)

    async def clerk(message: str) -> str:
        async for number in endless():
            return str(number)
        return ""

    async with asyncio.timeout(10):
        report = await evaluate(clerk, [case()], store=False)
    assert report["c"].status == "passed"


async def test_a_run_ends_none_that_belongs_to_another_run_on_its_loop() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def waiting(message: str) -> str:
        HELD.append(numbers())
        first = await anext(HELD[-1])
        begun.set()
        await go.wait()
        return f"{first} {await anext(HELD[-1])}"

    other = asyncio.create_task(evaluate(waiting, [case()], store=False))
    await begun.wait()
    await evaluate(lambda message: "Hi", [case()], store=False)
    go.set()
    assert response((await other)["c"].ledger) == "1 2"


async def test_a_batch_of_conversations_says_so_too() -> None:
    batch = await simulate_all(dropped, [case()])
    assert (TRIED, len(batch.faults)) == (REFUSED, 2)


CASES = [case("one"), case("two")]
WORKED = """
import socket

async def numbers():
    try:
        yield 1
    finally:
        socket.create_connection(("127.0.0.1", 9))

async def agent(message):
    async for number in numbers():
        return str(number)
"""


def test_worker_processes_report_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(WORKED)
    monkeypatch.chdir(tmp_path)
    report = rehearse("shop.py:agent", CASES, workers=1, store=False)
    assert sum("left behind tried socket.connect" in fault for fault in report.faults) == 2


def library() -> Any:
    """`numbers` as the code of an installed package."""
    source = "async def numbers(act):\n    try:\n        yield 1\n    finally:\n        act()\n"
    found: dict[str, Any] = {}
    exec(compile(source, "/lib/site-packages/library.py", "exec"), found)
    return found["numbers"](act)


def test_one_of_a_library_outlives_the_run_and_its_end_is_refused_all_the_same(
    server: Server,
) -> None:
    async def clerk(message: str) -> str:
        HELD.append(library())
        return str(await anext(HELD[-1]))

    async def main() -> None:
        await evaluate(clerk, [case()], store=False)
        assert TRIED == []

    asyncio.run(main())
    assert (TRIED, server.was_reached) == (REFUSED, False)


def test_one_that_a_single_conversation_left_is_refused_whatever_it_does(server: Server) -> None:
    async def main() -> None:
        for agent in (held, in_a_cycle):
            await simulate(Case("c", "Hi"), agent)
        gc.collect()
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert (TRIED, server.was_reached) == ([*REFUSED, *REFUSED], False)


async def test_nothing_of_a_conversation_is_kept_for_those_that_are_over() -> None:
    class Heard:
        """A listener that only the run holds on to."""

        def __call__(self, event: object) -> None: ...

    async def clerk(message: str) -> str:
        return "".join([str(number) async for number in numbers()])

    gc.collect()
    heard = Heard()
    left = weakref.ref(heard)
    await simulate(Case("c", "Hi", mocks={"pay": "ok"}), clerk, on_event=heard)
    del heard
    gc.collect()
    assert (left(), generators._begun) == (None, {})


class Pool:
    """What several cases share, open as long as its context manager is."""

    def __init__(self) -> None:
        self.is_open = True

    async def row(self) -> str:
        return "row" if self.is_open else "closed"


@asynccontextmanager
async def pool() -> AsyncGenerator[Pool]:
    opened = Pool()
    yield opened
    opened.is_open = False


async def test_a_context_manager_that_a_case_entered_serves_later_runs() -> None:
    shared: list[Pool] = []

    async def clerk(message: str) -> str:
        if not shared:
            shared.append(await stack.enter_async_context(pool()))
        return await shared[0].row()

    async with AsyncExitStack() as stack:
        for name in ("first", "second"):
            report = await evaluate(clerk, [case(name)], store=False)
            assert response(report[name].ledger) == "row"
            assert not any("left suspended" in note for note in report.notes)
    assert not shared[0].is_open


async def test_one_that_a_waiting_task_takes_values_from_goes_on_and_only_the_task_is_noted() -> (
    None
):
    taken: list[int] = []

    async def ticks() -> AsyncGenerator[int]:
        while True:
            yield 1

    async def poll() -> None:
        async for tick in ticks():
            taken.append(tick)
            await asyncio.sleep(0.01)

    async def clerk(message: str) -> str:
        HELD.append(asyncio.create_task(poll()))
        await asyncio.sleep(0.02)
        return "done"

    report = await evaluate(clerk, [case()], store=False)
    before = len(taken)
    await asyncio.sleep(0.05)
    assert len(taken) > before
    assert sum("a case left" in note for note in report.notes) == 1
    HELD[-1].cancel()


async def test_one_that_is_held_for_the_next_run_is_noted_once_and_goes_on() -> None:
    async def clerk(message: str) -> str:
        if message == "first":
            HELD.append(numbers())
        return str(await anext(HELD[-1]))

    first = await evaluate(clerk, [case("first")], store=False)
    second = await evaluate(clerk, [case("second")], store=False)
    assert response(second["second"].ledger) == "2"
    noted = [sum("left suspended" in note for note in it.notes) for it in (first, second)]
    assert noted == [1, 0]
    await HELD[-1].aclose()


@pytest.mark.parametrize("runs", ["simulated", "evaluated"])
async def test_one_that_is_held_keeps_nothing_of_its_conversation(runs: str) -> None:
    class World:
        """What only the context of the case leads to."""

    of_case = ContextVar[World]("of_case")
    left: list[weakref.ref[World]] = []

    async def clerk(message: str) -> str:
        of_case.set(world := World())
        left.append(weakref.ref(world))
        HELD.append(library())
        return str(await anext(HELD[-1]))

    if runs == "simulated":
        await simulate(Case("c", "Hi"), clerk)
    else:
        await evaluate(clerk, [case()], store=False)
    gc.collect()
    assert [world() for world in left] == [None]
    await HELD[-1].aclose()


def test_all_that_are_late_have_one_second_together_when_their_loop_closes() -> None:
    async def slow() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0.5)
            TRIED.append("ended")

    async def clerk(message: str) -> str:
        for _ in range(6):
            HELD.append(slow())
            await anext(HELD[-1])
        return "done"

    before = time.monotonic()
    asyncio.run(simulate(Case("c", "Hi"), clerk))
    assert TRIED == ["ended"] * 6
    assert time.monotonic() - before < 2.5


def test_python_may_collect_them_while_those_that_are_over_are_looked_for() -> None:
    async def harmless() -> AsyncGenerator[int]:
        yield 1

    async def clerk(message: str) -> str:
        thresholds = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for _ in range(100):
                cycle: list[Any] = [harmless()]
                cycle.append(cycle)
                await anext(cycle[0])
                del cycle
        finally:
            gc.set_threshold(*thresholds)
        return "done"

    report = by_evaluate(clerk, case("one"), case("two"))
    assert [result.error for result in report.results] == [None, None]


@pytest.fixture
def hooks() -> Iterator[None]:
    put_up()
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    yield
    sys.set_asyncgen_hooks(*before)


@pytest.mark.usefixtures("hooks")
def test_hooks_are_set_as_python_sets_them() -> None:
    heard: list[str] = []

    def first(_: object) -> None:
        heard.append("first")

    def last(_: object) -> None:
        heard.append("last")

    def other(_: object) -> None:
        heard.append("other")

    def begin_and_end() -> list[str]:
        heard.clear()
        with suppress(StopIteration):
            numbers().__anext__().send(None)
        return heard.copy()

    set_hooks: Any = sys.set_asyncgen_hooks
    with pytest.raises(TypeError, match="callable"):
        set_hooks(1, 2)
    assert sys.get_asyncgen_hooks() == (None, None)
    set_hooks(first, finalizer=last)
    assert begin_and_end() == ["first", "last"]
    set_hooks(firstiter=other)
    assert begin_and_end() == ["other", "last"]
    set_hooks(finalizer=other)
    assert begin_and_end() == ["other", "other"]
    set_hooks(firstiter=None)
    assert sys.get_asyncgen_hooks() == (None, other)


def test_a_plain_one_that_nothing_holds_ends_inside_the_run(server: Server) -> None:
    async def clerk(message: str) -> str:
        cycle: list[Any] = [plain_numbers()]
        cycle.append(cycle)
        return str(next(cycle[0]))

    report = by_evaluate(clerk, case())
    assert (TRIED, PAID, server.was_reached) == (REFUSED, [], False)
    assert len(report.faults) == 2


def test_leak_a_plain_one_that_is_held_acts_when_the_run_is_over(server: Server) -> None:
    async def clerk(message: str) -> str:
        HELD.append(plain_numbers())
        return str(next(HELD[-1]))

    report = by_evaluate(clerk, case())
    assert (TRIED, report.faults) == ([], [])
    HELD.pop()
    assert (TRIED, server.was_reached) == (DONE, True)
