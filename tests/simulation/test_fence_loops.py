"""Event loops written in C that a case makes, or finds running in another thread."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from greenroom import Case, Expect, live, rehearse, tool
from greenroom.simulation.fence import enclose
from simulation.fence_canaries import Canary

Way = Callable[[Canary], Awaitable[Any]]


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    canary = Canary(tmp_path)
    yield canary
    canary.close()


async def connect(canary: Canary) -> None:
    _, writer = await asyncio.open_connection(*canary.address)
    writer.close()
    await writer.wait_closed()


async def connect_to_a_path(canary: Canary) -> None:
    await asyncio.open_unix_connection(canary.path)


async def open_datagrams_to_one(canary: Canary) -> None:
    loop = asyncio.get_running_loop()
    other = ("127.0.0.1", canary.udp_port)
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=other)
    transport.sendto(b"hello")


async def open_datagrams_to_any(canary: Canary) -> None:
    loop = asyncio.get_running_loop()
    own = ("127.0.0.1", 0)
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=own)
    transport.sendto(b"hello", ("127.0.0.1", canary.udp_port))


async def look_up(_: Canary) -> None:
    await asyncio.get_running_loop().getaddrinfo("shop.example", 443)


async def look_up_an_address(_: Canary) -> None:
    await asyncio.get_running_loop().getnameinfo(("192.0.2.1", 443))


async def start_a_program(canary: Canary) -> None:
    await (await asyncio.create_subprocess_exec(*canary.touching)).wait()


async def start_a_shell(canary: Canary) -> None:
    await (await asyncio.create_subprocess_shell(" ".join(canary.touching))).wait()


WAYS = [
    connect,
    connect_to_a_path,
    open_datagrams_to_one,
    open_datagrams_to_any,
    look_up,
    look_up_an_address,
    start_a_program,
    start_a_shell,
]


def in_a_thread(work: Callable[[], Any]) -> None:
    """Call this in a thread of its own, and let go of what it raises."""

    def swallow() -> None:
        try:
            work()
        except Exception:
            return

    thread = threading.Thread(target=swallow)
    thread.start()
    thread.join()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_loop_that_a_case_makes_leads_nowhere(way: Way, canary: Canary) -> None:
    def clerk(message: str) -> str:
        in_a_thread(lambda: uvloop.run(way(canary)))  # pyright: ignore[reportArgumentType]
        return "Done."

    result = rehearse(clerk, Case("one", "Hi", expect=Expect(contains="Done")), store=False)["one"]
    assert result.error is not None
    assert "the fence refused" in result.error.message
    assert f" in {way.__name__}" in result.error.message
    assert canary.songs() == []


def test_a_loop_that_another_thread_runs_leads_a_case_nowhere(canary: Canary) -> None:
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def clerk(message: str) -> str:
        given = asyncio.run_coroutine_threadsafe(connect(canary), loop)
        return str(given.exception(timeout=20))

    report = rehearse(clerk, Case("one", "Hi", expect=Expect(contains="refused")), store=False)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert report["one"].status == "error"
    assert "uvloop.Loop.create_connection" in str(report["one"].error)
    assert canary.songs() == []


@pytest.mark.parametrize("host, reached", [("127.0.0.1", ["connected"]), ("shop.example", [])])
def test_a_live_tool_on_such_a_loop_reaches_the_hosts_named_for_it(
    host: str, reached: list[str], canary: Canary
) -> None:
    @tool
    def stock() -> str:
        """Ask the warehouse."""
        in_a_thread(lambda: uvloop.run(connect(canary)))
        return "3 cups"

    def clerk(message: str) -> str:
        return stock()

    named = Case(
        "one", "Hi", mocks={"stock": live(stock, hosts=[host])}, expect=Expect(contains="3")
    )
    assert rehearse(clerk, named, store=False)["one"].passed == bool(reached)
    assert canary.songs() == reached


def test_what_such_a_loop_does_inside_is_free() -> None:
    async def both_ends() -> bytes:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        server.close()
        return await asyncio.to_thread(bytes, 3)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    with enclose("one") as scope:
        found: list[bytes] = []
        in_a_thread(lambda: found.append(uvloop.run(both_ends())))
    assert (scope.breach, found) == (None, [bytes(3)])


def test_outside_of_a_rehearsal_such_a_loop_connects(canary: Canary) -> None:
    rehearse(lambda message: "Hi.", Case("one", "Hi"), store=False)
    uvloop.run(connect(canary))
    assert canary.songs() == ["connected"]
