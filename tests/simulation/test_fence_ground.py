"""Where the fence stands, where it cannot, and what stands on it without harm."""

import asyncio
import contextvars
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
import uvloop

import warm_python
from greenroom import Case, evaluate, rehearse
from greenroom.simulation.fence import FencedExecutor, blind_spots, enclose, not_held
from marks import heavy


async def test_the_fence_holds_on_asyncios_own_loop():
    assert not_held(asyncio.get_running_loop()) == ()


def test_the_fence_does_not_hold_on_uvloop():
    loop = uvloop.new_event_loop()
    try:
        assert [reason.split()[0] for reason in not_held(loop)] == ["uvloop.Loop"]
    finally:
        loop.close()


async def test_the_fence_does_not_hold_where_sockets_were_replaced(monkeypatch):
    monkeypatch.setattr("socket.socket", threading.Thread)
    (reason,) = not_held(asyncio.get_running_loop())
    assert "socket.socket was replaced by threading" in reason


@pytest.mark.parametrize("library", ["pycurl", "duckdb", "polars", "pyodbc"])
async def test_libraries_with_sockets_of_their_own_are_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, sys)
    assert library in blind_spots()


async def test_a_library_is_named_once_however_it_was_built(monkeypatch):
    for module in ("psycopg_c", "psycopg_binary", "psycopg.pq.pq_ctypes"):
        for other in ("psycopg_c", "psycopg_binary", "psycopg.pq.pq_ctypes"):
            monkeypatch.delitem(sys.modules, other, raising=False)
        monkeypatch.setitem(sys.modules, module, sys)
        assert blind_spots().count("psycopg") == 1


async def test_a_loop_written_in_c_that_a_case_makes_is_named():
    assert "uvloop" in blind_spots()


async def test_a_library_that_a_case_loads_is_named_in_the_report(monkeypatch):
    def clerk(message: str) -> str:
        monkeypatch.setitem(sys.modules, "pycurl", sys)
        return "Hello."

    report = await evaluate(clerk, Case("hello", "Hi"))
    assert report.notes.count("the fence cannot see connections of pycurl") == 1


def test_looking_for_whoever_uses_such_a_library_loads_nothing_lazy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    class Lazy:
        @property
        def __class__(self) -> type[object]:  # pyright: ignore[reportIncompatibleMethodOverride]
            asked.append("what it is")
            return object

    shop = ModuleType("shop")
    vars(shop)["payments"] = Lazy()
    store = map(ModuleType, ["psycopg_binary", "psycopg", "greenroom.store.postgres"])
    for module in (shop, *store):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    rehearse(lambda message: "Hello.", Case("one", "Hi"), store=False)
    assert asked == []


def ran(program: str, *arguments: str, run: Callable[..., Any] = subprocess.run) -> str:
    """What a program prints in an interpreter of its own, where nothing was imported before."""
    done = run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


with_the_fence = partial(warm_python.run, modules=("greenroom.simulation.fence",))
"""Where nothing but the fence was imported before."""


TURNED_AWAY = """
import asyncio, sys

def turn_away(event, args):
    if event == "sys.addaudithook":
        raise RuntimeError

sys.addaudithook(turn_away)
from greenroom.simulation.fence import not_held
print(*not_held(asyncio.new_event_loop()))
"""


def test_the_fence_does_not_hold_where_its_hook_was_turned_away():
    assert ran(TURNED_AWAY) == "another audit hook of this process turned the fence's away"


IMPORTING = """
import socket, subprocess, sys, threading
before = socket.socket.__dict__.get("send"), threading.Thread.start, subprocess._fork_exec
sys.addaudithook(lambda event, args: event == "sys.addaudithook" and print("hooked"))
import greenroom.simulation.fence
print(before == (socket.socket.__dict__.get("send"), threading.Thread.start, subprocess._fork_exec))
"""


def test_importing_the_fence_changes_nothing():
    assert ran(IMPORTING) == "True"


PROBING = """
import sys
from greenroom.simulation.fence import enclose, strays

events = []
sys.addaudithook(lambda event, args: events.append(event))
with enclose("case") as enclosure:
    exec(sys.argv[1])
print(enclosure.breach, strays(), sys.argv[2] in events)
"""

POPEN = "subprocess.Popen"
IF_LET = "import contextlib\nwith contextlib.suppress(OSError): import {0}; {0}.{1}"
PROBES = {
    "platform.processor()": ("import platform; platform.processor()", POPEN),
    "platform.uname()": ("import platform; platform.uname().processor", POPEN),
    "platform.platform()": ("import platform; platform.platform()", "open"),
    "platform.architecture()": ("import platform; platform.architecture()", POPEN),
    "ctypes.util.find_library()": ("import ctypes.util as u; u.find_library('nothing')", POPEN),
    "distro.info()": ("import distro; distro.info(); distro.uname_info()", POPEN),
    "uuid reads the network card": ("import uuid; uuid._ifconfig_getnode()", POPEN),
    "socket.getfqdn()": ("import socket; socket.getfqdn()", "socket.gethostbyaddr"),
    "own address": (
        IF_LET.format("socket", "gethostbyname(socket.gethostname())"),
        "socket.gethostbyname",
    ),
    "syslog.syslog()": (IF_LET.format("syslog", "syslog('x')"), "syslog.syslog"),
    "SysLogHandler": (
        "import logging.handlers as h; h.SysLogHandler('/dev/log').close()",
        "socket.connect",
    ),
    "a lock between processes": (
        IF_LET.format("multiprocessing", "get_context('spawn').Lock()"),
        "open",
    ),
}


@pytest.mark.parametrize("probe", PROBES)
def test_a_harmless_probe_is_refused_and_held_against_nobody(probe):
    if probe.startswith("distro") and find_spec("distro") is None:
        pytest.skip("distro is not installed")
    program, event = PROBES[probe]
    assert ran(PROBING, program, event, run=with_the_fence) == "None () True"


async def test_pairs_of_sockets_and_databases_are_free(tmp_path):
    with enclose("refund") as scope:
        one, other = socket.socketpair()
        with one, other:
            one.sendall(b"pair")
            assert other.recv(4) == b"pair"
            one.sendmsg([b"pair"])
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.listen()
        socket.getaddrinfo("localhost", 80)
        socket.getaddrinfo("::1", 80)
        socket.getaddrinfo(None, 80)
        database = sqlite3.connect(tmp_path / "orders.db")
        database.execute("pragma journal_mode=wal")
        database.close()
        await asyncio.to_thread(int)
    assert scope.breach is None


LIBRARIES = [
    "google.adk.agents",
    "google.genai",
    "httpx",
    "opentelemetry.sdk.trace.export",
    "pydantic_ai",
    "pytest",
    "requests",
    "rich.console",
    "sqlite3",
    "uvicorn",
]


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("library", ["openai", *map(heavy, LIBRARIES)])
def test_a_library_can_be_imported_inside_a_rehearsal(library):
    if not is_installed(library):
        pytest.skip(f"{library} is not installed")
    assert ran(PROBING, f"import {library}", "import", run=with_the_fence) == "None () True"


BATCHING = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=open("/dev/null", "w"))))
with provider.get_tracer("x").start_as_current_span("y"): pass
provider.shutdown()
"""


def test_spans_are_batched_inside_a_rehearsal():
    if not is_installed("opentelemetry.sdk.trace.export"):
        pytest.skip("opentelemetry is not installed")
    assert ran(PROBING, BATCHING, "import", run=with_the_fence) == "None () True"


async def test_the_executor_of_rehearsals_runs_jobs_in_the_context_of_their_submitter():
    who = contextvars.ContextVar("who", default="nobody")
    loop = asyncio.get_running_loop()
    loop.set_default_executor(FencedExecutor(2))
    who.set("the case")
    assert await loop.run_in_executor(None, who.get) == "the case"
    jobs = [asyncio.to_thread(pow, number, 2) for number in range(20)]
    assert await asyncio.gather(*jobs) == [number**2 for number in range(20)]


async def test_the_executor_of_rehearsals_hands_over_errors_and_takes_no_job_when_shut():
    executor = FencedExecutor(1)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wrap_future(executor.submit(divmod, 1, 0))
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)


def test_the_executor_of_rehearsals_can_drop_what_was_not_begun():
    executor, go = FencedExecutor(1), threading.Event()
    began, waiting = executor.submit(go.wait, 5), executor.submit(int)
    executor.shutdown(wait=False, cancel_futures=True)
    go.set()
    assert began.result()
    assert waiting.cancelled()


HANGING = """
import asyncio, time
from greenroom.simulation.fence import FencedExecutor

async def main():
    asyncio.get_running_loop().set_default_executor(FencedExecutor())
    job = asyncio.ensure_future(asyncio.to_thread(time.sleep, 300))
    await asyncio.sleep(0.05)
    job.cancel()

asyncio.run(main())
print("ended")
"""


def test_a_job_that_hangs_keeps_nobody_from_ending():
    # The job would take longer than anybody waits for a program here.
    assert ran(HANGING, run=with_the_fence) == "ended"
