"""Logs of other tools, written by those tools where they can be had."""

import json
from pathlib import Path
from typing import Any

import pytest

from greenroom.errors import BadTrace
from greenroom.ledger import Ledger
from greenroom.ledger.questions import messages, response, tool_calls, unseen, usage
from greenroom.traces import Imported, read_traces


def one(path: Path) -> Imported:
    (found,) = read_traces(path)
    return found


def told(ledger: Ledger) -> Any:
    calls = [(made.tool, made.args, made.result) for made in tool_calls(ledger)]
    return [(message.role, message.text) for message in messages(ledger)], calls


EXPECTED = (
    [("user", "Where is order 7?"), ("assistant", "It is in Lyon.")],
    [("track", {"order": 7}, {"place": "Lyon"})],
)


@pytest.mark.parametrize("by_alias", [True, False])
async def test_a_session_that_google_adk_kept_is_read(by_alias, tmp_path):
    from google.adk.events import Event
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    def content(role: str, *parts: types.Part) -> types.Content:
        return types.Content(role=role, parts=list(parts))

    service: Any = InMemorySessionService()
    session = await service.create_session(app_name="desk", user_id="ann", session_id="s1")
    asked = types.FunctionCall(id="a", name="track", args={"order": 7})
    answer = types.FunctionResponse(id="a", name="track", response={"place": "Lyon"})
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=9, candidates_token_count=3
    )
    for author, said in (
        ("user", content("user", types.Part(text="Where is order 7?"))),
        ("desk", content("model", types.Part(function_call=asked))),
        ("desk", content("user", types.Part(function_response=answer))),
        ("desk", content("model", types.Part(text="It is in Lyon."))),
    ):
        event = Event(author=author, content=said, usage_metadata=used)
        await service.append_event(session, event)
    path = tmp_path / "session.json"
    path.write_text(session.model_dump_json(by_alias=by_alias, exclude_none=True))
    found = one(path)
    assert (found.conversation, told(found.ledger)) == ("s1", EXPECTED)
    total = usage(found.ledger)
    assert total is not None
    assert (total.input, total.output) == (18, 6)
    assert set(unseen(found.ledger)) == {"state", "nodes"}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_log_that_inspect_wrote_is_read(kind, tmp_path):
    pytest.importorskip("inspect_ai", reason="not installed here; `make test-all` has it")
    import subprocess
    import sys

    # In a process of its own: it warns of much, and changes zipfile.
    code = f"""
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall

messages = [
    ChatMessageUser(content="Where is order 7?"),
    ChatMessageAssistant(
        content="", tool_calls=[ToolCall(id="a", function="track", arguments={{"order": 7}})]
    ),
    ChatMessageTool(content="Lyon", tool_call_id="a", function="track"),
    ChatMessageAssistant(content="It is in Lyon."),
]
samples = [
    EvalSample(id="q", epoch=epoch, input="Where is order 7?", target="Lyon", messages=messages,
               scores={{"includes": Score(value="C")}})
    for epoch in (1, 2)
]
spec = EvalSpec(created="2026-01-01T10:00:00+00:00", task="t", dataset=EvalDataset(),
                model="mockllm/model", config=EvalConfig())
log = EvalLog(eval=spec, samples=samples, status="success")
write_eval_log(log, {str(tmp_path)!r} + "/log.{kind}", format={kind!r})
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=tmp_path)
    (log,) = tmp_path.glob(f"*.{kind}")
    found = sorted(read_traces(log), key=lambda one: one.trial)
    assert [(one.case_id, one.trial) for one in found] == [("q", 1), ("q", 2)]
    said, calls = told(found[0].ledger)
    assert said == EXPECTED[0]
    assert calls == [("track", {"order": 7}, "Lyon")]
    assert found[0].verdicts == {"includes": 1.0}


LANGSMITH = [
    {
        "id": "r1",
        "trace_id": "r1",
        "run_type": "chain",
        "name": "desk",
        "start_time": "2026-01-01T10:00:00",
        "end_time": "2026-01-01T10:00:09",
        "inputs": {"messages": [{"role": "user", "content": "Where is order 7?"}]},
        "outputs": {},
        "extra": {"metadata": {"thread_id": "th"}},
    },
    {
        "id": "r2",
        "trace_id": "r1",
        "parent_run_id": "r1",
        "run_type": "llm",
        "name": "ChatOpenAI",
        "start_time": "2026-01-01T10:00:01",
        "end_time": "2026-01-01T10:00:02",
        "inputs": {
            "messages": [
                [
                    {
                        "lc": 1,
                        "type": "constructor",
                        "id": ["langchain", "schema", "messages", "HumanMessage"],
                        "kwargs": {"content": "Where is order 7?", "type": "human"},
                    }
                ]
            ]
        },
        "outputs": {
            "generations": [
                [
                    {
                        "text": "",
                        "message": {
                            "lc": 1,
                            "type": "constructor",
                            "id": ["langchain", "schema", "messages", "AIMessage"],
                            "kwargs": {
                                "content": "",
                                "tool_calls": [{"name": "track", "args": {"order": 7}, "id": "a"}],
                            },
                        },
                    }
                ]
            ]
        },
        "prompt_tokens": 9,
        "completion_tokens": 3,
    },
    {
        "id": "r3",
        "trace_id": "r1",
        "parent_run_id": "r1",
        "run_type": "tool",
        "name": "track",
        "start_time": "2026-01-01T10:00:03",
        "end_time": "2026-01-01T10:00:04",
        "inputs": {"input": "{'order': 7}"},
        "outputs": {"output": {"type": "tool", "content": {"place": "Lyon"}, "tool_call_id": "a"}},
    },
    {
        "id": "r4",
        "trace_id": "r1",
        "parent_run_id": "r1",
        "run_type": "llm",
        "name": "ChatOpenAI",
        "start_time": "2026-01-01T10:00:05",
        "end_time": "2026-01-01T10:00:06",
        "inputs": {"messages": [{"role": "user", "content": "Where is order 7?"}]},
        "outputs": {"choices": [{"message": {"role": "assistant", "content": "It is in Lyon."}}]},
        "prompt_tokens": 9,
        "completion_tokens": 3,
    },
]


def test_runs_of_langsmith_are_put_together(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, reversed(LANGSMITH))))
    found = one(path)
    assert (found.conversation, told(found.ledger)) == ("th", EXPECTED)


LANGFUSE = {
    "trace": {"id": "t1", "sessionId": "s", "timestamp": "2026-01-01T10:00:00Z"},
    "observations": [
        {
            "id": "o1",
            "type": "GENERATION",
            "model": "m",
            "startTime": "2026-01-01T10:00:01Z",
            "endTime": "2026-01-01T10:00:02Z",
            "input": [{"role": "user", "content": "Where is order 7?"}],
            "output": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "function": {"name": "track", "arguments": '{"order": 7}'}}
                ],
            },
            "usageDetails": {"input": 9, "output": 3},
            "totalCost": 0.01,
        },
        {
            "id": "o2",
            "type": "TOOL",
            "name": "track",
            "startTime": "2026-01-01T10:00:03Z",
            "endTime": "2026-01-01T10:00:04Z",
            "input": {"order": 7},
            "output": {"place": "Lyon"},
        },
        {
            "id": "o3",
            "type": "GENERATION",
            "model": "m",
            "startTime": "2026-01-01T10:00:05Z",
            "endTime": "2026-01-01T10:00:06Z",
            "input": [{"role": "user", "content": "Where is order 7?"}],
            "output": {"role": "assistant", "content": "It is in Lyon."},
            "usageDetails": {"input": 9, "output": 3},
            "totalCost": 0.01,
        },
    ],
}


def test_a_trace_of_langfuse_is_put_together(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(LANGFUSE))
    found = one(path)
    assert (found.conversation, told(found.ledger)) == ("s", EXPECTED)


def test_a_result_of_promptfoo_is_a_turn_whose_tools_are_not_seen(tmp_path):
    result = {
        "id": "x",
        "testIdx": 0,
        "prompt": {"raw": "Where is order 7?"},
        "response": {"output": "It is in Lyon.", "tokenUsage": {"prompt": 9, "completion": 3}},
        "success": True,
        "score": 1,
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": [result, 7]}}))
    found: list[Imported] = []
    with pytest.raises(BadTrace, match=r"results\.results\[1\]: a result should be an object"):
        found.extend(read_traces(path))
    (first,) = read_traces_of(path)
    assert response(first.ledger) == "It is in Lyon."
    assert "tools" in unseen(first.ledger)
    assert first.verdicts == {"success": True, "score": 1}


def read_traces_of(path: Path) -> list[Imported]:
    from greenroom.traces.readers import conversations

    return [one for one in conversations([path]) if isinstance(one, Imported)]


async def test_spans_that_openinference_wrote_of_langchain_are_read(tmp_path):
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        model = GenericFakeChatModel(messages=iter([AIMessage("It is in Lyon.")]))
        model.invoke("Where is order 7?")
    finally:
        instrumentor.uninstrument()
    path = tmp_path / "spans.json"
    path.write_text(f"[{','.join(span.to_json() for span in exporter.get_finished_spans())}]")
    assert told(one(path).ledger)[0] == EXPECTED[0]


def test_an_archive_whose_sample_cannot_be_unpacked_is_named(tmp_path):
    import zipfile

    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/a.json", '{"id": "a"}')
    raw = path.read_bytes()
    begin = raw.index(b"samples/a.json") + len(b"samples/a.json")
    path.write_bytes(raw[:begin] + b"\xff" * 6 + raw[begin + 6 :])
    with pytest.raises(BadTrace, match=r"samples/a\.json: it cannot be unpacked"):
        list(read_traces(path))
