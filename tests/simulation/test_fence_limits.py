"""What the fence cannot hold. Each test documents a leak: the canary sings inside an enclosure.

A test that fails here is good news: strike the leak from the fence's docstring, and make an attack
of it.
"""

import _socket
import asyncio
import contextvars
import ctypes
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import uvloop

from greenroom.simulation.fence import blind_spots, enclose, opening_for
from greenroom.simulation.fence.scope import scope_var
from simulation.fence_canaries import Canary


@pytest.fixture
def canary(tmp_path):
    canary = Canary(tmp_path)
    yield canary
    canary.close()


def reach(canary: Canary) -> None:
    socket.create_connection(canary.address).close()


def test_ctypes_connects_without_asking_python(canary):
    class Address(ctypes.Structure):
        _fields_ = (
            ("family", ctypes.c_uint16),
            ("port", ctypes.c_uint16),
            ("host", ctypes.c_uint8 * 4),
            ("padding", ctypes.c_uint8 * 8),
        )

    libc = ctypes.CDLL(None)
    address = Address(socket.AF_INET, socket.htons(canary.port), (127, 0, 0, 1))
    with enclose("refund") as scope:
        fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        assert libc.connect(fd, ctypes.byref(address), ctypes.sizeof(address)) == 0
        os.close(fd)
    assert scope.breach is None
    assert canary.songs() == ["connected"]


def test_uvloop_sends_on_an_older_connection_without_asking_python(canary):
    async def case() -> None:
        _, writer = await asyncio.open_connection(*canary.address)
        canary.forget()
        with enclose("refund") as scope:
            writer.write(b"uvloop")
            writer.close()
            await writer.wait_closed()
        assert scope.breach is None

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(case())
    assert canary.songs() == ["heard b'uvloop'"]


def test_a_c_library_connects_without_asking_python(canary):
    grpc = pytest.importorskip("grpc")
    with enclose("refund") as scope:
        with grpc.insecure_channel(f"127.0.0.1:{canary.port}") as channel:
            ready = grpc.channel_ready_future(channel)
            with pytest.raises(grpc.FutureTimeoutError):
                ready.result(timeout=1)
        assert "grpc" in blind_spots()
    assert scope.breach is None
    assert "connected" in canary.songs()


def test_an_interpreter_that_works_in_an_older_thread_is_not_fenced(canary, tmp_path):
    name = "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"
    interpreters = pytest.importorskip(name)
    other, ready, go = interpreters.create(), tmp_path / "ready", tmp_path / "go"
    program = f"""
import os, socket, time
open({str(ready)!r}, "w").close()
while not os.path.exists({str(go)!r}):
    time.sleep(0.01)
socket.create_connection(("127.0.0.1", {canary.port})).close()
"""
    thread = threading.Thread(target=interpreters.run_string, args=(other, program))
    thread.start()
    while not ready.exists():
        time.sleep(0.01)
    with enclose("refund") as scope:
        go.touch()
        thread.join()
    interpreters.destroy(other)
    assert scope.breach is None
    assert canary.songs() == ["connected"]


def test_os_write_talks_on_the_bare_descriptor_of_an_older_connection(canary):
    sock = canary.connected()
    canary.forget()
    with enclose("refund") as scope:
        os.write(sock.fileno(), b"os.write")
    assert scope.breach is None
    assert canary.songs() == ["heard b'os.write'"]


def test_the_socket_underneath_talks_on_an_older_connection(canary):
    sock = canary.connected()
    canary.forget()
    with enclose("refund") as scope:
        _socket.socket.send(sock, b"refund")
    assert scope.breach is None
    assert canary.songs() == ["heard b'refund'"]


def test_a_process_started_earlier_is_fed_through_a_pipe(canary):
    program = f"import pathlib; input(); pathlib.Path({str(canary.file)!r}).touch()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        with enclose("refund") as scope:
            process.communicate(b"refund\n")
        assert scope.breach is None
    assert canary.songs() == ["touched"]


def test_an_older_thread_fed_by_a_queue_lends_its_passage(canary):
    jobs: queue.Queue = queue.Queue()

    def work() -> None:
        with opening_for():
            jobs.get()()
        jobs.task_done()

    threading.Thread(target=work).start()
    with enclose("refund") as scope:
        jobs.put(lambda: reach(canary))
        jobs.join()
    assert scope.breach is None
    assert canary.songs() == ["connected"]


def test_a_signal_handler_left_behind_acts_when_the_rehearsal_is_over(canary):
    with enclose("refund") as scope:
        before = signal.signal(signal.SIGUSR1, lambda *_: reach(canary))
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)
    assert scope.breach is None
    assert canary.songs() == ["connected"]


def test_an_emptied_context_acts_when_the_rehearsal_is_over(canary):
    with enclose("refund") as scope:
        thread = threading.Timer(0.05, reach, [canary])
        contextvars.Context().run(thread.start)
    thread.join()
    assert scope.breach is None
    assert canary.songs() == ["connected"]


def test_code_that_sets_our_own_variable_opens_the_fence(canary):
    with enclose("refund") as scope:
        way_out = opening_for()
        way_out.__enter__()
        assert scope_var.get() is way_out
        reach(canary)
        way_out.__exit__(None, None, None)
    assert scope.breach is None
    assert canary.songs() == ["connected"]
