"""The one way out of a process that the kernel has closed in: an HTTP proxy that lets allowed hosts through."""

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import Context
from threading import Event, Thread
from typing import Final
from urllib.parse import urlsplit

from greenroom.simulation.fence import opening_for, proxied_place

PROVIDERS: Final = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
    "oauth2.googleapis.com",
    "api.mistral.ai",
    "api.groq.com",
    "api.deepseek.com",
    "api.cohere.com",
    "api.x.ai",
    "openrouter.ai",
)
"""The hosts of the usual providers of models."""
_ENDPOINTS: Final = ("_BASE_URL", "_API_BASE", "_ENDPOINT", "_HOST")
_LONGEST_HEAD: Final = 64 * 1024


def provider_hosts() -> list[str]:
    """The hosts of models: the usual providers, and those in variables such as OPENAI_BASE_URL."""
    found: list[str] = [*PROVIDERS]
    for name, value in os.environ.items():
        if name.endswith(_ENDPOINTS) and "://" in value:
            with suppress(ValueError):
                place = urlsplit(value)
                if place.hostname:
                    found.append(f"{place.hostname}:{place.port}" if place.port else place.hostname)
    return found


class Proxy:
    """Connects to allowed hosts, and notes refused ones; runs in its own thread."""

    def __init__(self, hosts: Iterable[str], note: Callable[[str], None]) -> None:
        self.hosts = frozenset(host.lower() for host in hosts)
        self.port = 0
        self._note = note
        self._ready = Event()
        self._loop = asyncio.new_event_loop()
        # It belongs to no case: it checks the hosts itself, so no fence is needed around it.
        thread = Thread(target=self._run, name="greenroom-proxy", daemon=True)
        Context().run(thread.start)
        self._ready.wait()

    def close(self) -> None:
        """End it, and all connections through it."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)

    def admits(self, host: str, port: int) -> bool:
        """Whether the host, or this port of it, is allowed."""
        return host.lower() in self.hosts or f"{host.lower()}:{port}" in self.hosts

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with opening_for():
            server = self._loop.run_until_complete(
                asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LONGEST_HEAD)
            )
            self.port = int(server.sockets[0].getsockname()[1])
            self._ready.set()
            self._loop.run_forever()
            server.close()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened = [writer]
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            first, _, rest = head.partition(b"\r\n")
            asked = proxied_place(first)
            if asked is None:
                return
            host, port = asked
            if not self.admits(host, port):
                self._refuse(writer, host, port)
                return
            there, back = await self._reach(writer, host, port)
            opened.append(back)
            method, target, _ = first.decode("latin-1").split(" ", 2)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                place = urlsplit(target)
                path = place.path or "/"
                path += f"?{place.query}" if place.query else ""
                # One request a connection: the next might be for another host.
                kept = [
                    h
                    for h in rest.split(b"\r\n")
                    if not h.lower().startswith((b"connection:", b"proxy-"))
                ]
                back.write(f"{method} {path} HTTP/1.1\r\n".encode("latin-1"))
                back.write(b"Connection: close\r\n" + b"\r\n".join(kept))
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client sees that the connection is closed
        finally:
            for one in opened:
                one.close()

    def _refuse(self, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        why = (
            f"the kernel fence refused {host}:{port}, which is not among the hosts that a model or a live tool "
            f"may reach. If it should be, name it: --fence kernel:{host}"
        )
        self._note(why)
        body = why.encode()
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _reach(
        self, writer: asyncio.StreamWriter, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_connection(host, port)
        except OSError:
            writer.write(
                b"HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            )
            raise


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_LONGEST_HEAD):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
