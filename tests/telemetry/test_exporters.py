"""Spans on their way to a real collector while a rehearsal is open."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from greenroom import Agent, Case, Scripted, Turn, call, simulate, tool
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
            arrived.append(until(lambda: len(collector.names()) > 2 * len(arrived), 10))
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
            until(lambda: bool(collector.names()), 10)
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
    return subprocess.run(
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
            *("greenroom.telemetry:spans", "-f", "json", "-o", "told.json", *workers),
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
        assert "https://traces.example/" in (shop / "told.json").read_text()


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


def _service(collector: Collector) -> set[str]:
    return {
        attribute.value.string_value
        for request in collector.traces
        for resource in request.resource_spans
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    }
