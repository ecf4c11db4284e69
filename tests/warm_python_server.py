"""The Python behind `warm_python`: imports the modules it is given, then forks for every request."""

import atexit
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import types
from pathlib import Path
from typing import Any


def next_request(requests: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """What to run, and its files with the one for the report last; None when nobody asks any more."""
    size, files, *_ = socket.recv_fds(requests, 4, 8)
    if not size:
        return None
    [left] = struct.unpack("!I", size)
    text = b""
    while len(text) < left:
        text += requests.recv(left - len(text))
    return json.loads(text), files


def serve(requests: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for every request. Returns in the forks only, with what they are to run."""
    reports: dict[int, int] = {}
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    while True:
        ready, *_ = select.select([requests, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            tell_who_ended(reports)
        if requests not in ready:
            continue
        asked = next_request(requests)
        if asked is None:
            os._exit(0)
        _, files = asked
        process = os.fork()
        if not process:
            signal.set_wakeup_fd(-1)
            for file in (woken, wakes, *reports.values()):
                os.close(file)
            requests.close()
            return asked
        reports[process] = files[-1]
        os.write(files[-1], struct.pack("!i", process))
        for file in files[:-1]:
            os.close(file)


def tell_who_ended(reports: dict[int, int]) -> None:
    while reports:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        report = reports.pop(process)
        # Whoever asked may not wait for it.
        if select.select([], [report], [], 0)[1]:
            os.write(report, struct.pack("!i", status))
        os.close(report)


def become(request: dict[str, Any], files: list[int]) -> None:
    """Take what the process would have begun with."""
    # First out of the way, for one may have the number that another is to get.
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD, 500) for file in files[:-1]]
    for file in files:
        os.close(file)
    for number, file in zip((0, 1, 2, *request["passed"]), aside, strict=True):
        os.dup2(file, number)
        os.close(file)
    if request["group"] != -1:
        os.setpgid(0, request["group"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = opened(number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def opened(number: int) -> io.TextIOWrapper:
    """One of the standard streams, as Python opens it."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    if number == 2:
        errors = "backslashreplace"
    is_unbuffered = bool(number and os.environ.get("PYTHONUNBUFFERED"))
    binary = os.fdopen(number, "wb" if number else "rb", 0 if is_unbuffered else -1)
    by_line = number == 2 or binary.isatty()
    return io.TextIOWrapper(
        binary, encoding, errors or "strict", line_buffering=by_line, write_through=is_unbuffered
    )


def run(words: list[str]) -> None:
    """As `python` does with these words."""
    option, *rest = words
    sys.orig_argv = [sys.executable, *words]
    if option == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if option == "-c":
        sys.path[0] = ""
        sys.argv = ["-c", *rest[1:]]
        code = compile(rest[0], "<string>", "exec")
    else:
        sys.path[0] = str(Path(option).resolve().parent)
        sys.argv = words
        main.__file__ = option
        code = compile(Path(option).read_bytes(), option, "exec")
    exec(code, main.__dict__)


def leave_imported() -> None:
    """Have Python not clear, as it ends, what was imported before the fork: that takes 40 ms."""
    for name, module in imported.items():
        if sys.modules.get(name) is module and name not in ("__main__", "builtins", "sys"):
            del sys.modules[name]


imported: dict[str, object] = {}

if __name__ == "__main__":
    atexit.register(leave_imported)  # before any other, so that it is called last
    for module in sys.argv[2:]:
        importlib.import_module(module)
    if "greenroom.ledger.redaction" in sys.modules:
        from greenroom.ledger.redaction.kinds import well_known

        well_known()  # every run needs these patterns, and compiling them takes 30 ms
    imported |= sys.modules
    imported[""] = imported  # what refers to itself and is frozen is never freed
    gc.freeze()  # so that forks share the pages
    request, files = serve(socket.socket(fileno=int(sys.argv[1])))
    become(request, files)
    run(request["words"])
