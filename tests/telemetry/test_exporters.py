"""Spans on their way to a real collector while a rehearsal is open."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import warm_python
from greenroom import Agent, Case, Scripted, Turn, call, rehearse, simulate, step, tool
from greenroom.ledger import RunEnded
from greenroom.telemetry import FencedExporter, spans
from telemetry.collector import Collector, collecting


@tool
def look(order: int) -> str:
    """Look an order up."""
    raise AssertionError("mocked")


def batches(exporter: Any) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=20))
    return provider


async def converse(provider: TracerProvider, mock: Any) -> Any:
    """A case of several turns, in each of which the mock is asked."""
    replies: list[Any] = []
    for _ in range(3):
        replies += [call("look", order=1), "Seen."]
    agent = Agent("clerk", model=Scripted(*replies), tools=[look])
    case = Case("c", turns=[Turn("Look.")] * 3, mocks={"look": mock})
    ledger = await simulate(case, agent, middleware=[spans(provider=provider)])
    assert isinstance(ledger.last, RunEnded)
    return ledger.last


def until(is_there: Callable[[], bool], seconds: float = 1.0) -> bool:
    """Whether something comes to be while the case is still running."""
    end = time.monotonic() + seconds
    while not is_there() and time.monotonic() < end:
        time.sleep(0.01)
    return is_there()


def test_every_batch_arrives_while_the_case_runs() -> None:
    with collecting() as collector:
        provider = batches(FencedExporter(OTLPSpanExporter(f"{collector.endpoint}/v1/traces")))
        arrived: list[bool] = []

        def mock(order: int) -> str:
            # The question that led here is over, so its span is due.
            arrived.append(until(lambda: len(collector.names()) > 2 * len(arrived), 600))
            return "lost"

        end = asyncio.run(converse(provider, mock))
        assert end.reason == "completed", end.error
        assert arrived == [True] * 3
        provider.force_flush()
        assert sorted(collector.names()) == sorted(
            [
                *(["chat scripted"] * 6),
                *(["execute_tool look"] * 3),
                *(["invoke_agent clerk"] * 3),
                "rehearse c",
            ]
        )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_bare_exporter_is_refused_and_its_batch_is_lost() -> None:
    with collecting() as collector:
        provider = batches(OTLPSpanExporter(f"{collector.endpoint}/v1/traces", timeout=0.5))
        arrived: list[bool] = []

        def mock(order: int) -> str:
            arrived.append(until(lambda: bool(collector.names()), 0.3))
            return "lost"

        asyncio.run(converse(provider, mock))
        assert arrived == [False] * 3


def test_a_bare_exporter_is_named_in_a_warning() -> None:
    provider = batches(OTLPSpanExporter("http://127.0.0.1:9/v1/traces"))
    with pytest.warns(UserWarning, match=r"OTLPSpanExporter .*FencedExporter"):
        spans(provider=provider)
    provider.shutdown()


def test_the_collector_is_not_open_to_the_agent() -> None:
    with collecting() as collector:
        provider = batches(FencedExporter(OTLPSpanExporter(f"{collector.endpoint}/v1/traces")))

        def mock(order: int) -> str:
            until(lambda: bool(collector.names()), 600)
            for _ in range(50):
                socket.create_connection(("127.0.0.1", collector.port), timeout=1).close()
                time.sleep(0.002)
            return "reached"

        end = asyncio.run(converse(provider, mock))
        assert (end.reason, end.error_type) == ("error", "FenceBreach")


AGENT = """
from greenroom import Agent, Scripted
clerk = Agent("clerk", model=Scripted("Done."))
"""
CASES = "version: 1\ncases:\n  - {id: hello, says: Hi, expect: {contains: Done}}\n"


def greenroom(folder: Path, *args: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "greenroom.apps.cli", *args]
    known = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    return warm_python.run(
        command,
        cwd=folder,
        env={**known, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    return tmp_path


@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_the_command_line_sends_to_where_the_environment_says(
    shop: Path, workers: tuple[str, ...]
) -> None:
    with collecting() as collector:
        done = greenroom(
            shop,
            *("eval", "run", "shop.py:clerk", "cases.yaml", "--middleware"),
            *("greenroom.telemetry:spans", "-f", "json", "-o", "told.json", "--store", "runs"),
            *workers,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
            OTEL_SERVICE_NAME="shop",
            GREENROOM_TRACE_LINK="https://traces.example/{trace_id}",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(collector.names()) == [
            *("chat scripted", "evaluate hello", "invoke_agent clerk", "rehearse hello"),
        ]
        assert _service(collector) == {"shop"}
        assert "greenroom.case.duration" in collector.metric_names()
        told = (shop / "told.json").read_text()
        assert "https://traces.example/" in told
        assert _runs(collector) == {json.loads(told)["id"]}


def test_telemetry_is_switched_on_by_a_flag(shop: Path) -> None:
    with collecting() as collector:
        flags = ("--telemetry", "otlp", "-f", "json", "-o", "told.json")
        done = greenroom(
            shop,
            *("eval", "run", "shop.py:clerk", "cases.yaml", *flags),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "rehearse hello" in collector.names()
        assert "greenroom.case.duration" in collector.metric_names()
        done = greenroom(
            shop,
            *("perform", "shop.py:clerk", "-m", "Hi", "--telemetry", "otlp"),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
            OTEL_METRICS_EXPORTER="none",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "converse" in collector.names()


def test_spans_on_the_terminal_are_not_among_what_a_command_prints(shop: Path) -> None:
    done = greenroom(
        shop, "eval", "run", "shop.py:clerk", "cases.yaml", "--json", "--telemetry", "console"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)
    assert '"name": "rehearse hello"' in done.stderr


@pytest.mark.parametrize("variable", ["PROTOCOL", "TRACES_PROTOCOL"])
def test_another_protocol_is_refused_with_what_to_set(shop: Path, variable: str) -> None:
    done = greenroom(
        shop,
        *("eval", "run", "shop.py:clerk", "cases.yaml", "--telemetry", "otlp"),
        **{f"OTEL_EXPORTER_OTLP_{variable}": "grpc"},
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Set it to http/protobuf" in " ".join(done.stderr.split())


def test_a_switched_off_sdk_sends_nothing(shop: Path) -> None:
    with collecting() as collector:
        done = greenroom(
            shop,
            *("eval", "run", "shop.py:clerk", "cases.yaml"),
            *("--middleware", "greenroom.telemetry:spans"),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
            OTEL_SDK_DISABLED="true",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert collector.names() == []


def _runs(collector: Collector) -> set[str]:
    return {
        attribute.value.string_value
        for request in collector.traces
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        for attribute in span.attributes
        if attribute.key == "greenroom.run.id"
    }


def _service(collector: Collector) -> set[str]:
    return {
        attribute.value.string_value
        for request in collector.traces
        for resource in request.resource_spans
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    }


KEY = "sk-live-1234567890abcdefghij"


def test_secrets_leave_in_no_span_whoever_wrote_it() -> None:
    sent = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FencedExporter(sent)))

    @step
    def leak(input: str) -> str:
        with provider.get_tracer("framework").start_as_current_span(f"with {KEY}") as span:
            span.set_attribute("framework.args", json.dumps({"password": "hunter22", "order": 7}))
            span.set_attribute("framework.keys", ["fine", KEY])
            span.add_event("asked", {"key": KEY})
            span.set_status(StatusCode.ERROR, f"{KEY} is not valid")
        return f"Your key is {KEY}."

    agent = leak >> Agent("clerk", model=Scripted(f"I know {KEY}."))
    middleware = [spans(provider=provider, content=True)]
    rehearse(
        agent, [Case(f"case {KEY}", says=f"My key is {KEY}")], middleware=middleware, store=False
    )
    told = "".join(span.to_json() for span in sent.get_finished_spans())
    assert KEY not in told
    assert "hunter22" not in told
    for kept in ('\\"order\\": 7', "fine", "I know [redacted:api_key]", "is not valid"):
        assert kept in told
    [theirs] = [span for span in sent.get_finished_spans() if span.name.startswith("with")]
    [ours] = [span for span in sent.get_finished_spans() if span.name == "invoke_agent leak-clerk"]
    assert (theirs.name, theirs.status.status_code) == ("with [redacted:api_key]", StatusCode.ERROR)
    assert theirs.parent is not None
    assert ours.context is not None
    assert theirs.parent.trace_id == ours.context.trace_id
    assert theirs.start_time
    assert theirs.end_time


def test_half_a_letter_in_a_span_costs_no_batch() -> None:
    sent = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FencedExporter(sent)))
    with provider.get_tracer("t").start_as_current_span("execute_tool re\ud800fund") as span:
        span.set_attributes({"said": "half \ud800", "count": 7, "all": ("a", "b")})
    [found] = sent.get_finished_spans()
    assert found.name == "execute_tool re?fund"
    assert found.attributes == {"said": "half ?", "count": 7, "all": ["a", "b"]}
    encode_spans([found])


def test_what_holds_no_secret_is_sent_as_it_is() -> None:
    sent: list[Any] = []

    class Keeps(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            sent.extend(spans)
            return SpanExportResult.SUCCESS

    with TracerProvider().get_tracer("t").start_as_current_span("harmless") as span:
        span.set_attribute("words", "nothing to hide")
    FencedExporter(Keeps()).export([span])  # pyright: ignore[reportArgumentType]
    assert sent == [span]


def test_a_collector_that_does_not_answer_holds_a_run_up_once() -> None:
    program = """
import greenroom.telemetry.providers as providers
from greenroom import Agent, Case, Scripted, rehearse
from greenroom.telemetry import otlp

providers._SECONDS = 0.7
middleware = [otlp()]
for _ in range(3):
    agent = Agent("clerk", model=Scripted("Hi."))
    report = rehearse(agent, [Case("c", says="Hi")], middleware=middleware, store=False)
    print(report.notes, len(report.results))
"""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        silent.setblocking(False)
        here = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = warm_python.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": here},
            capture_output=True,
            text=True,
            check=False,
        )
        asked = 0
        with suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                asked += 1
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[] 1\n" * 3, done.stderr
    # Spans and metrics, at the end of the first run and of the process; a slow machine may need one more.
    assert 2 <= asked <= 5


def test_a_secret_that_is_a_common_word_leaves_the_conventions_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.greenroom]\nredact_env = ["A", "B", "C"]\n')
    monkeypatch.chdir(tmp_path)
    for name, word in {"A": "user", "B": "chat", "C": "mock"}.items():
        monkeypatch.setenv(name, word)
    sent = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FencedExporter(sent)))
    agent = Agent("clerk", model=Scripted(call("look", order=1), "Ask the user."), tools=[look])
    case = Case("c", "Look.", mocks={"look": "ok"})
    asyncio.run(simulate(case, agent, middleware=[spans(provider=provider, content=True)]))
    attributes = [dict(span.attributes or {}) for span in sent.get_finished_spans()]
    assert {"chat", "execute_tool"} <= {one.get("gen_ai.operation.name") for one in attributes}
    assert "mock" in [one.get("greenroom.source") for one in attributes]
    asked = [one["gen_ai.input.messages"] for one in attributes if "gen_ai.input.messages" in one]
    assert json.loads(str(asked[0]))[0]["role"] == "user"
    said = [str(one.get("gen_ai.output.messages", "")) for one in attributes]
    assert any("Ask the [redacted:A]." in one for one in said)
