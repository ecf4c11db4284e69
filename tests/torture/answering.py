"""The models of a rehearsal in another process: they answer over a socket, and count who asks."""

import json
import random
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

Question = tuple[str, str, str]
"""Of which case, who asks, and a mark of all that was said before."""


class Answering:
    """A server on this machine; `log` holds each question with the number of the process it is of."""

    def __init__(self, seed: int = 1) -> None:
        self.log: list[tuple[int, Question]] = []
        self._lock = threading.Lock()
        self._alarm: Callable[[], None] = lambda: None
        self._rings_at = 0
        self._patience = random.Random(seed)
        answering = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                line = self.rfile.readline()
                if line.endswith(b"\n"):
                    self.wfile.write(json.dumps(answering.answer(json.loads(line))).encode())

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Whoever asked is dead; that is what this is about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def ring_after(self, calls: int, alarm: Callable[[], None]) -> None:
        """Call `alarm` at the question after so many others from now."""
        with self._lock:
            self._alarm, self._rings_at = alarm, len(self.log) + calls

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A model's answer, after a moment."""
        with self._lock:
            self.log.append((asked["process"], (asked["case"], asked["who"], asked["mark"])))
            rings = len(self.log) == self._rings_at
            pause = self._patience.uniform(0, 0.004)
        if rings:
            self._alarm()
        time.sleep(pause)
        return answer_of(asked["case"], asked["who"], asked["n"])

    def counted(self) -> Counter[Question]:
        """How often each question was asked."""
        return Counter(question for _, question in self.log)


def answer_of(case: str, who: str, n: int) -> dict[str, Any]:
    """What a model says: the clerk looks, asks and then speaks, the others only speak."""
    match who, n % 3:
        case "clerk", 0:
            return {"calls": [["look", {"key": f"k{n}"}], ["note", {"text": f"t{n}"}]]}
        case "clerk", 1:
            return {"calls": [["ask", {"question": f"[{case}] q{n}?"}]]}
        case "clerk", _:
            return {"text": f"[{case}] answer {n}"}
        case "patient", 1:
            return {"text": "BYE"}
        case (("patient" | "helper"), _):
            return {"text": f"[{case}] says {who} {n}"}
        case _:
            return {"text": json.dumps({"reasoning": "so", "verdict": True})}
