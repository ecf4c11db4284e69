"""Attacks that talk on a connection opened before the rehearsal, which raises no audit event."""

import asyncio
import http.client
import os
import socket
import ssl

import httpx

from greenroom.simulation.fence import opening_for
from simulation.fence_attacks import Attacks
from simulation.fence_canaries import Canary, anonymous_tls

connections = Attacks()

# httpx suppresses a failure to send, and waits for an answer all the same.
ANSWERED_BY = 0.1
# What is asked before the rehearsal is answered, however busy the machine is.
PATIENCE = 30


@connections.by("socket.send")
def send(canary: Canary):
    sock = canary.connected()
    return lambda: sock.send(b"refund")


@connections.by("socket.sendall")
def sendall(canary: Canary):
    sock = canary.connected()
    return lambda: sock.sendall(b"refund")


@connections.by("socket.sendmsg")
def sendmsg(canary: Canary):
    sock = canary.connected()
    return lambda: sock.sendmsg([b"refund"])


@connections.by("os.sendfile")
def sendfile(canary: Canary):
    sock = canary.connected()

    def act() -> None:
        with open(__file__, "rb") as file:  # noqa: PTH123 - sendfile takes a plain file
            sock.sendfile(file)

    return act


@connections.by("socket.send")
def write_to_a_file_of_the_socket(canary: Canary):
    file = canary.keep(canary.connected().makefile("wb", buffering=0))
    return lambda: file.write(b"refund")


@connections.by("socket.send")
def send_on_a_connected_path(canary: Canary):
    sock = canary.keep(socket.socket(socket.AF_UNIX))
    sock.connect(canary.path)
    return lambda: sock.send(b"refund")


@connections.by("socket.send")
def send_a_datagram_to_a_peer_chosen_before(canary: Canary):
    sock = canary.keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sock.connect(("127.0.0.1", canary.udp_port))
    return lambda: sock.send(b"refund")


@connections.by("socket.send")
def a_copy_of_the_socket(canary: Canary):
    sock = canary.connected()

    def act() -> None:
        with sock.dup() as copy:
            copy.send(b"refund")

    return act


@connections.by("socket.send")
def a_socket_from_a_copied_descriptor(canary: Canary):
    sock = canary.connected()

    def act() -> None:
        with socket.socket(fileno=os.dup(sock.fileno())) as copy:
            copy.send(b"refund")

    return act


def tls(canary: Canary) -> ssl.SSLSocket:
    plain = canary.connected(canary.tls_port)
    return canary.keep(anonymous_tls(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(plain))


@connections.by("ssl.send")
def send_by_tls(canary: Canary):
    sock = tls(canary)
    return lambda: sock.send(b"refund")


@connections.by("ssl.send")
def sendall_by_tls(canary: Canary):
    sock = tls(canary)
    return lambda: sock.sendall(b"refund")


@connections.by("ssl.write")
def write_by_tls(canary: Canary):
    sock = tls(canary)
    return lambda: sock.write(b"refund")  # pyright: ignore[reportDeprecated]


@connections.by("ssl.do_handshake")
def start_tls_on_a_connection(canary: Canary):
    sock = canary.connected()
    sock.settimeout(5)
    context = anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)

    def act() -> None:
        with context.wrap_socket(sock):
            pass

    return act


def abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@connections.by("socket.send", "socket.sendall", "socket.sendmsg")
async def write_to_an_asyncio_stream(canary: Canary):
    _, writer = await asyncio.open_connection(*canary.address)
    canary.closing.callback(abort, writer)

    async def act() -> None:
        writer.write(b"refund")
        await writer.drain()

    return act


@connections.by("socket.send", "socket.sendmsg")
async def write_to_an_asyncio_stream_with_tls(canary: Canary):
    context = anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)
    _, writer = await asyncio.open_connection("127.0.0.1", canary.tls_port, ssl=context)
    canary.closing.callback(abort, writer)

    async def act() -> None:
        writer.write(b"refund")
        await writer.drain()

    return act


@connections.by("socket.send")
def the_loop_sends(canary: Canary):
    sock = canary.connected()
    sock.setblocking(False)
    return lambda: asyncio.get_running_loop().sock_sendall(sock, b"refund")


@connections.by("os.sendfile")
def the_loop_sends_a_file(canary: Canary):
    sock = canary.connected()
    sock.setblocking(False)

    async def act() -> None:
        with open(__file__, "rb") as file:  # noqa: ASYNC230, PTH123 - sendfile takes a plain file
            await asyncio.get_running_loop().sock_sendfile(sock, file)

    return act


@connections.by("socket.sendall")
def http_client_reuses_its_connection(canary: Canary):
    connection = canary.keep(http.client.HTTPConnection(*canary.address, timeout=PATIENCE))
    connection.request("GET", "/")
    connection.getresponse().read()
    return lambda: connection.request("POST", "/refund")


@connections.by("socket.send", "socket.sendall")
def httpx_reuses_its_connection(canary: Canary):
    client = canary.keep(httpx.Client(trust_env=False, timeout=PATIENCE))
    client.get(canary.url)
    return lambda: client.post(canary.url, timeout=ANSWERED_BY)


@connections.by("socket.send", "socket.sendall")
def the_model_clients_connection_is_borrowed(canary: Canary):
    client = canary.keep(httpx.Client(trust_env=False, timeout=PATIENCE))
    with opening_for():
        client.get(canary.url)
    return lambda: client.post(canary.url, timeout=ANSWERED_BY)
