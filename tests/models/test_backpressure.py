"""A provider's stream is read no further than someone takes its pieces."""

import asyncio
import json
from typing import Any

from greenroom import Agent, perform, step
from greenroom.agents import by
from greenroom.ledger import ModelReplied, NodeEnded
from greenroom.models import provider_model
from models.wire import openai_chunk, openai_usage

PIECES = 300
LETTERS = "x" * 64_000
"""One piece: all of them together are more than the buffers on the way will hold."""


class Provider:
    """Streams a long answer, and counts what went out."""

    sent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        writer.write(b"HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\n\r\n")
        for _ in range(PIECES):
            delta = {"role": "assistant", "content": f"{LETTERS}\n"}
            writer.write(event(openai_chunk([{"index": 0, "delta": delta}])))
            await writer.drain()
            self.sent += 1
        writer.write(event(openai_chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}])))
        writer.write(event(openai_chunk([]) | {"usage": openai_usage(20, 5)}))
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()

    async def stands_still(self) -> int:
        """How much went out when no more does."""
        before = -1
        while self.sent != before:
            before = self.sent
            await asyncio.sleep(0.4)
        return before


def event(data: Any) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


async def test_a_listener_that_takes_nothing_holds_the_provider_up():
    provider = Provider()
    held: list[int] = []

    @step
    async def slow(chunks: Any) -> int:
        count = 0
        async for _ in chunks:
            if not count:
                held.append(await provider.stands_still())
            count += 1
        return count

    async with await asyncio.start_server(provider.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        model = provider_model("openai:x", base_url=f"http://127.0.0.1:{port}/v1")
        flow = Agent("writer", model=model) >> by("line", hold=4) >> slow
        ledger = await perform(flow, "Tell me a story", store=False)
    assert held[0] < PIECES / 2
    assert provider.sent == PIECES
    assert ledger.of(NodeEnded)[-1].output == PIECES
    (reply,) = ledger.of(ModelReplied)
    assert reply.first is not None
    assert reply.first < reply.seconds
