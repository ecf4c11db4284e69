"""Python processes that have imported already what they need, so that a test does not wait for it.

One Python imports the modules once and waits; for every command it forks. What runs the command is a
process like any other, with an id, files, signals and an exit code of its own. Only what Python does
before its first line is not repeated: a test about imports, or about the variables that Python reads as
it begins, starts a Python of its own.
"""

import atexit
import json
import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from threading import Lock
from typing import Any

COMMANDS = (
    "greenroom.apps.cli.conclusion",
    "greenroom.apps.cli.evaluation",
    "greenroom.apps.cli.runs",
    "greenroom.backends.function",
    "greenroom.cases.from_runs",
    "greenroom.reports.json",
    "greenroom.simulation.recorded.replay",
    "greenroom.store.writer",
    "greenroom.suite.checks.contracts",
    "greenroom.suite.storage.opened_runs",
    "greenroom.suite.storage.stored_run",
    "greenroom.suite.workers.local",
    "greenroom.suite.workers.worker",
    "greenroom.world.middleware.stack",
    "pydantic",
    "pytest",
    "yaml",
    # Each of these is loaded to check an agent, or to find out which shape a file has.
    *(point.module for point in entry_points(group="greenroom.checks")),
    *(point.module for point in entry_points(group="greenroom.shapes")),
)
"""The modules that the common commands need."""


class _Waiting:
    """The Python that has imported these modules and forks for every request."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self._requests, theirs = socket.socketpair()
        self._lock = Lock()
        server = Path(__file__).with_name("warm_python_server.py")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(server), str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a test run that is interrupted ends it itself
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._requests.close()
        self._process.wait()

    def fork(self, request: dict[str, Any], files: Sequence[int]) -> None:
        """Have a process run this; its id and its status are written to the last of the files."""
        text = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._requests, [struct.pack("!I", len(text))], files)
            self._requests.sendall(text)


_waiting = cache(_Waiting)


class WarmPython(subprocess.Popen[Any]):
    """`subprocess.Popen` for a command that begins with `sys.executable`, or with a Python script.

    `modules` are what is imported beforehand.
    """

    # How a process is begun and waited for has no public seam; all else of Popen is as it is.

    def __init__(
        self, command: Sequence[str | Path], *, modules: tuple[str, ...] = COMMANDS, **options: Any
    ) -> None:
        self._server = _waiting(modules)
        super().__init__([str(word) for word in command], **options)

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        passed, cwd, env = rest[3:6]
        ends = rest[9:15]
        stdin, _, _, stdout, _, stderr = ends
        request = {
            "words": args[1:] if Path(args[0]).name.startswith("python") else args,
            "cwd": os.fspath(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "passed": [*passed],
            "group": rest[21],
        }
        reads, writes = os.pipe()
        self._report = os.fdopen(reads, "rb", buffering=0)
        files = [place if end == -1 else end for place, end in enumerate((stdin, stdout, stderr))]
        self._server.fork(request, [*files, *passed, writes])
        os.close(writes)
        self._close_pipe_fds(*ends)  # pyright: ignore[reportAttributeAccessIssue]
        self.pid = _number(self._report.read(4))
        self._child_created = True

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self.returncode is None and self._try_wait(os.WNOHANG)[0]:
            self._handle_exitstatus(self._status)  # pyright: ignore[reportAttributeAccessIssue]
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if flags and not select.select([self._report], [], [], 0)[0]:
            return 0, 0
        self._status = _number(self._report.read(4))
        self._report.close()
        return self.pid, self._status


def _number(read: bytes) -> int:
    assert read, "the Python that forks has ended"
    return struct.unpack("!i", read)[0]


def run(
    command: Sequence[str | Path],
    *,
    input: str | None = None,
    check: bool = False,
    capture_output: bool = False,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """`subprocess.run` for the same commands."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options["stdout"] = options["stderr"] = subprocess.PIPE
    with WarmPython(command, **options) as process:
        out, err = process.communicate(input)
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
