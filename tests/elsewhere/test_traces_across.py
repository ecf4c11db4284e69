"""One trace from the agent that asks to the one that is asked, over a real connection."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvicorn
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from greenroom import Agent, Case, Scripted, call, evaluate, live, perform, tool
from greenroom.agents import remote
from greenroom.apps.serving.app import Server
from greenroom.apps.serving.served import ServedAgent
from greenroom.backends.a2a import a2a_agent, card_of
from greenroom.backends.registry import backend_for
from greenroom.store import Store
from greenroom.telemetry import spans


@tool
def refund(order: int) -> str:
    """Pay back."""
    return "refunded"


class Traced:
    """Middleware, and the spans that it wrote."""

    def __init__(self) -> None:
        self._sent = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._sent))
        self.middleware = [spans(provider=provider)]

    def named(self, name: str) -> Any:
        [found] = [one for one in self._sent.get_finished_spans() if one.name == name]
        return found


@contextmanager
def serving(folder: Path, traced: Traced) -> Generator[str]:
    model = Scripted(call("refund", order=7), "Done.")
    agent = Agent("desk", model=model, tools=[refund])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        served = ServedAgent(
            backend_for(agent), Store(folder), "desk", {"middleware": traced.middleware}
        )
        app = Server({"": served}, card_of(agent, f"{url}/")).app()
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield url
        server.should_exit = True
        thread.join(20)


@pytest.mark.parametrize("door", ["live", "rehearsed", "opaque"])
async def test_what_the_far_side_does_stands_below_the_call_that_asked_it(
    tmp_path: Path, door: str
):
    near, far = Traced(), Traced()
    with serving(tmp_path, far) as url:
        desk, asks = remote("desk", url), "execute_tool desk"
        options: dict[str, Any] = {"store": False, "middleware": near.middleware}
        if door == "live":
            await perform(desk, "Refund 7", **options)
        elif door == "rehearsed":
            mocks = {"desk": live(desk, hosts=[desk.address.place])}
            await evaluate(desk, Case("c", says="Refund 7", mocks=mocks), **options)
        else:
            asks = "invoke_agent"
            case = Case("c", says="Refund 7")
            await evaluate(a2a_agent(url), case, allow_opaque=True, **options)
    asking, conversation = near.named(asks), far.named("converse")
    assert conversation.parent.span_id == asking.context.span_id
    done = far.named("execute_tool refund")
    assert done.parent.span_id == far.named("invoke_agent desk").context.span_id
    assert {conversation.context.trace_id, done.context.trace_id} == {asking.context.trace_id}


async def test_who_has_no_trace_begins_one_there(tmp_path: Path):
    far = Traced()
    with serving(tmp_path, far) as url:
        await perform(remote("desk", url), "Refund 7", store=False)
    assert far.named("converse").parent is None
