"""A server on this machine whose threads are over once it is closed."""

import socket
import sys
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any


class LocalServer(ThreadingHTTPServer):
    """Answers over HTTP until it is closed.

    A thread that still answers then would do so in the next test, and the fence of a rehearsal there would
    rightly refuse it.
    """

    daemon_threads = False
    # Many may ask at once; of the usual five in the queue, the sixth would be reset on a busy machine.
    request_queue_size = 64

    def __init__(self, *args: Any) -> None:
        self._lines: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._lines.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._lines.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        for line in tuple(self._lines):
            with suppress(OSError):  # whoever was there has hung up
                line.shutdown(socket.SHUT_RDWR)
        super().server_close()  # waits for the threads

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of those who did not wait for their answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
