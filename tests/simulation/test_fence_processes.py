"""Ways out that fork, replace or outlive the process; each runs in an interpreter of its own."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

import warm_python
from marks import heavy

# Forking a test runner with its threads is asking for trouble, so a small program is attacked.
# Its canary is a file.
PROGRAM = """
import asyncio, multiprocessing, os, pty, sys, threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from greenroom.simulation.fence import enclose

canary = Path(sys.argv[1])
attack, cases = sys.argv[2], int(sys.argv[3])
touch = ["touch", str(canary)]


def sing():
    canary.touch()


def fork():
    pid = os.fork()
    if pid == 0:
        sing()
        os._exit(0)
    os.waitpid(pid, 0)


def forkpty():
    pid, fd = os.forkpty()
    if pid == 0:
        sing()
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(fd)


def spawnv():
    os.spawnvp(os.P_WAIT, "touch", touch)


def pty_spawn():
    pty.spawn(touch, lambda fd: b"", lambda fd: b"")


def execv():
    os.execvp("touch", touch)


def process(method):
    context = multiprocessing.get_context(method)
    child = context.Process(target=sing)
    child.start()
    child.join()


def process_forked():
    process("fork")


def process_spawned():
    process("spawn")


def process_from_a_server():
    process("forkserver")


def process_pool():
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        pool.submit(sing).result()


def process_of_a_raw_thread():
    thread = threading.Thread(target=process_spawned)
    thread.start()
    thread.join()


async def case(together):
    with enclose("case") as enclosure:
        await together.wait()
        with suppress(Exception):
            globals()[attack]()
        await together.wait()
    return enclosure.breach.route if enclosure.breach else "none"


async def rehearse():
    together = asyncio.Barrier(cases)
    print(*set(await asyncio.gather(*(case(together) for _ in range(cases)))))


if __name__ == "__main__":
    asyncio.run(rehearse()) if cases else globals()[attack]()
"""

ATTACKS = {
    "fork": "os.fork",
    "forkpty": "os.forkpty",
    "spawnv": "os.fork",
    "pty_spawn": "pty.spawn",
    "execv": "os.exec",
    "process_forked": "os.fork",
    "process_spawned": "_posixsubprocess.fork_exec",
    "process_from_a_server": "_posixsubprocess.fork_exec",
    "process_pool": "concurrent.futures.process.ProcessPoolExecutor",
    "process_of_a_raw_thread": "_posixsubprocess.fork_exec",
}
ALIKE = ("forkpty", "spawnv", "process_forked", "process_from_a_server")
"""They are refused where others are, too."""


def ran(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = folder / "program.py"
    script.write_text(program)
    command = [sys.executable, str(script), *arguments]
    return warm_python.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("attack", [heavy(n) if n in ALIKE else n for n in ATTACKS])
def test_a_program_cannot_leave_itself_during_one_rehearsal_or_eight(attack: str, tmp_path: Path):
    canary = tmp_path / "canary"
    ran(tmp_path, PROGRAM, str(canary), attack, "0")
    assert canary.exists(), "the attack never worked"
    canary.unlink()

    for cases in ("1", "8"):
        closed = ran(tmp_path, PROGRAM, str(canary), attack, cases)
        assert closed.stdout.split() == [ATTACKS[attack]], closed.stderr
        assert not canary.exists()


AT_EXIT = """
import atexit, socket, sys
from contextlib import nullcontext
from greenroom.simulation.fence import enclose

port = int(sys.argv[1])


def reach():
    socket.create_connection(("127.0.0.1", port)).close()


def forgotten():
    raise AssertionError("unregistered, and called all the same")


with enclose("case") if sys.argv[2] == "closed" else nullcontext():
    atexit.register(reach)
    atexit.register(forgotten)
    atexit.unregister(forgotten)
"""


def test_what_a_case_wants_done_at_exit_is_done_inside_its_fence(tmp_path: Path, listener):
    ran(tmp_path, AT_EXIT, str(listener.getsockname()[1]), "open")
    listener.accept()[0].close()

    closed = ran(tmp_path, AT_EXIT, str(listener.getsockname()[1]), "closed")
    assert "FenceBreach" in closed.stderr
    assert "AssertionError" not in closed.stderr
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server
