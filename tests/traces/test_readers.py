"""Files of traces and logs: found by looking, read without loss, refused with their place."""

import base64
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from greenroom import Agent, Case, Scripted, Turn, call, rehearse, tool
from greenroom.errors import BadTrace
from greenroom.ledger import Ledger, ToolReturned
from greenroom.ledger.questions import messages, response, tool_calls, turns, unseen, usage
from greenroom.suite import score
from greenroom.telemetry import spans
from greenroom.traces import Imported, read_traces
from greenroom.traces.readers import conversations


@tool
def track(order: int) -> dict[str, str]:
    """Where an order is."""
    return {"place": "Lyon"}


def recorded(content: bool = True) -> tuple[Any, Ledger]:
    """Spans of a rehearsal of two turns as OpenTelemetry's SDK has them, and its ledger."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = Agent(
        "desk",
        model=Scripted(call("track", order=7), "It is in Lyon.", "You are welcome."),
        tools=[track],
    )
    case = Case(
        "order",
        turns=[Turn("Where is order 7?"), Turn("Thanks!")],
        mocks={"track": {"place": "Lyon"}},
    )
    middleware = [spans(provider=provider, content=content)]
    report = rehearse(agent, [case], middleware=middleware, store="off")
    return exporter.get_finished_spans(), report["order"].ledger


def otlp(found: Any) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    data = MessageToDict(encode_spans(found))
    for resource in data["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return data


def one(path: Path) -> Imported:
    (found,) = read_traces(path)
    return found


def facts(ledger: Ledger) -> Any:
    return (
        turns(ledger),
        [(message.role, message.text) for message in messages(ledger)],
        [(made.tool, made.args, made.result) for made in tool_calls(ledger)],
        [event.source for event in ledger.of(ToolReturned)],
        usage(ledger),
    )


@pytest.fixture(scope="module")
def rehearsal() -> tuple[Any, Ledger]:
    return recorded()


def test_spans_of_a_rehearsal_come_back_as_the_same_conversation(rehearsal, tmp_path):
    found, ledger = rehearsal
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(otlp(found)))
    read = one(path)
    assert facts(read.ledger) == facts(ledger)
    assert read.case_id == "order"
    assert unseen(read.ledger) == ("state", "nodes")


def test_a_tool_was_really_called_unless_a_span_of_a_rehearsal_says_otherwise(rehearsal, tmp_path):
    whole = json.dumps(otlp(rehearsal[0]))
    path = tmp_path / "spans.json"
    for said, source in (("mock", "mock"), ("refused", "refused"), ("a friend", "live")):
        path.write_text(whole.replace('"stringValue": "mock"', f'"stringValue": "{said}"'))
        [returned] = one(path).ledger.of(ToolReturned)
        assert returned.source == source


def test_protobuf_json_lines_and_the_sdk_s_own_json_say_the_same(rehearsal, tmp_path):
    found, ledger = rehearsal
    binary, lines, sdk, tempo = (
        tmp_path / name for name in ("a.pb", "b.jsonl", "c.json", "d.json")
    )
    binary.write_bytes(encode_spans(found).SerializeToString())
    # A collector writes batches as they come: here backwards, one span each.
    lines.write_text("\n".join(json.dumps(otlp([span])) for span in reversed(found)))
    sdk.write_text(f"[{','.join(span.to_json() for span in found)}]")
    whole = otlp(found)
    tempo.write_text(json.dumps({"batches": whole["resourceSpans"]}))
    for path in (binary, lines, sdk, tempo):
        assert facts(one(path).ledger) == facts(ledger), path.name


def test_what_the_console_exporters_print_is_read_spans_and_metrics_mixed(rehearsal, tmp_path):
    found, ledger = rehearsal
    out = StringIO()
    meters = InMemoryMetricReader()
    MeterProvider([meters]).get_meter("shop").create_counter("orders").add(1)
    measured = meters.get_metrics_data()
    assert measured is not None
    for part in (found[:2], found[2:]):
        ConsoleMetricExporter(out).export(measured)
        ConsoleSpanExporter(out=out).export(part)
    path = tmp_path / "console.txt"
    path.write_text(out.getvalue())
    assert facts(one(path).ledger) == facts(ledger)


def test_a_cut_among_printed_spans_is_named_by_its_line(rehearsal, tmp_path):
    found, _ = rehearsal
    path = tmp_path / "console.txt"
    whole = found[0].to_json() + "\n"
    path.write_text(whole + found[1].to_json()[:-20] + "\n" + whole)
    with pytest.raises(BadTrace) as raised:
        list(read_traces(path))
    lines = whole.count("\n")
    named = int(re.findall(r"line (\d+)", str(raised.value))[0])
    assert lines < named <= 2 * lines + 1


async def test_metrics_say_the_same_of_a_trace_as_of_the_rehearsal(rehearsal, tmp_path):
    found, ledger = rehearsal
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(otlp(found)))
    asked = ["tone", "turns_within", "efficiency"]
    from greenroom.metrics import called, turns_within

    metrics = [called("track", {"order": 7}), turns_within(at_most=2), "tone"]
    here, there = await score(ledger, metrics), await score(one(path).ledger, metrics)
    assert {n: (o.value, o.passed) for n, o in here.items()} == {
        n: (o.value, o.passed) for n, o in there.items()
    }, asked


async def test_without_content_what_was_said_is_unknown_and_the_calls_are_known(tmp_path):
    found, _ = recorded(content=False)
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(otlp(found)))
    read = one(path).ledger
    assert set(unseen(read)) == {"args", "results", "words", "user", "state", "nodes"}
    outcomes = await score(read, ["tone"])
    assert "does not hold what the agent said" in outcomes["tone"].why  # type: ignore[union-attr]
    assert [made.tool for made in tool_calls(read)] == ["track"]


def test_a_trace_across_two_files_is_one_conversation(rehearsal, tmp_path):
    found, ledger = rehearsal
    for number, part in enumerate((found[:4], found[4:])):
        (tmp_path / f"{number}.json").write_text(json.dumps(otlp(part)))
    assert facts(one(tmp_path).ledger) == facts(ledger)


CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is order 7?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "function": {"name": "track", "arguments": '{"order": 7}'}},
            {"id": "c", "function": {"name": "track", "arguments": '{"order": 8}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "Lyon"},
    {"role": "tool", "tool_call_id": "c", "content": "Rome"},
    {"role": "assistant", "content": [{"type": "text", "text": "In Lyon and Rome."}]},
]


def test_messages_with_repeated_ids_keep_every_call(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(CONVERSATION))
    ledger = Ledger.loads(one(path).ledger.dumps())
    assert [(made.args["order"], made.result) for made in tool_calls(ledger)] == [
        (7, "Lyon"),
        (8, "Rome"),
    ]
    assert response(ledger) == "In Lyon and Rome."
    assert usage(ledger) is None
    assert set(unseen(ledger)) == {"state", "nodes", "times"}


def test_several_conversations_in_one_file_stay_apart(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [{"id": f"c{n}", "messages": CONVERSATION} for n in range(3)]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert [found.conversation for found in read_traces(path)] == ["c0", "c1", "c2"]


def test_a_question_to_the_model_can_be_read_back(tmp_path):
    from greenroom.ledger.interactions import model_interactions

    path = tmp_path / "log.json"
    path.write_text(json.dumps(CONVERSATION))
    last = model_interactions(one(path).ledger)[-1].request
    assert last is not None
    assert last.instructions == "Be kind."
    assert [message.role for message in last.messages] == ["user", "assistant", "tool", "tool"]


# What cannot be read


def flaws(path: Path) -> str:
    with pytest.raises(BadTrace) as caught:
        list(read_traces(path))
    return str(caught.value)


def jaeger(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"data": [{"traceID": "t", "spans": list(spans)}]}


def span(id: str, parent: str = "", **more: Any) -> dict[str, Any]:
    return {
        "traceID": "t",
        "spanID": id,
        "operationName": "invoke_agent desk",
        "references": [{"refType": "CHILD_OF", "spanID": parent}] if parent else [],
        "startTime": 1_000_000,
        "duration": 1_000,
        "tags": [],
        **more,
    }


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "it is empty"),
        ("hello", "its format is unknown"),
        ('{"nothing": 1}', "its format is unknown"),
        ('{\n  "nothing":\n  1}', """begins with '{ "nothing": 1}'"""),
        ('{"kind": "report", "version": 1}', "`greenroom eval compare` reads"),
        ('{"scenario_id": "a", "conversation": []}', "--save-as-eval FILE"),
        ('{"data": [{"traceID": "t", "spans": [', "line 1, column"),
        ('[{"role": "user", "content": NaN}]', "NaN"),
        ('[{"role": "user", "content": "a"}, {"role": "ghost"}]', "message 1: it should be"),
        ('[{"role": "user", "content": 7}]', "message 0: its content should be a string"),
        (
            '[{"role": "tool", "tool_call_id": "x", "content": "a"}]',
            "message 0: it answers a call 'x'",
        ),
        (json.dumps(jaeger(span("a", "b"), span("b", "a"))), "its own ancestor"),
        (json.dumps(jaeger(span("a"), span("a", operationName="chat m"))), "two different spans"),
        (json.dumps(jaeger(span("a", startTime="soon"))), "data[0].spans[0]: startTime"),
        (json.dumps(jaeger(span("a", startTime=10**400))), "startTime should be a number"),
        (json.dumps(jaeger(span("a", tags={"key": 1}))), "data[0].spans[0]: tags should be a list"),
        (json.dumps(jaeger()), "it contains nothing"),
        (json.dumps(jaeger(span("a", operationName="GET /"))), "none of its 1 spans"),
        (
            '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]}',
            "traceId should be",
        ),
        ('{"resourceSpans": [{"scopeSpans": 7}]}', "scopeSpans should be a list"),
        ('{"resourceSpans": []}', "it contains nothing"),
        ('[{"task_id": 1, "traj": []}]', "there are no messages"),
        ('[{"task_id": 1, "traj": "x"}]', "the messages should be a list"),
        ('[{"task_id": 1, "trial": "x", "traj": []}]', "its trial should be a number"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, says, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(text)
    said = flaws(path)
    assert says in said
    assert str(path) in said or "spans" in said
    assert said.count(str(path)) <= len(said.splitlines())


def test_a_cut_protobuf_is_named(rehearsal, tmp_path):
    found, _ = rehearsal
    path = tmp_path / "cut.pb"
    path.write_bytes(encode_spans(found).SerializeToString()[:-20])
    assert "it is not an OTLP request, or it is incomplete" in flaws(path)


def test_a_bad_line_or_file_does_not_lose_the_others(tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.jsonl"
    good.write_text(json.dumps(CONVERSATION))
    bad.write_text(json.dumps({"id": "a", "messages": CONVERSATION}) + '\n{"id": "b", "mess')
    found = list(conversations([good, bad]))
    assert sum(isinstance(one, Imported) for one in found) == 2
    (lost,) = [str(one) for one in found if not isinstance(one, Imported)]
    assert "bad.jsonl, line 2" in lost


def test_a_span_sent_twice_counts_once(rehearsal, tmp_path):
    found, ledger = rehearsal
    path = tmp_path / "twice.json"
    path.write_text("\n".join(json.dumps(otlp(found)) for _ in range(2)))
    assert facts(one(path).ledger) == facts(ledger)


def test_a_broken_span_takes_its_trace_along_and_no_other(tmp_path):
    path = tmp_path / "two.json"
    data = {
        "data": [
            {"traceID": "t", "spans": [span("a"), span("b", startTime=None)]},
            {"traceID": "u", "spans": [{**span("c"), "traceID": "u"}]},
        ]
    }
    path.write_text(json.dumps(data))
    found = list(conversations([path]))
    assert [one.conversation for one in found if isinstance(one, Imported)] == ["u"]


def test_an_agent_that_failed_is_a_run_that_broke(tmp_path):
    path = tmp_path / "failed.json"
    tags = [{"key": "otel.status_code", "value": "ERROR"}, {"key": "error.type", "value": "Boom"}]
    path.write_text(json.dumps(jaeger(span("a", tags=tags))))
    last = one(path).ledger.last
    assert (last.reason, last.error_type) == ("error", "Boom")  # type: ignore[union-attr]


def test_a_reader_of_another_package_counts_like_ours(monkeypatch, tmp_path):
    from importlib.metadata import EntryPoint

    from greenroom import plugins

    known = plugins._installed("greenroom.traces")
    point = EntryPoint("diary", "traces.diary:Diary", "greenroom.traces")
    monkeypatch.setattr(plugins, "_installed", lambda group: {**known, "diary": [point]})
    path = tmp_path / "diary.txt"
    path.write_text("DIARY\nuser: Hi\nagent: Hello")
    assert [m.text for m in messages(one(path).ledger)] == ["Hi", "Hello"]
