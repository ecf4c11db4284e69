"""The ways out of a process. Run as `egress.py TCP_PORT UDP_PORT UNIX_PATH QUEUE [RULES]`: tries each."""

import asyncio
import ctypes
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from contextvars import Context
from pathlib import Path

HOST = "127.0.0.1"


def say(sock: socket.socket, name: str) -> None:
    sock.sendall(name.encode())
    sock.close()


def plain(tcp: int, udp: int) -> None:
    say(socket.create_connection((HOST, tcp), 2), "plain")


def awaited(tcp: int, udp: int) -> None:
    async def connect() -> None:
        _, writer = await asyncio.open_connection(HOST, tcp)
        writer.write(b"awaited")
        await writer.drain()
        writer.close()

    asyncio.run(connect())


def web(tcp: int, udp: int) -> None:
    client = http.client.HTTPConnection(HOST, tcp, timeout=2)
    client.request("GET", "/web")
    client.close()


def process(tcp: int, udp: int) -> None:
    code = f"import socket; socket.create_connection(('{HOST}', {tcp}), 2).sendall(b'process')"
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)


def forked(tcp: int, udp: int) -> None:
    if (pid := os.fork()) == 0:
        with suppress(OSError):
            say(socket.create_connection((HOST, tcp), 2), "forked")
        os._exit(0)
    os.waitpid(pid, 0)


def thread(tcp: int, udp: int) -> None:
    def work() -> None:
        with suppress(OSError):
            say(socket.create_connection((HOST, tcp), 2), "thread")

    started = threading.Thread(target=work)
    Context().run(started.start)
    started.join()


def c_code(tcp: int, udp: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.socket(2, 1, 0)
    address = struct.pack("=H", 2) + struct.pack(">H", tcp) + bytes([127, 0, 0, 1]) + bytes(8)
    if libc.connect(fd, address, 16) == 0:
        libc.send(fd, b"c_code", 6, 0)
    libc.close(fd)


def bare_socket(tcp: int, udp: int) -> None:
    import _socket

    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    sock.connect((HOST, tcp))
    sock.send(b"bare_socket")
    sock.close()


def fast_open(tcp: int, udp: int) -> None:
    with socket.socket() as sock:
        sock.sendto(b"fast_open", 0x20000000, (HOST, tcp))


def datagram(tcp: int, udp: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"datagram", (HOST, udp))


def name_server(tcp: int, udp: int) -> None:
    """A question to a name server, with what is to get out in the name."""
    question = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\x0bname_server\x00\x00\x01\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((HOST, udp))
        sock.send(question)


def local_socket(tcp: int, udp: int) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"local_socket", sys.argv[3])


def hidden_socket(tcp: int, udp: int) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"hidden_socket", "\0" + sys.argv[3])


def half_a_pair(tcp: int, udp: int) -> None:
    """A pair needs no address, but each of its sockets may send to one."""
    for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        one.sendto(b"half_a_pair", sys.argv[3])


def message_queue(tcp: int, udp: int) -> None:
    message = struct.pack("@l", 1) + b"message_queue"
    ctypes.CDLL(None).msgsnd(int(sys.argv[4]), message, len(b"message_queue"), 0)


ROUTES = (
    plain,
    awaited,
    web,
    process,
    forked,
    thread,
    c_code,
    bare_socket,
    fast_open,
    datagram,
    name_server,
    local_socket,
    hidden_socket,
    half_a_pair,
    message_queue,
)


def main() -> None:
    tcp, udp = int(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 5:
        from greenroom.simulation.fence.kernel import confine

        confine(**json.loads(sys.argv[5]))
    for route in ROUTES:
        with suppress(Exception):
            route(tcp, udp)
    for one in socket.socketpair():
        one.close()  # stays free
    for path in sys.argv[6:]:
        with suppress(OSError):
            Path(path).write_text("written")


if __name__ == "__main__":
    main()
