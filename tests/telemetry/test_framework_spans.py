"""The spans of real frameworks: given more attributes, and never written twice."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.instrumented import InstrumentationSettings

from backends.test_middleware_order import adk, langgraph, openai_agents, pydantic_ai
from greenroom import Case, Ledger, simulate
from greenroom.ledger import Noted, RunEnded
from greenroom.ledger.questions import TRACE
from telemetry.collector import Seen

CASE = Case("c", says="Hi", mocks={"weather": "fine"})


@pytest.fixture(scope="module")
def provider() -> TracerProvider:
    """That of the process: frameworks write to no other."""
    known = trace.get_tracer_provider()
    if not isinstance(known, TracerProvider):
        known = TracerProvider()
        trace.set_tracer_provider(known)
    return known


@pytest.fixture
def seen(provider: TracerProvider) -> Iterator[Seen]:
    found = Seen(provider)
    yield found
    found.stop()


@pytest.fixture
def instrumented(provider: TracerProvider) -> Iterator[None]:
    PydanticAgent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    yield
    PydanticAgent.instrument_all(False)


@pytest.fixture
def openinference(provider: TracerProvider) -> Iterator[None]:
    LangChainInstrumentor().instrument(tracer_provider=provider)
    yield
    LangChainInstrumentor().uninstrument()


def run(agent: Any, *middleware: Any) -> Ledger:
    ledger = asyncio.run(simulate(CASE, agent, middleware=middleware))
    assert isinstance(ledger.last, RunEnded)
    assert ledger.last.reason == "completed", ledger.last.error
    return ledger


def ignored(_: str) -> None:
    """What the agent's own callbacks say."""


def check_enriched(seen: Seen, make: Any, model: str, tool: str) -> None:
    """No span more than the framework writes, but for that of the case, which is around all."""
    run(make(ignored))
    bare = seen.tree()
    assert bare, "the framework writes spans of its own"
    seen.clear()
    run(make(ignored), seen.middleware())
    assert seen.tree() == ["rehearse c", *(f"  {line}" for line in bare)]
    assert [one["greenroom.source"] for one in seen.named(model)] == ["live", "live"]
    assert [one["greenroom.source"] for one in seen.named(tool)] == ["mock"]
    seen.clear()
    ledger = run(make(ignored), seen.middleware(case_span=False))
    assert seen.tree() == bare
    (note,) = [note.data for note in ledger.of(Noted) if note.name == TRACE]
    assert note["trace_id"] in {f"{s.context.trace_id:032x}" for s in seen.spans if s.context}


@pytest.mark.parametrize("schema", ["", "1"])
def test_google_adk_writes_its_own_spans(
    seen: Seen, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN", schema)
    check_enriched(seen, adk, "generate_content", "execute_tool")


def test_pydantic_ai_writes_its_own_spans_if_it_is_told_to(seen: Seen, instrumented: None) -> None:
    check_enriched(seen, pydantic_ai, "chat", "execute_tool")


def test_langgraph_is_written_by_openinference(seen: Seen, openinference: None) -> None:
    check_enriched(seen, langgraph, "model", "weather")


@pytest.mark.parametrize("make", [openai_agents, langgraph, pydantic_ai])
def test_a_framework_without_spans_gets_ours(seen: Seen, make: Any) -> None:
    run(make(ignored))
    assert seen.tree() == []
    run(make(ignored), seen.middleware())
    names = [line.strip().split()[0] for line in seen.tree()]
    assert names == ["rehearse", "invoke_agent", "chat", "execute_tool", "chat"]
    depths = [len(line) - len(line.lstrip()) for line in seen.tree()]
    assert depths == [0, 2, 4, 4, 4]


def test_a_metric_that_the_framework_records_itself_is_not_recorded_twice(
    seen: Seen, instrumented: None
) -> None:
    run(pydantic_ai(ignored), seen.middleware())
    assert "gen_ai.client.token.usage" not in seen.metrics()
    assert seen.metrics()["gen_ai.client.operation.duration"][0].count == 2
    ours = Seen(TracerProvider())
    run(openai_agents(ignored), ours.middleware())
    assert "gen_ai.client.token.usage" in ours.metrics()


def test_what_a_framework_wrote_is_not_overwritten(seen: Seen) -> None:
    run(adk(ignored), seen.middleware())
    asked = seen.named("generate_content")[0]
    assert asked["gen_ai.operation.name"] == "generate_content"


@pytest.mark.heavy
def test_the_development_server_of_google_adk_shows_our_attributes(tmp_path: Path) -> None:
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(folder / "dev_server.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(folder.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["live", "live", "mock"]
