"""Generators that a case leaves suspended: what they do as they end is refused, and a fault of the run."""

import asyncio
import gc
import socket
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, Report, Stop, evaluate, rehearse, simulate, tool
from greenroom.ledger.questions import response
from greenroom.metrics import completed_within
from greenroom.simulation.fence import generators
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
LEAVERS: list[Agent] = [held, held_slow, nested, in_a_cycle, dropped]


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


def test_outside_of_rehearsals_they_act_as_ever(server: Server) -> None:
    rehearse(lambda message: "Hi", case(), store=False)
    asyncio.run(held(""))
    asyncio.run(in_a_cycle(""))
    assert (TRIED, server.was_reached) == ([*DONE, *DONE], True)


async def test_each_is_a_fault_of_its_own_case_when_several_run_at_once() -> None:
    report = await evaluate(held, [case("one"), case("two")], store=False)
    for name in ("one", "two"):
        assert sum(f"case {name!r} left behind" in fault for fault in report.faults) == 2


async def test_the_next_case_may_take_one_up_that_another_case_began() -> None:
    async def clerk(message: str) -> str:
        if message == "one":
            HELD.append(numbers())
        return str(await anext(HELD[-1]))

    report = await evaluate(clerk, [case("one"), case("two")], store=False, concurrency=1)
    assert [response(result.ledger) for result in report.results] == ["1", "2"]
    assert TRIED == REFUSED


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
        await held(message)
        await asyncio.sleep(60)
        return "never"

    report = by_evaluate(clerk, case(stop=Stop(max_seconds=0.2)))
    assert (TRIED, server.was_reached, len(report.faults)) == (REFUSED, False, 2)


async def test_one_that_does_not_end_keeps_no_run_waiting() -> None:
    async def endless() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(60)

    async def clerk(message: str) -> str:
        HELD.append(endless())
        return str(await anext(HELD[-1]))

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
    batch = await simulate_all(held, [case()])
    assert (TRIED, len(batch.faults)) == (REFUSED, 2)


CASES = [case("one"), case("two")]
WORKED = """
import socket

HELD = []

async def numbers():
    try:
        yield 1
    finally:
        socket.create_connection(("127.0.0.1", 9))

async def agent(message):
    HELD.append(numbers())
    return str(await anext(HELD[-1]))
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
