"""Strangers who ask `greenroom serve`: what cannot be meant is refused in words, and the server goes on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from elsewhere.processes import Served, our_agent
from greenroom import Agent, Scripted
from greenroom.apps.cli import main
from greenroom.apps.serving.app import Server
from greenroom.apps.serving.served import ServedAgent
from greenroom.backends.a2a import card_of
from greenroom.backends.registry import backend_for
from greenroom.store import Store

AGENT = Path(__file__).with_name("served_agent.py")
DESK = Agent("desk", model=Scripted("Hello."))
CARD = card_of(DESK, "http://127.0.0.1/")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = our_agent(
        tmp_path_factory.mktemp("desk"), "--token-env", "DESK", env={"DESK": "open sesame"}
    )
    yield served
    served.close()


def ask(url: str, body: Any, **headers: str) -> httpx.Response:
    given = {"Authorization": "Bearer open sesame", "Content-Type": "application/json", **headers}
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return httpx.post(url, content=content, headers=given, timeout=30)


def rpc(method: Any, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}


def test_who_asks_for_another_host_or_from_another_site_is_refused(desk: Served):
    fine = rpc("ListTasks")
    assert ask(desk.url, fine).status_code == 200
    assert ask(desk.url, fine, Host="evil.example").status_code == 421
    assert ask(desk.url, fine, Origin="https://evil.example").status_code == 403
    assert ask(desk.url, fine, Origin="null").status_code == 403
    assert ask(desk.url, fine, Origin="http://localhost:3000").status_code == 200
    assert ask(desk.url, fine, **{"Content-Type": "text/plain"}).status_code == 415
    card = f"{desk.url}/.well-known/agent-card.json"
    assert httpx.get(card, headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer open", "open sesame", "Basic b3Blbg=="])
def test_who_has_no_token_is_refused_and_the_card_says_that_one_is_needed(desk: Served, given: str):
    assert ask(desk.url, rpc("ListTasks"), Authorization=given).status_code == 401
    card = httpx.get(f"{desk.url}/.well-known/agent-card.json").json()
    assert card["securityRequirements"]
    assert "sesame" not in json.dumps(card)


def send(**message: Any) -> dict[str, Any]:
    told = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}], **message}
    return rpc("SendMessage", {"message": told})


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{torn",
        "[" * 100_000,
        "[]",
        "7",
        {"jsonrpc": "1.0", "method": "GetTask"},
        rpc(7),
        rpc("tasks/get"),
        rpc("GetTask", {"id": 7}),
        rpc("GetTask", {"id": "../../etc/passwd"}),
        rpc("GetTask", {"id": "a2a-" + "0" * 24 + "-1"}),
        rpc("GetTask", {"id": "x" * 10_000}),
        rpc("SendMessage"),
        rpc("SendMessage", {"message": 7}),
        send(messageId=""),
        send(messageId=7),
        send(messageId="\ud800"),
        send(parts=[{"text": "\ud800"}]),
        send(contextId="x" * 10_000),
        send(role="ROLE_AGENT"),
        send(parts=[]),
        send(parts="hi"),
        send(parts=[7]),
        send(parts=[{"text": "  "}]),
        send(parts=[{"url": "http://169.254.169.254/"}]),
        send(parts=[{"raw": "not base 64!"}]),
        send(taskId="a2a-" + "0" * 24 + "-1"),
        rpc("ListTasks", {"pageToken": "../"}),
        rpc("ListTasks", {"pageSize": -1}),
        rpc("CancelTask", {"id": "nothing"}),
        rpc("SubscribeToTask", {"id": "nothing"}),
        rpc("CreateTaskPushNotificationConfig", {"url": "http://169.254.169.254/"}),
        rpc("GetExtendedAgentCard"),
    ],
)
def test_a_request_that_cannot_be_meant_is_an_error_of_the_protocol(desk: Served, body: Any):
    answer = ask(desk.url, body)
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] < -32000
    assert len(answer.text) < 2_000


def test_too_much_is_refused_and_the_server_goes_on(desk: Served):
    assert ask(desk.url, b"x" * 8_000_001).status_code == 413
    assert ask(desk.url, rpc("ListTasks"), **{"A2A-Version": "0.3"}).json()["error"]
    answer = ask(desk.url, send(contextId="../../x"))
    assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_an_answer_with_half_a_letter_is_sent(desk: Served):
    answer = ask(desk.url, send(messageId="half", parts=[{"text": "half a letter"}]))
    assert answer.json()["result"]["task"]["artifacts"][0]["parts"] == [{"text": "\ud800"}]


async def test_a_request_that_breaks_off_breaks_nothing(tmp_path: Path):
    app = Server({"": ServedAgent(backend_for(DESK), Store(tmp_path), "desk", {})}, CARD).app()
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
    told = iter([{"type": "http.request", "body": b"{", "more_body": True}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(told, {"type": "http.disconnect"})

    async def answered(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, answered)
    assert sent[0]["status"] == 400


@pytest.mark.parametrize(
    "options, said",
    [
        (["--host", "0.0.0.0"], "--token-env"),
        (["--token-env", "NOT_SET"], "NOT_SET is not set"),
        (["--token-env", "ONE", "--token-env", "TWO"], "ONE and TWO hold the same token"),
        (["--store", "off"], "the store is off"),
    ],
)
def test_one_that_could_be_asked_by_anybody_does_not_start(
    options: list[str], said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ONE", "sesame")
    monkeypatch.setenv("TWO", "sesame")
    ended = CliRunner().invoke(main, ["serve", f"{AGENT}:agent", "--port", "0", *options])
    assert ended.exit_code == 3
    assert said in ended.stderr
    assert "sesame" not in ended.output
