"""Attacks that start a process which this one survives."""

import asyncio
import os
import shlex
import subprocess
import sys
import webbrowser

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
