"""One question over HTTP, by the standard library: the base install has no client of its own.

`http.client` blocks, so it works in a thread; closing its socket ends a question that was cut.
Redirects are not followed: they would lead past the one place the fence is open to.
"""

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import SplitResult, parse_qsl, urlsplit

from greenroom.errors import AgentFailed, BadAgent, Refusal
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import keep_fields, keep_headers, keep_secret
from greenroom.world.threads import in_thread

_LARGEST = 10_000_000
_SHOWN = 300


class Endpoint:
    """An address that takes JSON and gives JSON or text."""

    __slots__ = ("_url", "headers", "timeout")

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self._url = _checked(url)
        self.headers = dict(headers)
        keep_headers(self.headers)
        keep_secret("url_password", self._url.password or "")
        for name, value in parse_qsl(self._url.query):
            keep_fields(name, value)
        self.timeout = timeout

    @property
    def place(self) -> str:
        """Host and port."""
        host, url = self._url.hostname or "", self._url
        port = url.port or (443 if url.scheme == "https" else 80)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def shown(self) -> str:
        """The address without user, password and query, which may hold secrets."""
        return f"{self._url.scheme}://{self.place}{self._url.path}"

    async def ask(self, body: Json) -> Json:
        """The reply to `body`; AgentFailed says what became of it otherwise."""
        connection = self._connection()
        try:
            return await in_thread(self._asked, connection, json.dumps(body).encode())
        except asyncio.CancelledError:
            _hang_up(connection)
            raise

    def _connection(self) -> HTTPConnection:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=self.timeout)

    def _asked(self, connection: HTTPConnection, body: bytes) -> Json:
        try:
            connection.request("POST", self._target(), body, self._headers())
            with connection.getresponse() as response:
                text = self._whole(response).decode("utf-8", errors="replace")
        except Refusal:
            raise
        except TimeoutError as error:
            raise AgentFailed(
                f"{self.shown} gave no answer within {self.timeout:g} s. Give http_agent(timeout=…)."
            ) from error
        except (OSError, HTTPException) as error:
            raise AgentFailed(
                f"{self.shown} could not be asked: {type(error).__name__}: {error}. Is it running?"
            ) from error
        finally:
            connection.close()
        return self._reply(response.status, response.headers.get_content_type(), text)

    def _whole(self, response: HTTPResponse) -> bytes:
        """All that was sent; a part of an answer is none."""
        sent = response.read(_LARGEST + 1)
        if len(sent) > _LARGEST:
            raise AgentFailed(f"{self.shown} answered with more than {_LARGEST} bytes.")
        if response.length:
            raise AgentFailed(f"{self.shown} broke off, {response.length} bytes before its end.")
        return sent

    def _target(self) -> str:
        query = f"?{self._url.query}" if self._url.query else ""
        return f"{self._url.path or '/'}{query}"

    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", "Accept": "application/json", **self.headers}

    def _reply(self, status: int, kind: str, text: str) -> Json:
        if not 200 <= status < 300:
            raise AgentFailed(f"{self.shown} answered {status}: {text[:_SHOWN]!r}.")
        if not kind.endswith("json"):
            return text
        try:
            return json.loads(text)
        except ValueError as error:
            raise AgentFailed(
                f"{self.shown} answered with torn JSON ({error}): {text[:_SHOWN]!r}."
            ) from error


def _checked(url: str) -> SplitResult:
    parts = urlsplit(url)
    try:
        port_is_known = parts.port is None or parts.port > 0
    except ValueError:
        port_is_known = False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_known:
        raise BadAgent(f"{url!r} is no address of an agent; write it like 'http://host:8000/chat'.")
    return parts


def _hang_up(connection: HTTPConnection) -> None:
    sock: socket.socket | None = connection.sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
