"""Canaries for attacks on the fence: sockets that hear whoever reaches them, and a file to touch."""

import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from greenroom.simulation.fence import put_up

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
GREETING = b"220 ready\r\n"

# A name with a label too long for DNS: every resolver turns it down without asking the network.
NO_NAME = b"x" * 70 + b".invalid"


def anonymous_tls(side: int) -> ssl.SSLContext:
    """TLS without certificates, which tests would have to carry around."""
    context = ssl.SSLContext(side)
    if side == ssl.PROTOCOL_TLS_CLIENT:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ADH:AECDH:@SECLEVEL=0")
    return context


def _exhaust(on_ready: Callable[[socket.socket], object], server: socket.socket) -> None:
    # All who knock are let in at once, so that none is still waiting when a later one is heard.
    with suppress(BlockingIOError):
        while True:
            on_ready(server)


class Canary:
    """Listens on loopback (TCP, TLS, with a greeting, UDP, a path) and sings when it is reached."""

    def __init__(self, folder: Path) -> None:
        # The canary answers on connections that it accepted, which the fence has to know about.
        put_up()
        self.file = folder / "touched"
        self.path = str(folder / "socket")
        self.closing = ExitStack()
        self._songs: list[str] = []
        self._own_ports: set[int] = set()
        self._heard_us = threading.Event()
        self._selector = self.closing.enter_context(selectors.DefaultSelector())
        self.port = self._listen(self._accept)
        self.tls_port = self._listen(self._accept_tls)
        self.greeting_port = self._listen(self._accept_and_greet)
        self._listen(self._accept, self.path)
        self.udp_port = self._listen_for_datagrams()
        self._bell, self._ear = map(self.keep, socket.socketpair())
        self._selector.register(self._ear, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def touching(self) -> list[str]:
        """A command that makes this canary sing."""
        return ["touch", str(self.file)]

    def keep(self, resource: Any) -> Any:
        """Close this resource when the canary's time is over."""
        self.closing.callback(resource.close)
        return resource

    def sing(self, why: str) -> None:
        self._songs.append(why)

    def songs(self) -> list[str]:
        """What has been heard up to now, and nothing that is still under way."""
        self._settle()
        return [*self._songs, *(["touched"] if self.file.exists() else [])]

    def forget(self) -> None:
        """Count what has been heard up to now as preparation."""
        self._settle()
        self._songs.clear()

    def close(self) -> None:
        self._bell.send(b"!")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # pyright: ignore[reportAttributeAccessIssue]
        self.closing.close()

    def connected(self, port: int | None = None) -> socket.socket:
        """A connection to this canary, opened here and now."""
        return self.keep(socket.create_connection(("127.0.0.1", port or self.port)))

    def _listen(self, on_ready: Callable[[socket.socket], object], path: str | None = None) -> int:
        family = socket.AF_UNIX if path else socket.AF_INET
        server = socket.socket(family, socket.SOCK_STREAM)
        server.bind(path or ("127.0.0.1", 0))
        server.listen(64)
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ, partial(_exhaust, on_ready))
        return 0 if path else server.getsockname()[1]

    def _listen_for_datagrams(self) -> int:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
        self._selector.register(server, selectors.EVENT_READ, self._receive)
        return server.getsockname()[1]

    def _live(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                key.data(key.fileobj)

    def _accept(self, server: socket.socket) -> socket.socket:
        connection, peer = server.accept()
        if not (isinstance(peer, tuple) and peer[1] in self._own_ports):
            self.sing("connected")
        self._selector.register(connection, selectors.EVENT_READ, self._read)
        return connection

    def _accept_and_greet(self, server: socket.socket) -> None:
        connection = self._accept(server)
        with suppress(OSError):
            connection.send(GREETING)

    def _accept_tls(self, server: socket.socket) -> None:
        connection, _ = server.accept()
        self.sing("connected")
        connection.settimeout(2)
        with suppress(OSError):
            tls = anonymous_tls(ssl.PROTOCOL_TLS_SERVER).wrap_socket(connection, server_side=True)
            self._selector.register(tls, selectors.EVENT_READ, self._read)

    def _read(self, connection: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            data = connection.recv(65536)
        if data == b"it is us":
            self._heard_us.set()
        elif data:
            self.sing(f"heard {data!r}")
            with suppress(OSError):
                connection.send(ANSWER)
        if not data:
            self._selector.unregister(connection)
            connection.close()

    def _receive(self, server: socket.socket) -> None:
        self.sing(f"received {server.recv(65536)!r}")

    def _settle(self) -> None:
        # What reached the kernel before us is ready before us, so it is dealt with before us.
        with socket.socket() as us:
            us.bind(("127.0.0.1", 0))
            self._own_ports.add(us.getsockname()[1])
            us.connect(self.address)
            self._heard_us.clear()
            us.send(b"it is us")
            assert self._heard_us.wait(10)
