"""A real server in a process of its own, and requests to it by hand."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from warm_python import COMMANDS, WarmPython

AGENT = """
import asyncio

async def agent(text: str) -> str:
    await asyncio.sleep(0.01)
    number = int(text.split()[-1])
    if number % 11 == 5:
        raise ValueError("the model is overloaded")
    return "refund done" if number % 7 else "sorry, no"
"""


def cases(count: int) -> str:
    lines = ["version: 1", "id: refunds", "cases:"]
    for number in range(count):
        lines += [
            f"- id: refund-{number:03}",
            f"  tags: [{'smoke' if number % 4 == 0 else 'refund'}]",
            f"  turns: [{{says: a refund for order {number}, expect: {{contains: [refund done]}}}}]",
        ]
    return "\n".join(lines) + "\n"


def project(folder: Path, count: int) -> Path:
    (folder / "shop.py").write_text(AGENT)
    (folder / "refunds.yaml").write_text(cases(count))
    return folder


def rehearse(folder: Path, *options: str, store: str = "runs") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "greenroom", "eval", "run", "shop.py:agent", "refunds.yaml"]
    return WarmPython(
        [*command, "--store", store, *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@dataclass
class Server:
    folder: Path
    options: tuple[str, ...] = ()
    port: int = 0
    token: str = ""
    process: "subprocess.Popen[bytes] | None" = None
    store: str = "runs"

    def start(self) -> "Server":
        # Beside a store on a server, the files of this machine are in the usual folder.
        own = ".greenroom" if "://" in self.store else self.store
        note = self.folder / own / "web" / "server.json"
        note.unlink(missing_ok=True)
        command = [sys.executable, "-m", "greenroom", "web", "--store", self.store, "--no-browser"]
        said = self.folder / "web.log"
        with said.open("w") as log:
            self.process = WarmPython(
                [*command, "--port", str(self.port), *self.options],
                cwd=self.folder,
                stderr=log,
                modules=(*COMMANDS, "greenroom.apps.web.server"),
            )
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            try:
                found = json.loads(note.read_text())
                socket.create_connection(("127.0.0.1", found["port"]), 1).close()
            except (OSError, ValueError):
                if self.process.poll() is not None:
                    raise AssertionError(said.read_text()) from None
                time.sleep(0.05)
            else:
                self.port, self.token = found["port"], found["token"]
                return self
        raise AssertionError("the server did not come up")

    def stop(self, how: int = signal.SIGINT) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(600)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(
        self,
        path: str,
        method: str = "GET",
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        """The status and the JSON of an answer to a request as the page sends it."""
        given = {"Authorization": f"Bearer {self.token}"} | (headers or {})
        data = None
        if method != "GET":
            given = {"Origin": self.origin, "Content-Type": "application/json"} | given
            data = json.dumps(body or {}).encode()
        asked = Request(self.origin + path, data, given, method=method)
        try:
            with urlopen(asked, timeout=60) as answer:
                return answer.status, _read(answer.read())
        except HTTPError as error:
            with error:
                return error.code, _read(error.read())

    def get(self, path: str) -> Any:
        status, found = self.request(path)
        assert status == 200, found
        return found

    def raw(self, lines: str) -> tuple[int, str]:
        """The status and the whole answer to bytes that no browser would send."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall(lines.replace("\n", "\r\n").encode("latin-1"))
            answer = b"".join(iter(lambda: connection.recv(65_536), b"")).decode("latin-1")
        return int(answer.split(" ", 2)[1]), answer

    def events(self, query: str = "") -> Iterator[tuple[str, str, Any]]:
        """The stream: position, event, data; until the server ends it."""
        asked = Request(
            f"{self.origin}/api/stream{query}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urlopen(asked, timeout=60) as answer:
            position, event = "", ""
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    position = value
                elif name == "event":
                    event = value
                elif name == "data":
                    yield position, event, json.loads(value)
                    position = ""


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


def wait(process: "subprocess.Popen[bytes]") -> None:
    assert process.wait(600) in (0, 1, 2)


def until(is_so: Callable[[], bool], seconds: float = 600) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def kill(process: "subprocess.Popen[bytes]") -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait(600)
