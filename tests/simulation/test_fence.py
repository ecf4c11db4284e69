"""The fence: who is refused, who is let through, and who answers for it."""

import asyncio
import contextvars
import http.server
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
from msgspec.structs import replace

from greenroom.errors import FenceBreach
from greenroom.simulation.fence import Breach, enclose, opening_for, put_up, strays
from local_servers import LocalServer
from simulation.fence_canaries import NO_NAME, Canary, anonymous_tls


@pytest.fixture
async def canary(tmp_path):
    canary = Canary(tmp_path)
    yield canary
    canary.close()
    await asyncio.sleep(0.01)


def reach(canary: Canary) -> None:
    socket.create_connection(canary.address).close()


def try_to_reach(canary: Canary) -> None:
    with suppress(OSError):
        reach(canary)


@pytest.fixture
def new_strays():
    """The strays of this test alone."""
    before = len(strays())
    return lambda: strays()[before:]


def in_a_bare_thread(function, *args) -> None:
    """Run the function as a thread does that was there before every case."""
    thread = threading.Thread(target=contextvars.Context().run, args=(function, *args))
    contextvars.Context().run(thread.start)
    thread.join()


async def test_a_breach_is_on_record_though_its_exception_was_swallowed(canary):
    with enclose("refund") as scope:
        try_to_reach(canary)
    assert scope.breach is not None
    assert scope.breach.route == "socket.connect"
    assert scope.breach.target == f"127.0.0.1:{canary.port}"
    assert scope.breach.where.startswith("test_fence.py:")
    assert scope.breach.where.endswith("in reach")


async def test_the_first_breach_stays_and_is_announced_at_once_and_once(canary):
    announced: list[Breach] = []
    with enclose("refund", announced.append) as scope:
        with pytest.raises(FenceBreach):
            socket.getaddrinfo("shop.example", 443)
        assert announced == [scope.breach]
        try_to_reach(canary)
    assert [breach.target for breach in announced] == ["shop.example"]


async def test_a_refusal_says_what_where_and_what_next(canary):
    with enclose("refund"), pytest.raises(FenceBreach) as refusal:
        reach(canary)
    assert f"socket.connect '127.0.0.1:{canary.port}'" in str(refusal.value)
    assert "test_fence.py:" in str(refusal.value)
    assert "in case 'refund'" in str(refusal.value)
    assert "Mock the tool" in str(refusal.value)
    assert isinstance(refusal.value, PermissionError)


def test_the_command_of_a_refused_process_is_shown():
    with enclose("refund") as scope, suppress(FenceBreach):
        subprocess.run(["refund", "--order", "number seven"], check=True)
    assert scope.breach is not None
    assert scope.breach.target == "refund --order 'number seven'"


async def test_outside_is_reached_again_when_the_rehearsal_is_over(canary):
    with enclose("refund"):
        try_to_reach(canary)
    reach(canary)
    assert canary.songs() == ["connected"]


async def test_a_passage_leads_outside_and_closes_behind_itself(canary):
    with enclose("refund") as scope:
        with opening_for():
            reach(canary)
        assert scope.breach is None
        with pytest.raises(FenceBreach):
            reach(canary)
    assert canary.songs() == ["connected"]


def test_a_passage_does_not_start_processes_unless_asked():
    with enclose("refund") as scope:
        with opening_for(processes=True):
            subprocess.run(["true"], check=True)
        assert scope.breach is None
        with opening_for(), pytest.raises(FenceBreach):
            subprocess.run(["true"], check=True)
    assert scope.breach is not None


async def test_a_passage_to_named_hosts_leads_nowhere_else(canary):
    with enclose("refund") as scope, opening_for(hosts=["127.0.0.1"]):
        reach(canary)
        assert scope.breach is None
        with pytest.raises(FenceBreach):
            socket.create_connection(("127.0.0.2", canary.port))
        with pytest.raises(FenceBreach):
            socket.getaddrinfo(NO_NAME, 443)
    assert canary.songs() == ["connected"]


async def test_a_passage_to_a_name_leads_to_the_addresses_of_that_name(canary):
    with enclose("refund") as scope, opening_for(hosts=["LocalHost."]):
        with pytest.raises(FenceBreach):
            reach(canary)
        # One family at a time: the canary listens on IPv4 only.
        found = socket.getaddrinfo("localhost", canary.port, socket.AF_INET)
        socket.create_connection(found[0][4]).close()  # pyright: ignore[reportArgumentType]
        _, writer = await asyncio.open_connection("localhost", canary.port)
        writer.close()
    assert scope.breach is not None
    assert canary.songs() == ["connected", "connected"]


async def test_a_passage_to_a_path_leads_to_that_path(canary):
    with enclose("refund") as scope, socket.socket(socket.AF_UNIX) as sock:
        with opening_for(hosts=[canary.path]):
            sock.connect(canary.path)
            sock.send(b"refund")
        assert scope.breach is None
        with pytest.raises(FenceBreach):
            sock.send(b"refund")


async def test_the_innermost_passage_decides(canary):
    with enclose("refund"), opening_for(hosts=["nobody.example"]):
        with opening_for():
            reach(canary)
        with pytest.raises(FenceBreach):
            reach(canary)


def test_a_passage_outside_a_rehearsal_takes_nothing_away():
    with opening_for(hosts=["nobody.example"]):
        socket.gethostbyaddr("127.0.0.1")
        subprocess.run(["true"], check=True)


async def test_a_task_born_in_a_passage_finds_it_closed_when_it_is_over(canary):
    go = asyncio.Event()

    async def linger() -> None:
        await go.wait()
        reach(canary)

    with enclose("refund") as scope:
        with opening_for():
            task = asyncio.create_task(linger())
            await asyncio.sleep(0)
        go.set()
        with pytest.raises(FenceBreach):
            await task
    assert scope.breach is not None
    assert canary.songs() == []


@pytest.mark.parametrize("birth", ["task", "timer", "thread", "callback", "callback of a job"])
async def test_what_is_born_inside_a_case_stays_fenced_after_it(birth, canary):
    older = ThreadPoolExecutor(1)
    older.submit(int).result()
    announced: list[Breach] = []
    go, gone = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def reach_at_last() -> None:
        try_to_reach(canary)
        loop.call_soon_threadsafe(gone.set)

    async def linger() -> None:
        await asyncio.sleep(0.02)
        reach_at_last()

    tasks: list[asyncio.Task[None]] = []
    with enclose("refund", announced.append) as scope:
        match birth:
            case "task":
                tasks.append(asyncio.create_task(linger()))
            case "timer":
                threading.Timer(0.02, reach_at_last).start()
            case "thread":
                threading.Thread(target=lambda: (go.wait(), reach_at_last())).start()
            case "callback of a job":
                older.submit(go.wait).add_done_callback(lambda _: reach_at_last())
            case _:
                loop.call_later(0.02, reach_at_last)
    go.set()
    await gone.wait()
    assert canary.songs() == []
    assert scope.breach is not None
    assert replace(scope.breach, of="refund") in strays()
    assert announced == []
    await asyncio.gather(*tasks)
    older.shutdown()


async def test_a_worker_born_in_a_case_works_freely_for_others_afterwards(canary):
    with ThreadPoolExecutor(1) as pool:
        with enclose("refund") as scope:
            pool.submit(try_to_reach, canary).result()
        assert scope.breach is not None
        pool.submit(reach, canary).result()
    assert canary.songs() == ["connected"]


async def test_a_job_of_a_passage_is_let_through_by_a_worker_born_in_a_case(canary):
    with ThreadPoolExecutor(1) as pool, enclose("refund") as scope:
        pool.submit(int).result()
        with opening_for():
            pool.submit(reach, canary).result()
            await asyncio.to_thread(reach, canary)
    assert scope.breach is None


async def test_work_of_no_case_is_refused_during_a_rehearsal_and_ends_no_case(canary, new_strays):
    with enclose("refund") as scope:
        in_a_bare_thread(try_to_reach, canary)
    assert [stray.route for stray in new_strays()] == ["socket.connect"]
    assert scope.breach is None
    assert canary.songs() == []


async def test_strays_are_kept_when_one_rehearsal_follows_the_other(canary, new_strays):
    for _ in range(2):
        with enclose("refund"):
            in_a_bare_thread(try_to_reach, canary)
    assert len(new_strays()) == 2


async def test_work_of_no_case_may_follow_a_model_call_in_flight_and_nothing_else(
    canary, new_strays
):
    with enclose("refund"):
        with opening_for():
            in_a_bare_thread(try_to_reach, canary)
            reach(canary)
            in_a_bare_thread(reach, canary)
            in_a_bare_thread(try_to_connect, ("127.0.0.1", canary.greeting_port))
        in_a_bare_thread(try_to_reach, canary)
        refused = [stray.target for stray in new_strays()]
    here, elsewhere = f"127.0.0.1:{canary.port}", f"127.0.0.1:{canary.greeting_port}"
    assert refused == [here, elsewhere, here]
    assert canary.songs() == ["connected", "connected"]


def try_to_connect(address: tuple[str, int]) -> None:
    with suppress(OSError):
        socket.create_connection(address).close()


async def test_work_of_no_case_does_not_follow_a_live_tool(canary, new_strays):
    with enclose("refund"), opening_for(hosts=["127.0.0.1"]):
        reach(canary)
        in_a_bare_thread(try_to_reach, canary)
        assert len(new_strays()) == 1


async def test_a_model_clients_connection_serves_many_cases_at_once(canary, new_strays):
    async with httpx.AsyncClient(trust_env=False) as client:

        async def case(number: int) -> Breach | None:
            with enclose(f"case {number}") as scope:
                for _ in range(3):
                    with opening_for():
                        await client.post(canary.url)
                    await asyncio.sleep(0)
            return scope.breach

        assert set(await asyncio.gather(*map(case, range(8)))) == {None}
        assert await case(9) is None
    assert new_strays() == ()


async def test_a_clients_reader_says_farewell_though_its_passage_is_over(canary):
    """A connection's reader keeps the context in which the connection was made."""
    context = anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)
    with enclose("refund") as scope:
        with opening_for():
            _, writer = await asyncio.open_connection("127.0.0.1", canary.tls_port, ssl=context)

            async def farewell() -> None:
                await asyncio.sleep(0.01)
                writer.write(b"farewell")
                writer.close()

            task = asyncio.create_task(farewell())
        await task
    assert scope.breach is None
    assert any("farewell" in song for song in canary.songs())
    writer.transport.abort()


async def test_listening_accepting_and_answering_are_free(canary, new_strays):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()
        await writer.wait_closed()

    with enclose("refund") as scope:
        server = await asyncio.start_server(answer, "localhost", 0, family=socket.AF_INET)
        with opening_for():
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"who is there?\n")
            assert await reader.read() == b"who is there?\n"
            writer.close()
            await writer.wait_closed()
        server.close()
        await server.wait_closed()
    assert scope.breach is None
    assert new_strays() == ()


def test_a_server_thread_of_this_process_answers_during_a_rehearsal(new_strays):
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"here I am")

        def log_message(self, format: str, *args: object) -> None: ...

    put_up()
    with LocalServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with enclose("refund"), opening_for():
            url = f"http://127.0.0.1:{server.server_port}/"
            assert httpx.get(url, trust_env=False).text == "here I am"
        server.shutdown()
        thread.join()
    assert new_strays() == ()


async def test_a_debugger_may_talk_to_its_window(canary):
    window = canary.connected()
    canary.forget()
    module = {"__name__": "_pydevd_bundle.pydevd_net_command", "sock": window}
    with enclose("refund") as scope:
        exec(compile("sock.sendall(b'paused')", "pydevd_net_command.py", "exec"), module)
    assert scope.breach is None
    assert canary.songs() == ["heard b'paused'"]


async def test_an_enclosure_inside_a_passage_is_closed(canary):
    with opening_for(), enclose("refund") as scope, pytest.raises(FenceBreach):
        reach(canary)
    assert scope.breach is not None


async def test_a_case_declared_over_holds_up_nobody_but_itself(canary):
    with enclose("refund") as scope:
        scope.close()
        contextvars.Context().run(reach, canary)
        try_to_reach(canary)
    assert canary.songs() == ["connected"]
    assert scope.breach is not None
    assert replace(scope.breach, of="refund") in strays()


async def test_an_enclosure_left_in_another_context_is_over_all_the_same(canary):
    scope = enclose("refund")
    contextvars.copy_context().run(scope.__enter__)
    scope.__exit__(None, None, None)
    reach(canary)
    assert canary.songs() == ["connected"]
