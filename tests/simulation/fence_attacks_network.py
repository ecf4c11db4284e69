"""Attacks that open a connection, look up a name or send a datagram."""

import _socket
import asyncio
import ftplib
import http.client
import logging
import logging.handlers
import smtplib
import socket
import ssl
import urllib.request
import xmlrpc.client
from contextlib import suppress
from multiprocessing.connection import Client

import httpx

from greenroom.errors import FenceBreach
from simulation.fence_attacks import Attacks
from simulation.fence_canaries import NO_NAME, Canary, anonymous_tls

network = Attacks()


@network.by("socket.connect")
def connect(canary: Canary):
    sock = canary.keep(socket.socket())
    return lambda: sock.connect(canary.address)


@network.by("socket.connect")
def connect_ex(canary: Canary):
    sock = canary.keep(socket.socket())
    return lambda: sock.connect_ex(canary.address)


@network.by("socket.connect")
def connect_by_name(canary: Canary):
    sock = canary.keep(socket.socket())
    return lambda: sock.connect(("localhost", canary.port))


@network.by("socket.connect")
def create_connection(canary: Canary):
    return lambda: socket.create_connection(canary.address).close()


@network.by("socket.connect")
def the_socket_underneath(canary: Canary):
    sock = canary.keep(_socket.socket())
    return lambda: sock.connect(canary.address)


@network.by("socket.connect")
def connect_to_a_path(canary: Canary):
    sock = canary.keep(socket.socket(socket.AF_UNIX))
    return lambda: sock.connect(canary.path)


@network.by("socket.connect")
def connect_without_waiting(canary: Canary):
    sock = canary.keep(socket.socket())
    sock.setblocking(False)
    return lambda: sock.connect(canary.address)


@network.by("socket.connect")
def connect_with_tls(canary: Canary):
    sock = canary.keep(anonymous_tls(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(socket.socket()))
    return lambda: sock.connect(("127.0.0.1", canary.tls_port))


@network.by("socket.connect")
def the_loop_connects_a_socket(canary: Canary):
    sock = canary.keep(socket.socket())
    sock.setblocking(False)
    return lambda: asyncio.get_running_loop().sock_connect(sock, canary.address)


@network.by("socket.connect")
def asyncio_opens_a_connection(canary: Canary):
    async def act() -> None:
        _, writer = await asyncio.open_connection(*canary.address)
        writer.close()
        await writer.wait_closed()

    return act


@network.by("socket.connect")
def asyncio_opens_a_path(canary: Canary):
    async def act() -> None:
        _, writer = await asyncio.open_unix_connection(canary.path)
        writer.close()
        await writer.wait_closed()

    return act


@network.by("socket.connect")
def asyncio_opens_tls(canary: Canary):
    async def act() -> None:
        context = anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)
        _, writer = await asyncio.open_connection("127.0.0.1", canary.tls_port, ssl=context)
        writer.close()
        await writer.wait_closed()

    return act


@network.by("socket.connect")
def urllib_opens_a_url(canary: Canary):
    return lambda: urllib.request.urlopen(canary.url, timeout=30).close()


@network.by("socket.connect")
def http_client_requests(canary: Canary):
    connection = canary.keep(http.client.HTTPConnection(*canary.address, timeout=30))
    return lambda: connection.request("GET", "/")


@network.by("socket.connect")
def httpx_gets(canary: Canary):
    client = canary.keep(httpx.Client(trust_env=False))
    return lambda: client.get(canary.url)


@network.by("socket.connect")
def httpx_gets_asynchronously(canary: Canary):
    async def act() -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(canary.url)

    return act


@network.by("socket.connect")
def xmlrpc_calls(canary: Canary):
    def act() -> None:
        with xmlrpc.client.ServerProxy(canary.url) as proxy:
            proxy.refund(7)

    return act


@network.by("socket.connect")
def smtplib_connects(canary: Canary):
    return lambda: smtplib.SMTP("127.0.0.1", canary.greeting_port, timeout=30).close()


@network.by("socket.connect")
def ftplib_connects(canary: Canary):
    ftp = canary.keep(ftplib.FTP(timeout=30))
    return lambda: ftp.connect("127.0.0.1", canary.greeting_port)


@network.by("socket.connect")
def logging_to_a_socket(canary: Canary):
    handler = canary.keep(logging.handlers.SocketHandler(*canary.address))
    return lambda: handler.emit(logging.makeLogRecord({"msg": "order 7 was refunded"}))


@network.by("socket.connect")
def multiprocessing_connects(canary: Canary):
    return lambda: Client(canary.address).close()


@network.by("socket.sendto")
def send_a_datagram(canary: Canary):
    sock = canary.keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    return lambda: sock.sendto(b"refund", ("127.0.0.1", canary.udp_port))


@network.by("socket.sendmsg")
def send_a_datagram_as_a_message(canary: Canary):
    sock = canary.keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    return lambda: sock.sendmsg([b"refund"], [], 0, ("127.0.0.1", canary.udp_port))


@network.by("socket.connect")
def connect_for_datagrams(canary: Canary):
    sock = canary.keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def act() -> None:
        sock.connect(("127.0.0.1", canary.udp_port))
        sock.send(b"refund")

    return act


@network.by("socket.connect")
def asyncio_sends_datagrams(canary: Canary):
    async def act() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", canary.udp_port)
        )
        transport.sendto(b"refund")
        transport.close()

    return act


@network.by("socket.sendto")
def asyncio_sends_datagrams_to_anybody(canary: Canary):
    async def act() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )
        transport.sendto(b"refund", ("127.0.0.1", canary.udp_port))
        transport.close()

    return act


@network.by("socket.sendto")
def the_loop_sends_a_datagram(canary: Canary):
    sock = canary.keep(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    return lambda: loop.sock_sendto(sock, b"refund", ("127.0.0.1", canary.udp_port))


def looked_up(canary: Canary, look_up):
    """An act whose canary sings when a resolver answered, be it that there is no such name."""

    def act() -> None:
        try:
            look_up()
        except FenceBreach:
            raise
        except OSError:
            canary.sing("the resolver answered")
        else:
            canary.sing("the resolver answered")

    return act


@network.by("socket.getaddrinfo")
def look_up_a_name(canary: Canary):
    return looked_up(canary, lambda: socket.getaddrinfo(NO_NAME, 443))


@network.by("socket.gethostbyname")
def look_up_a_host(canary: Canary):
    return looked_up(canary, lambda: socket.gethostbyname(NO_NAME))  # pyright: ignore[reportArgumentType]


@network.by("socket.gethostbyname")
def look_up_a_host_and_its_aliases(canary: Canary):
    return looked_up(canary, lambda: socket.gethostbyname_ex(NO_NAME))  # pyright: ignore[reportArgumentType]


@network.by("socket.gethostbyaddr")
def look_up_the_name_of_an_address(canary: Canary):
    return looked_up(canary, lambda: socket.gethostbyaddr("127.0.0.1"))


@network.by("socket.getnameinfo")
def look_up_the_name_of_a_peer(canary: Canary):
    return looked_up(canary, lambda: socket.getnameinfo(("127.0.0.1", 443), 0))


@network.by("socket.getaddrinfo")
def the_loop_looks_up_a_name(canary: Canary):
    async def act() -> None:
        with suppress(socket.gaierror):
            await asyncio.get_running_loop().getaddrinfo(NO_NAME, 443)
        canary.sing("the resolver answered")

    return act


@network.by("socket.getnameinfo")
def the_loop_looks_up_the_name_of_a_peer(canary: Canary):
    async def act() -> None:
        await asyncio.get_running_loop().getnameinfo(("127.0.0.1", 443))
        canary.sing("the resolver answered")

    return act
