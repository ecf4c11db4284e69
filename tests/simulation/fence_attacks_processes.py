"""Attacks that start a process which this one survives."""

import asyncio
import os
import shlex
import subprocess
import sys
import webbrowser
from importlib import import_module
from typing import Any

from simulation.fence_attacks import Attacks
from simulation.fence_canaries import Canary

processes = Attacks()


@processes.by("subprocess.Popen")
def run(canary: Canary):
    return lambda: subprocess.run(canary.touching, check=True)


@processes.by("subprocess.Popen")
def popen(canary: Canary):
    def act() -> None:
        with subprocess.Popen(canary.touching) as process:
            process.wait()

    return act


@processes.by("subprocess.Popen")
def run_in_a_shell(canary: Canary):
    return lambda: subprocess.run(shlex.join(canary.touching), shell=True, check=True)


@processes.by("subprocess.Popen")
def check_output(canary: Canary):
    return lambda: subprocess.check_output(canary.touching)


@processes.by("subprocess.Popen")
def run_as_somebody(canary: Canary):
    return lambda: subprocess.run(canary.touching, user=os.getuid(), check=True)


@processes.by("os.system")
def system(canary: Canary):
    command = shlex.join(canary.touching)
    return lambda: os.system(command)  # pyright: ignore[reportDeprecated]


@processes.by("subprocess.Popen")
def os_popen(canary: Canary):
    command = shlex.join(canary.touching)
    return lambda: os.popen(command).close()  # pyright: ignore[reportDeprecated]


@processes.by("os.posix_spawn")
def posix_spawn(canary: Canary):
    def act() -> None:
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", shlex.join(canary.touching)], {}), 0)

    return act


@processes.by("os.posix_spawn")
def posix_spawn_by_name(canary: Canary):
    return lambda: os.waitpid(os.posix_spawnp("touch", canary.touching, os.environ), 0)


@processes.by("_posixsubprocess.fork_exec")
def a_second_copy_of_what_starts_processes(canary: Canary):
    def act() -> None:
        name = "_posixsubprocess"
        known = sys.modules.pop(name)
        try:
            again: Any = import_module(name)
        finally:
            sys.modules[name] = known
        reads, writes = os.pipe()
        command = [word.encode() for word in ("/usr/bin/env", *canary.touching)]
        nowhere = (-1,) * 6
        rest = (False, False, -1, None, None, None, -1, None, False)
        pid = again.fork_exec(
            command, command[:1], True, (writes,), None, None, *nowhere, reads, writes, *rest
        )
        os.waitpid(pid, 0)

    return act


@processes.by("subprocess.Popen")
def asyncio_starts_a_program(canary: Canary):
    async def act() -> None:
        process = await asyncio.create_subprocess_exec(*canary.touching)
        await process.wait()

    return act


@processes.by("subprocess.Popen")
def asyncio_starts_a_shell(canary: Canary):
    async def act() -> None:
        process = await asyncio.create_subprocess_shell(shlex.join(canary.touching))
        await process.wait()

    return act


@processes.by("webbrowser.open")
def a_web_browser(canary: Canary):
    program = f"import pathlib; pathlib.Path({str(canary.file)!r}).touch()"
    browser = webbrowser.GenericBrowser([sys.executable, "-c", program])
    return lambda: browser.open("http://127.0.0.1/")
