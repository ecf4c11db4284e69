"""Servers as processes of their own, which can be killed and started again."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Served:
    """A process that listens; waited for until it does."""

    def __init__(self, command: Sequence[str], port: int, **options: Any) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._command, self._port, self._options = command, port, options
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self._options
        )
        until = time.monotonic() + 600
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        self.process.kill()
        said: Any = self.process.communicate()[0]
        raise AssertionError(f"{self._command} does not listen: {said}")

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=600)
        if self.process.stdout:
            self.process.stdout.close()


def sdk_agent(log: Path, kind: str = "streaming") -> Served:
    port = free_port()
    script = str(Path(__file__).with_name("sdk_agent.py"))
    return Served([sys.executable, script, str(port), str(log), kind], port)


def our_agent(folder: Path, *options: str, env: dict[str, str] | None = None) -> Served:
    """`greenroom serve` in a folder, where its store and its log are."""
    port = free_port()
    agent = str(Path(__file__).with_name("served_agent.py"))
    command = [sys.executable, "-m", "greenroom", "serve", f"{agent}:agent", "--port", str(port)]
    return Served(
        [*command, "--store", "kept", *options], port, cwd=folder, env={**os.environ, **(env or {})}
    )
