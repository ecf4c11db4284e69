"""A record that holds less than happened says so, and nothing is measured by what it lacks."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from greenroom.cases import harvest
from greenroom.errors import BadCase, BadTrace
from greenroom.ledger import AgentSaid, RunEnded, Usage
from greenroom.ledger.questions import tool_calls, turns, unseen, usage
from greenroom.metrics import (
    completed_within,
    contains,
    forbidden_calls,
    turn_within,
    turns_within,
)
from greenroom.suite import score_traces
from greenroom.traces import Imported, read_traces

TRACE = "0af7651916cd43dd8448eb211c80319c"
ASKED = {"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}
CALL = {"type": "tool_call", "id": "a", "name": "track", "arguments": {"order": 7}}
HEARD = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": "Lyon"}]}
SAID = {"role": "assistant", "parts": [{"type": "text", "content": "In Lyon."}]}


def span(number: int, operation: str, *, parent: int = 0, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": operation, **more.pop("attributes", {})}
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": operation,
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str((50 if operation == "invoke_agent" else number) * 10**9 + 5 * 10**8),
        "attributes": [
            {"key": key, "value": {"stringValue": v if isinstance(v, str) else json.dumps(v)}}
            for key, v in attributes.items()
        ],
        **more,
    }


def model(number: int, heard: Any, *parts: Any, parent: int = 1, **more: Any) -> dict[str, Any]:
    said = [{"role": "assistant", "parts": list(parts)}]
    told = {"gen_ai.input.messages": heard, "gen_ai.output.messages": said}
    return span(number, "chat", parent=parent, attributes=told, **more)


def tool(number: int, name: str, call: str, parent: int = 1) -> dict[str, Any]:
    told = {
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.call.arguments": {"order": 7},
        "gen_ai.tool.call.result": "Lyon",
    }
    return span(number, "execute_tool", parent=parent, attributes=told)


AGENT = span(1, "invoke_agent", attributes={"gen_ai.conversation.id": "c"})
FIRST = model(2, [ASKED], CALL)
TRACK = tool(3, "track", "a")
LAST = model(4, [ASKED, {"role": "assistant", "parts": [CALL]}, HEARD], *SAID["parts"])


def read(path: Path, *spans: dict[str, Any]) -> Imported:
    path = path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    (found,) = read_traces(path)
    return found


def log(path: Path, *messages: dict[str, Any]) -> Imported:
    path = path / "log.json"
    path.write_text(json.dumps(messages))
    (found,) = read_traces(path)
    return found


def lacks(found: Imported) -> set[str]:
    return {name for name in unseen(found.ledger) if name not in ("state", "nodes", "times")}


def test_what_is_whole_lacks_nothing(tmp_path):
    found = read(tmp_path, AGENT, FIRST, TRACK, LAST)
    assert (lacks(found), turns(found.ledger)) == (set(), 1)
    assert [call.tool for call in tool_calls(found.ledger)] == ["track"]


@pytest.mark.parametrize("parents", [(9, 9, 9), (7, 8, 9)])
def test_spans_whose_agent_was_not_recorded_are_one_turn_and_no_call_counts_twice(
    parents, tmp_path
):
    spans = [
        {**one, "parentSpanId": f"{parent:016x}"}
        for one, parent in zip((FIRST, TRACK, LAST), parents, strict=True)
    ]
    found = read(tmp_path, *spans)
    assert (lacks(found), turns(found.ledger)) == (set(), 1)
    assert [call.result for call in tool_calls(found.ledger)] == ["Lyon"]


def test_a_span_whose_parent_was_not_recorded_belongs_to_the_one_agent_of_its_trace(tmp_path):
    found = read(tmp_path, AGENT, FIRST, TRACK, {**LAST, "parentSpanId": f"{9:016x}"})
    assert (found.conversation, turns(found.ledger)) == ("c", 1)


def test_with_several_agents_it_is_not_guessed_to_which_a_span_belonged(tmp_path):
    other = span(5, "invoke_agent")
    with pytest.raises(BadTrace, match="unknown which of 2 agents"):
        read(tmp_path, AGENT, FIRST, TRACK, {**LAST, "parentSpanId": f"{9:016x}"}, other)


def test_a_call_whose_span_was_lost_is_known_by_its_result_that_the_model_heard(tmp_path):
    more = {"type": "tool_call", "id": "b", "name": "mail", "arguments": {}}
    asked = model(2, [ASKED], CALL, more)
    sent = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "b", "response": "ok"}]}
    last = model(4, [ASKED, HEARD, sent], *SAID["parts"])
    found = read(tmp_path, AGENT, asked, TRACK, last)
    assert sorted(call.tool for call in tool_calls(found.ledger)) == ["mail", "track"]
    assert lacks(found) == set()


def test_a_call_that_may_have_been_made_leaves_the_calls_unknown(tmp_path):
    more = {"type": "tool_call", "id": "b", "name": "mail", "arguments": {}}
    found = read(tmp_path, AGENT, model(2, [ASKED], CALL, more), TRACK, LAST)
    assert lacks(found) == {"tools"}


def test_a_call_whose_span_does_not_name_its_tool_is_not_given_a_name(tmp_path):
    unnamed = [one for one in TRACK["attributes"] if one["key"] != "gen_ai.tool.name"]
    named = {**TRACK, "name": "execute_tool track", "attributes": unnamed}
    (call,) = tool_calls(read(tmp_path, AGENT, FIRST, named, LAST).ledger)
    assert call.tool == "track"
    with pytest.raises(BadTrace, match="calls a tool, but does not name it"):
        read(tmp_path, AGENT, FIRST, {**TRACK, "attributes": unnamed}, LAST)


def test_after_a_reply_that_asks_for_a_tool_the_last_words_are_unknown(tmp_path):
    assert lacks(read(tmp_path, AGENT, FIRST, TRACK)) == {"words"}


INDEXED = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Where is order 7?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "In Lyon.",
}


def test_where_attributes_were_dropped_the_rest_is_not_taken_for_all(tmp_path):
    whole = span(1, "LLM", attributes=INDEXED)
    assert lacks(read(tmp_path, whole)) == set()
    found = read(tmp_path, {**whole, "droppedAttributesCount": 2})
    assert lacks(found) == {"tools", "words", "user"}


def test_what_openinference_hid_is_unknown(tmp_path):
    from openinference.instrumentation import REDACTED_VALUE

    hidden = {k: REDACTED_VALUE if k.endswith("content") else v for k, v in INDEXED.items()}
    root = {"openinference.span.kind": "AGENT", "input.value": REDACTED_VALUE}
    found = read(
        tmp_path,
        span(1, "agent", attributes={**root, "output.value": REDACTED_VALUE}),
        span(2, "LLM", attributes=hidden, parent=1),
    )
    assert lacks(found) == {"words", "user"}


@pytest.mark.parametrize(
    "part", [{"type": "blob", "content": "AA=="}, {"type": "uri", "uri": "https://a.com/b.png"}]
)
def test_pictures_in_spans_leave_what_the_user_said_unknown(part, tmp_path):
    asked = {"role": "user", "parts": [{"type": "text", "content": "What is it?"}, part]}
    assert lacks(read(tmp_path, AGENT, model(2, [asked], *SAID["parts"]))) == {"user"}


@pytest.mark.parametrize(
    "messages, missing",
    [
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], set()),
        ([{"role": "user", "content": None}, {"role": "assistant", "content": "b"}], {"user"}),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": None}], {"words"}),
        ([{"role": "user", "content": "a"}, {"role": "assistant"}], {"words"}),
        (
            [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
                {"role": "assistant", "content": "b"},
            ],
            {"user"},
        ),
    ],
)
def test_messages_without_what_they_say_are_unknown(messages, missing, tmp_path):
    assert lacks(log(tmp_path, *messages)) == missing


USER = {"role": "user", "content": "Where is order 7?"}
ANSWER = {"role": "assistant", "content": "In Lyon."}
LYON = {"role": "tool", "tool_call_id": "a", "content": "Lyon"}


def asks(arguments: str) -> dict[str, Any]:
    called = {"id": "a", "type": "function", "function": {"name": "track", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [called]}


def test_messages_that_end_with_a_tools_answer_were_recorded_before_the_end(tmp_path):
    found = log(tmp_path, USER, asks("{}"), LYON)
    assert found.ledger.of(RunEnded) == []
    with pytest.raises(BadCase, match="did not end by itself"):
        harvest(found.ledger, "cut")


@pytest.mark.parametrize("twice", ['{"order": 8, "order": 7}', '{"order": NaN}', '{"order": 7'])
def test_arguments_that_are_no_proper_json_are_not_guessed(twice, tmp_path):
    with pytest.raises(BadTrace, match="the arguments of 'track'"):
        log(tmp_path, USER, asks(twice), LYON, ANSWER)


@pytest.mark.parametrize("calls", ["yes", {"0": "track"}, ["track"], '[{"function": …[cut]'])
def test_calls_that_are_no_list_of_objects_are_not_left_out(calls, tmp_path):
    with pytest.raises(BadTrace, match="its calls of tools should be a list of objects"):
        log(tmp_path, USER, {**ANSWER, "tool_calls": calls})


@pytest.mark.parametrize(
    "answer",
    [
        {**ANSWER, "toolInvocations": [{"toolName": "refund"}]},
        {**ANSWER, "tool_call": {"name": "refund"}},
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "refund"}]},
        {"role": "assistant", "parts": [{"type": "tool-refund", "state": "output-available"}]},
    ],
)
def test_calls_in_a_form_that_is_not_read_are_unknown(answer, tmp_path):
    assert "tools" in lacks(log(tmp_path, USER, answer))


def test_the_result_of_a_call_that_no_message_answers_is_unknown(tmp_path):
    assert lacks(log(tmp_path, USER, asks("{}"), ANSWER)) == {"results"}


@pytest.mark.parametrize(
    "error", [{"error": {"type": "timeout", "message": "Lyon"}}, {"is_error": True}]
)
def test_an_answer_that_says_it_is_an_error_is_a_call_that_failed(error, tmp_path):
    found = log(tmp_path, USER, asks("{}"), {**LYON, **error}, ANSWER)
    assert [call.error for call in tool_calls(found.ledger)] == ["Lyon"]


def test_a_result_that_no_json_can_hold_is_unknown(tmp_path):
    *rest, _ = TRACK["attributes"]
    result = {"key": "gen_ai.tool.call.result", "value": {"stringValue": '{"km": NaN}'}}
    found = read(tmp_path, AGENT, FIRST, {**TRACK, "attributes": [*rest, result]}, LAST)
    assert lacks(found) == {"results"}


@pytest.mark.parametrize(
    "ending, reason",
    [
        ({}, "completed"),
        ({"limit": {"type": "token", "limit": 9}}, None),
        ({"error": {"message": "out of memory"}}, "error"),
    ],
)
def test_a_sample_of_inspect_that_broke_or_met_a_limit_was_not_completed(ending, reason, tmp_path):
    path = tmp_path / "log.json"
    sample = {"id": "q", "epoch": 1, "messages": [USER, ANSWER], **ending}
    path.write_text(json.dumps({"eval": {"task": "t"}, "samples": [sample]}))
    (found,) = read_traces(path)
    assert next((event.reason for event in found.ledger.of(RunEnded)), None) == reason


def test_a_refusal_is_what_the_agent_said(tmp_path):
    asked = {"role": "user", "content": "a"}
    found = log(tmp_path, asked, {"role": "assistant", "content": None, "refusal": "I cannot."})
    assert [event.text for event in found.ledger.of(AgentSaid)] == ["I cannot."]


def test_results_that_anthropic_has_its_user_give_are_results_of_tools(tmp_path):
    use = {"type": "tool_use", "id": "t", "name": "track", "input": {"order": 7}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "text", "text": "Lyon"}],
    }
    found = log(
        tmp_path,
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "In Lyon."},
    )
    assert turns(found.ledger) == 1
    assert [call.result for call in tool_calls(found.ledger)] == ["Lyon"]


def session(path: Path, *events: dict[str, Any]) -> Imported:
    path = path / "session.json"
    path.write_text(json.dumps({"id": "s", "appName": "shop", "events": events}))
    (found,) = read_traces(path)
    return found


HI = {"author": "user", "timestamp": 1, "content": {"parts": [{"text": "Hi"}]}}
NICE = {"author": "shop", "timestamp": 2, "content": {"parts": [{"text": "Nice."}]}}


def test_a_picture_in_a_session_of_google_adk_is_not_taken_for_silence(tmp_path):
    picture = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    assert lacks(session(tmp_path, {**HI, "content": {"parts": [picture]}}, NICE)) == {"user"}


def test_a_session_of_google_adk_without_times_took_an_unknown_time(tmp_path):
    untimed = {key: value for key, value in NICE.items() if key != "timestamp"}
    assert "times" in unseen(session(tmp_path, HI, untimed).ledger)
    assert "times" not in unseen(session(tmp_path, HI, NICE).ledger)


@pytest.mark.parametrize(
    "field, value", [("author", None), ("content", "Nice."), ("content", {"parts": "Nice."})]
)
def test_an_event_of_google_adk_that_is_malformed_is_not_left_out(field, value, tmp_path):
    with pytest.raises(BadTrace, match=r"events\[1\]"):
        session(tmp_path, HI, {**NICE, field: value})


def test_thoughts_of_a_gemini_are_tokens_of_its_output(tmp_path):
    counted = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 90}
    assert usage(session(tmp_path, HI, {**NICE, "usageMetadata": counted}).ledger) == Usage(5, 92)


CUT = [
    {"role": "user", "content": "Where?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "function": {"name": "track", "arguments": "{}"}}],
    },
]


async def test_a_job_that_ends_after_the_turn_does_not_set_the_clock_back(tmp_path: Path) -> None:
    late = {**TRACK, "endTimeUnixNano": str(60 * 10**9)}
    found = read(tmp_path, AGENT, FIRST, late, LAST)
    metrics = [completed_within(70), turn_within(70)]
    [result] = (await score_traces([found], metrics=metrics)).results
    assert [score.measured for score in result.scores.values()] == [59.0, 59.0], result.scores
    assert result.status == "passed"


async def test_a_conversation_that_was_not_over_is_not_measured(tmp_path):
    open_span = {key: value for key, value in AGENT.items() if key != "endTimeUnixNano"}
    found = [log(tmp_path, *CUT), read(tmp_path, open_span, FIRST, TRACK, LAST)]
    metrics = [contains("Lyon"), forbidden_calls("refund"), turns_within(2)]
    report = await score_traces(found, metrics=metrics)
    assert [result.status for result in report.results] == ["error", "error"]
    assert not any(result.broke for result in report.results)
    assert {str(o.why) for r in report.results for o in r.scores.values()} == {  # type: ignore[union-attr]
        "it was not over when it was recorded, so how it went is not known"
    }


def test_what_gzip_packed_is_read_and_what_was_cut_is_named(tmp_path):
    raw = json.dumps([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    packed = gzip.compress(raw[:20].encode()) + gzip.compress(raw[20:].encode())
    path = tmp_path / "log.json.gz"
    path.write_bytes(packed)
    assert [turns(one.ledger) for one in read_traces(path)] == [1]
    path.write_bytes(packed[:-4])
    with pytest.raises(BadTrace, match="it is incomplete"):
        list(read_traces(path))
    path.write_bytes(packed[:20] + b"\xff" * 20)
    with pytest.raises(BadTrace, match="it cannot be unpacked"):
        list(read_traces(path))


def test_of_an_agent_under_which_nothing_was_recorded_the_calls_are_unknown(tmp_path):
    told = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [SAID]}
    found = read(tmp_path, span(1, "invoke_agent", attributes=told))
    assert {"tools", "models"} <= lacks(found)
    assert "words" not in lacks(found)


def test_what_a_model_had_said_when_it_failed_is_not_the_answer(tmp_path):
    failed = model(2, [ASKED], *SAID["parts"], status={"code": 2, "message": "cut off"})
    assert "words" in lacks(read(tmp_path, AGENT, failed))


@pytest.mark.parametrize("end", [None, "1"], ids=["missing", "before its start"])
def test_a_span_whose_end_is_not_known_says_nothing_of_time(end, tmp_path):
    assert "times" not in unseen(read(tmp_path, AGENT, FIRST, TRACK, LAST).ledger)
    odd = {**LAST, "endTimeUnixNano": end} if end else {**LAST}
    if end is None:
        del odd["endTimeUnixNano"]
    assert "times" in unseen(read(tmp_path, AGENT, FIRST, TRACK, odd).ledger)


async def test_nothing_is_measured_of_a_conversation_in_which_the_agent_did_nothing(tmp_path):
    found = log(tmp_path, {"role": "user", "content": "Where is order 7?"})
    report = await score_traces([found], metrics=[forbidden_calls("track"), turns_within(3)])
    assert report.results[0].status == "error"
    assert "it was not over" in report.results[0].scores["forbidden_calls('track')"].reason
