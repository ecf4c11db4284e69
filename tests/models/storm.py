"""A provider with a token bucket, stormed by many cases at once; it keeps whom it refused when."""

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from time import perf_counter
from typing import Any, Literal

from greenroom import Agent, Case, Expect, Report, evaluate
from greenroom.errors import RateLimited
from greenroom.models import Model, ModelReply, ModelRequest, provider_model
from models.wire import Answer, openai, refusal

RATE, BURST, CALLS, WIDTH = 20.0, 20, 196, 64

Wording = Literal["whole", "exact"]
"""Whether `Retry-After` is told in whole seconds, as HTTP has it, or when the next call would pass."""


@dataclass
class Bucket:
    """So many calls at once, and so many more each second."""

    wording: Wording
    burst: int = BURST
    full: bool = True
    """At the first call; one that is empty refuses that call, however slow the machine is."""
    passed: int = 0
    refused: int = 0
    _tokens: float = BURST
    _at: float | None = None

    def __post_init__(self) -> None:
        self._tokens = self.burst if self.full else 0

    def answer(self) -> Answer:
        now = perf_counter()
        since = 0.0 if self._at is None else now - self._at
        self._tokens = min(self.burst, self._tokens + since * RATE)
        self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            self.passed += 1
            return openai("Hello.")
        self.refused += 1
        wait = (1 - self._tokens) / RATE
        after = str(ceil(wait)) if self.wording == "whole" else f"{wait:.3f}"
        return refusal(429, "slow down", retry_after=after)


async def _serve(
    bucket: Bucket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the requests of one connection."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(_written(bucket.answer()))
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        pass  # nobody asks any more, or the server closes
    finally:
        writer.close()


def _written(answer: Answer) -> bytes:
    content = json.dumps(answer.body).encode()
    headers = {"content-type": "application/json", "content-length": len(content)} | answer.headers
    lines = [
        f"HTTP/1.1 {answer.status} -",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


@contextmanager
def stormy(bucket: Bucket) -> Generator[str]:
    """The address of a server with this bucket, on a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def opened() -> asyncio.Server:
        return await asyncio.start_server(
            lambda reader, writer: _serve(bucket, reader, writer), "127.0.0.1", 0, backlog=256
        )

    async def closed(server: asyncio.Server) -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(opened(), loop).result()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(closed(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass
class Clocked:
    """A model with a note of when each call to it began, and when it asked for patience."""

    inner: Model
    begun: list[float] = field(default_factory=list)
    windows: list[tuple[float, float]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    async def get_ready(self) -> None:
        await self.inner.get_ready()  # pyright: ignore[reportAttributeAccessIssue]

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.begun.append(perf_counter())
        try:
            return await self.inner.respond(request, on_delta)
        except RateLimited as error:
            heard = perf_counter()
            self.windows.append((heard, heard + (error.retry_after or 0.0)))
            raise

    def impatient(self) -> list[float]:
        """The calls that began while somebody had been told that it was too early."""
        return [b for b in self.begun if any(heard < b < free for heard, free in self.windows)]


@dataclass(frozen=True)
class Storm:
    """What came of it."""

    report: Report
    bucket: Bucket
    model: Clocked
    seconds: float
    """From the first call on; loading a client takes as long as it takes."""

    @property
    def refusals(self) -> float:
        """For each call that passed."""
        return self.bucket.refused / self.bucket.passed

    @property
    def of_ideal(self) -> float:
        """How long it took, compared with how fast the bucket fills: nobody can be served faster."""
        return self.seconds / ((self.bucket.passed - self.bucket.burst) / RATE)


async def storm(
    wording: Wording = "whole",
    calls: int = CALLS,
    width: int = WIDTH,
    burst: int = BURST,
    full: bool = True,
) -> Storm:
    """So many cases of one call each, so many of them at once."""
    bucket = Bucket(wording, burst, full)
    with stormy(bucket) as url:
        model = Clocked(provider_model("openai:storm", base_url=url))
        cases = [Case(f"c{n}", "Hi", expect=Expect(contains="Hello")) for n in range(calls)]
        report = await evaluate(Agent("clerk", model=model), cases, concurrency=width, store=False)
        return Storm(report, bucket, model, perf_counter() - model.begun[0])
