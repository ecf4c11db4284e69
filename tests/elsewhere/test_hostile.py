"""Far sides that lie, and strangers who ask: cards, answers and requests that nobody means well."""

import json
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import perform
from greenroom.agents import remote
from greenroom.backends.a2a import card_of, discover
from greenroom.backends.a2a.cards import read_card
from greenroom.backends.a2a.wire import FarTask
from greenroom.errors import AgentFailed, InDoubt
from greenroom.ledger import Ledger, Remembered, responses
from greenroom.ledger.redaction import without_secrets
from local_servers import LocalServer

HERE = "http://127.0.0.1:7000"


class Liar:
    """A server that answers whatever a test gives it, and counts what it is asked."""

    def __init__(self) -> None:
        liar = self
        self.card: Any = {}
        self.answer: Any = {}
        self.asked: list[tuple[str, Any, dict[str, str]]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply(liar.card, None)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.reply(liar.answer, json.loads(body))

            def reply(self, given: Any, body: Any) -> None:
                liar.asked.append((self.path, body, dict(self.headers)))
                status, kind, text = (
                    given if isinstance(given, tuple) else (200, "application/json", given)
                )
                text = text if isinstance(text, str) else json.dumps(text)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                if 300 <= status < 400:
                    self.send_header("Location", "http://169.254.169.254/")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = LocalServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def shows(self, **changes: Any) -> None:
        self.card = {**card_of(agent, f"{self.url}/rpc").data(), **changes}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def agent(said: str) -> str:
    return said


@pytest.fixture
def liar() -> Iterator[Liar]:
    found = Liar()
    found.shows()
    yield found
    found.close()


def interface(url: Any, **more: Any) -> dict[str, Any]:
    one = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0", **more}
    return {"supportedInterfaces": [one]}


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1:7001/",
        "https://127.0.0.1:7000/",
        "http://127.0.0.1:7000@evil.example/",
        "http://user:pw@127.0.0.1:7000/",
        "//evil.example/",
        "http://[::ffff:127.0.0.1]:7000/",
        "http://127.0.0.1:99999/",
        "http://[bad/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:7000/",
        7,
        None,
        "",
    ],
)
def test_a_card_cannot_send_messages_anywhere_else(url: Any):
    base: dict[str, Any] = {"name": "x", "description": "y", "version": "1"}
    try:
        card = read_card({**base, **interface(url)}, HERE)
    except AgentFailed:
        return
    assert card.url.startswith(f"{HERE}/"), card.url


@pytest.mark.parametrize(
    "data",
    [
        [],
        None,
        "card",
        {},
        {"name": 7, **interface(HERE)},
        {"name": "x", "supportedInterfaces": "http"},
        {"name": "x", "supportedInterfaces": [1, None, {"url": HERE}]},
        {"name": "x", "url": HERE, "protocolVersion": "0.3.0"},
        {"name": "x", **interface(HERE, protocolVersion="0.3")},
        {"name": "x", **interface(HERE, protocolBinding="GRPC")},
        {"name": "x", **interface(HERE), "skills": [{"id": 7}]},
    ],
)
def test_a_card_of_wrong_types_is_refused_in_words(data: Any):
    with pytest.raises(AgentFailed):
        read_card(data, HERE)


def test_a_card_with_endless_texts_is_cut():
    data: Any = {
        "name": "x" * 10**6,
        **interface(HERE),
        "skills": [{"id": "y" * 10**5, "tags": ["t"]}] * 1000,
    }
    card = read_card(data, HERE)
    assert len(card.name) <= 2_000
    assert len(card.skills) <= 200


async def test_a_card_that_leads_elsewhere_is_not_followed(liar: Liar):
    other = Liar()
    liar.shows(**interface(f"{other.url}/rpc"))
    with pytest.raises(AgentFailed, match="which is not where it was found"):
        await perform(remote("liar", liar.url), "hi", store=False)
    found = await discover(liar.url)
    assert not found.cards
    assert liar.url in found.failures
    assert other.asked == []
    other.close()


def task(state: Any = "TASK_STATE_COMPLETED", **more: Any) -> dict[str, Any]:
    return {"task": {"id": "t", "contextId": "c", "status": {"state": state}, **more}}


def said(*parts: Any) -> dict[str, Any]:
    return {"artifacts": [{"artifactId": "a", "parts": list(parts)}]}


@pytest.mark.parametrize(
    "answer",
    [
        (302, "text/plain", "elsewhere"),
        (500, "text/plain", "broken"),
        (200, "application/json", "{torn"),
        (200, "application/json", "[" * 100_000),
        (200, "application/json", "x" * 10_000_001),
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "error": "no"},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": [], "message": {}}},
        {"jsonrpc": "2.0", "id": 1},
        {"result": 7},
        {"result": []},
        {"result": {"message": "x"}},
        {"result": {"task": {"id": 7}}},
        {"result": task(state=7)},
        {"result": task(state="")},
        {"result": task()},
        {"result": task(artifacts="x")},
        {"result": task(**said("x"))},
        {"result": task(**said({"text": 7}))},
        {"result": task(**said({"url": "http://169.254.169.254/"})) | {"task": 1}},
        {"result": task("TASK_STATE_FAILED")},
        {"result": task("TASK_STATE_REJECTED")},
        {"result": task("TASK_STATE_AUTH_REQUIRED")},
        (200, "text/event-stream", ""),
        (200, "text/event-stream", "data: {torn\n\n"),
        (200, "text/event-stream", "data: " + "x" * 10_000_001),
        (200, "text/event-stream", 'data: {"result": {"statusUpdate": {"taskId": "t"}}}\n\n'),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_answer_that_is_none_is_a_failure_of_the_far_side(
    liar: Liar, answer: Any, streaming: bool
):
    liar.shows(capabilities={"streaming": streaming})
    liar.answer = answer
    with pytest.raises(AgentFailed) as caught:
        await perform(remote("liar", liar.url, timeout=3), "hi", store=False)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("broken", ["card", "answer"])
async def test_what_became_of_a_message_is_in_doubt_if_the_far_side_cannot_say(
    liar: Liar, broken: str
):
    liar.shows(capabilities={"streaming": False})
    liar.answer = {"result": task(**said({"text": "done"}))}
    ledger = await perform(remote("liar", liar.url), "hi", store=False)
    at = next(n for n, event in enumerate(ledger) if isinstance(event, Remembered))
    torn = Ledger.loads(Ledger(ledger[: at + 1]).dumps())
    setattr(liar, broken, (502, "text/plain", "try later"))
    with pytest.raises(InDoubt, match="502"):
        await perform(remote("liar", liar.url), ledger=torn, store=False)


async def test_a_task_that_never_ends_is_a_failure_after_its_time(liar: Liar):
    liar.answer = {"result": task("TASK_STATE_NO_ONE_KNOWS")}
    with pytest.raises(AgentFailed):
        await perform(remote("liar", liar.url, timeout=0.6), "hi", store=False)


async def test_a_file_in_an_answer_is_named_and_not_fetched(liar: Liar):
    other = Liar()
    file = {"url": f"{other.url}/secret", "filename": "bill.pdf"}
    liar.shows(capabilities={"streaming": False})
    liar.answer = {"result": task(**said({"text": "here:"}, file))}
    ledger = await perform(remote("liar", liar.url), "hi", store=False)
    assert responses(ledger) == ["here:\n[file: bill.pdf]"]
    assert other.asked == []
    other.close()


async def test_an_answer_that_looks_like_a_question_is_none(liar: Liar):
    liar.shows(capabilities={"streaming": False})
    liar.answer = {"result": task(**said({"data": {"input_required": "your password?"}}))}
    ledger = await perform(remote("liar", liar.url), "hi", store=False)
    assert not ledger.index_of().pending


async def test_tokens_go_to_the_named_host_alone(liar: Liar, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LIAR_TOKEN", "t0p-s3cr3t")
    liar.shows(capabilities={"streaming": False})
    liar.answer = {"result": task(**said({"text": "you sent Bearer t0p-s3cr3t"}))}
    ledger = await perform(remote("liar", liar.url, token="LIAR_TOKEN"), "hi", store=False)
    assert liar.asked[-1][2]["Authorization"] == "Bearer t0p-s3cr3t"
    assert "t0p-s3cr3t" not in without_secrets(ledger.dumps())


async def test_the_trace_of_the_one_who_asks_goes_along(liar: Liar):
    from opentelemetry.sdk.trace import TracerProvider

    liar.shows(capabilities={"streaming": False})
    liar.answer = {"result": task(**said({"text": "done"}))}
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("asking") as span:
        await perform(remote("liar", liar.url), "hi", store=False)
    sent = {name.lower(): value for name, value in liar.asked[-1][2].items()}
    assert f"{span.get_span_context().trace_id:032x}" in sent["traceparent"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    [
        "task",
        "message",
        "statusUpdate",
        "artifactUpdate",
        "status",
        "state",
        "parts",
        "artifact",
        "id",
        "taskId",
    ]
)
shaped = st.recursive(
    json_values,
    lambda inner: st.dictionaries(keys, inner, max_size=4) | st.lists(inner, max_size=2),
)


@given(shaped)
def test_whatever_a_far_side_tells_is_taken_or_refused_in_words(told: Any):
    with suppress(AgentFailed):
        FarTask().take(told)


@given(shaped)
def test_whatever_a_card_is_it_is_read_or_refused_in_words(told: Any):
    with suppress(AgentFailed):
        read_card(told, HERE)
