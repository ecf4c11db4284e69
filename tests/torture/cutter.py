"""Passes bytes on to a server, and now and then closes right after the server has done its work.

python cutter.py SOCKET EVERY    prints its port, then, when its input ends, how often it has cut
"""

import socket
import sys
import threading
import time
from contextlib import suppress


class Cutter:
    """Passes bytes on to a server, and now and then closes right after the server has done its work."""

    def __init__(self, target: str, every: int) -> None:
        self._target = target
        self._every = every
        self._seen = 0
        self.cuts = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        print(self._listening.getsockname()[1], flush=True)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=_copy, args=(server, client), daemon=True).start()
        with suppress(OSError):
            while data := client.recv(1 << 16):
                is_last = False
                if b"commit\0" in data or b"insert into events" in data:
                    self._seen += 1
                    is_last = self._seen % self._every == 0
                if is_last:
                    # The answer goes nowhere, but the work is done.
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(data)
                    time.sleep(0.2)
                    self.cuts += 1
                    break
                server.sendall(data)
        for end in (client, server):
            end.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)


if __name__ == "__main__":
    running = Cutter(sys.argv[1], int(sys.argv[2]))
    sys.stdin.read()
    print(running.cuts)
