"""An agent behind an address: a server on this machine that answers from a script."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any

from local_servers import LocalServer

Answer = Callable[[dict[str, Any]], Any]
"""From what was asked to the reply: JSON, a text, (status, text), or a Torn one."""


@dataclass(frozen=True)
class Torn:
    """A text of which more was promised than is sent."""

    text: str
    promised: int
    kind: str = "text/plain"


class FarSide:
    """One server; every answer has an address of its own."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.closing = Event()
        self._answers: dict[str, Answer] = {}
        self._server: LocalServer | None = None

    def address(self, answer: Answer) -> str:
        """Where `answer` answers."""
        path = f"/{len(self._answers)}"
        self._answers[path] = answer
        return f"http://127.0.0.1:{self._started().server_address[1]}{path}"

    def close(self) -> None:
        self.closing.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def reply(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str, str, int]:
        asked = json.loads(body)
        self.asked.append(asked)
        self.headers.append(headers)
        given = self._answers[path](asked)
        if isinstance(given, Torn):
            return 200, given.kind, given.text, given.promised
        if isinstance(given, tuple):
            return given[0], "text/plain", given[1], 0
        if isinstance(given, str):
            return 200, "text/plain", given, 0
        return 200, "application/json", json.dumps(given), 0

    def _started(self) -> LocalServer:
        if self._server is None:
            far = self

            class Handler(BaseHTTPRequestHandler):
                def do_POST(self) -> None:
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                    status, kind, text, promised = far.reply(self.path, body, dict(self.headers))
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    if status == 302:
                        self.send_header("Location", "http://example.org/")
                    if promised:
                        self.send_header("Content-Length", str(promised))
                    self.end_headers()
                    self.wfile.write(text.encode())

                def log_message(self, format: str, *args: Any) -> None:
                    pass

            self._server = LocalServer(("127.0.0.1", 0), Handler)
            Thread(target=self._server.serve_forever, daemon=True).start()
        return self._server
