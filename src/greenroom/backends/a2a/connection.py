"""The connection to a remote agent: JSON-RPC over HTTP, answered at once or as a stream of events.

It uses the standard library, because the base install has no other HTTP client. Redirects are not followed,
the size of answers is limited, and every request goes to the host and port that the author wrote.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

from msgspec import Struct

from greenroom.agents.cards import PROTOCOL
from greenroom.agents.remote import FarAddress, checked_url
from greenroom.backends.http import exchanged
from greenroom.errors import AgentFailed, BadAgent, Refusal
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.redaction import keep_headers

LARGEST = 10_000_000
_SHOWN = 300


class Unsent(AgentFailed):
    """The other side could not be reached, so nothing was sent to it."""


class BrokeOff(AgentFailed):
    """The other side was reached, but its answer was incomplete."""


class FarError(AgentFailed):
    """The other side answered with an error of the protocol."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Reply(Struct, frozen=True):
    """An answer in one piece."""

    status: int
    text: str


class Connection:
    """Sends requests to a remote agent."""

    def __init__(self, address: FarAddress) -> None:
        self._url = checked_url(address.url)
        self._place = address.place
        self._seconds = address.seconds
        self._headers = _given_headers(address)
        self.path = self._url.path or "/"
        """Where messages go; a card may name another path of this host."""

    @property
    def base(self) -> str:
        """The address that the author wrote."""
        return self._url.geturl()

    @property
    def shown(self) -> str:
        """The address as shown in messages to people."""
        return f"{self._url.scheme}://{self._place}{self.path}"

    async def get(self, path: str) -> Json:
        """The JSON at a path."""
        reply = await self._blocking("GET", path, b"", "application/json", None)
        return self._json(reply)

    async def ask(self, method: str, params: Json) -> Json:
        """The result of a method; FarError if the other agent answers with an error."""
        body = _request(method, params)
        reply = await self._blocking("POST", self.path, body, "application/json", None)
        return self._result(self._json(reply))

    async def follow(self, method: str, params: Json) -> AsyncIterator[Json]:
        """The results of a method as they arrive."""
        queue: asyncio.Queue[Json | None] = asyncio.Queue()
        put, body = asyncio.get_running_loop().call_soon_threadsafe, _request(method, params)

        def heard(text: str) -> None:
            put(queue.put_nowait, self._loads(text))

        async def read() -> Reply:
            try:
                return await self._blocking("POST", self.path, body, "text/event-stream", heard)
            finally:
                queue.put_nowait(None)

        reading = asyncio.ensure_future(read())
        try:
            while (event := await queue.get()) is not None:
                yield self._result(event)
            reply = await reading
            if reply.text or not 200 <= reply.status < 300:
                yield self._result(self._json(reply))
        finally:
            if not reading.done():
                reading.cancel()
            await asyncio.wait([reading])

    async def _blocking(
        self, verb: str, path: str, body: bytes, wanted: str, heard: Callable[[str], None] | None
    ) -> Reply:
        headers = {"Accept": wanted, "A2A-Version": PROTOCOL, **_trace(), **self._headers}
        if body:
            headers["Content-Type"] = "application/json"
        exchange = partial(
            self._exchange, verb=verb, path=path, body=body, headers=headers, heard=heard
        )
        return await exchanged(self._url, self._seconds, exchange)

    def _exchange(
        self,
        connection: HTTPConnection,
        verb: str,
        path: str,
        body: bytes,
        headers: dict[str, str],
        heard: Callable[[str], None] | None,
    ) -> Reply:
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Unsent(
                    f"{self.shown} could not be reached: {type(error).__name__}: {error}. Is it running?"
                ) from error
            connection.request(verb, path, body or None, headers)
            with connection.getresponse() as response:
                if heard is not None and response.headers.get_content_type() == "text/event-stream":
                    for text in _events(response):
                        heard(text)
                    return Reply(response.status, "")
                sent = response.read(LARGEST + 1)
        except (Refusal, Unsent):
            raise
        except (OSError, HTTPException) as error:
            raise BrokeOff(f"{self.shown} broke off: {type(error).__name__}: {error}.") from error
        finally:
            connection.close()
        if len(sent) > LARGEST:
            raise AgentFailed(f"{self.shown} answered with more than {LARGEST} bytes.")
        if response.length:
            raise BrokeOff(f"{self.shown} broke off, {response.length} bytes before its end.")
        return Reply(response.status, sent.decode("utf-8", errors="replace"))

    def _json(self, reply: Reply) -> Json:
        if not 200 <= reply.status < 300:
            raise AgentFailed(
                f"{self.shown} answered {reply.status}: {reply.text[:_SHOWN]!r}. Redirects are not "
                f"followed; give the address that answers."
                if 300 <= reply.status < 400
                else f"{self.shown} answered {reply.status}: {reply.text[:_SHOWN]!r}."
            )
        return self._loads(reply.text)

    def _loads(self, text: str) -> Json:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise AgentFailed(
                f"{self.shown} did not answer with JSON ({type(error).__name__}): "
                f"{text[:_SHOWN]!r}."
            ) from error

    def _result(self, answer: Json) -> Json:
        """The result in a JSON-RPC answer."""
        if not is_object(answer):
            raise AgentFailed(
                f"{self.shown} answered {repr(answer)[:_SHOWN]}, which is not a JSON-RPC answer."
            )
        error = answer.get("error")
        if error is None:
            return answer.get("result")
        code, words = (error.get("code"), error.get("message")) if is_object(error) else (0, error)
        raise FarError(
            f"{self.shown} answered with error {code!r}: {str(words)[:_SHOWN]}",
            code if isinstance(code, int) else 0,
        )


def _request(method: str, params: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def _events(response: HTTPResponse) -> Iterator[str]:
    """The data of each event in a stream of events, whose total size is limited."""
    left, lines = LARGEST, list[str]()
    while line := response.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise AgentFailed(f"the stream of events has more than {LARGEST} bytes.")
        text = line.decode("utf-8", errors="replace").rstrip("\r\n")
        if text.startswith("data:"):
            lines.append(text[5:].removeprefix(" "))
        elif not text and lines:
            yield "\n".join(lines)
            lines.clear()


def _given_headers(address: FarAddress) -> dict[str, str]:
    """The headers with the values of their environment variables, which must not get into a ledger."""
    found: dict[str, str] = {}
    for name, variable in address.headers.items():
        value = os.environ.get(variable, "")
        if not value.strip() or not value.isprintable():
            lacks = (
                "is not set" if not value.strip() else "holds characters that no header may have"
            )
            raise BadAgent(
                f"the environment variable {variable} {lacks}; {address.url} is asked with it as "
                f"{name}."
            )
        is_token = name == "Authorization" and " " not in value
        found[name] = f"Bearer {value}" if is_token else value
    keep_headers(found)
    return found


def _trace() -> dict[str, str]:
    """The trace headers of the call, if this process exports traces."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.propagate import inject

    carrier: dict[str, Any] = {}
    inject(carrier)
    return {name: carrier[name] for name in ("traceparent", "tracestate") if name in carrier}
