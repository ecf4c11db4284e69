"""Whose conversations are whose: users, other agents in the same store, and the traces of those who ask."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from greenroom import step
from greenroom.apps.serving.app import Server
from greenroom.apps.serving.requests import INTERNAL
from greenroom.apps.serving.served import ServedAgent
from greenroom.backends.a2a import card_of
from greenroom.backends.registry import backend_for
from greenroom.errors import GreenroomError
from greenroom.store import Store

UNKNOWN = -32001


@step
def remember(input: str, ctx: Any) -> str:
    """Say what this user said before, in any conversation."""
    before = [*ctx.state.user.get("said", [])]
    ctx.state.user["said"] = [*before, input]
    return f"before: {', '.join(before)}"


def served(agent: Any, folder: Path, users: Mapping[str, str]) -> Starlette:
    """The app of `greenroom serve`, for these users by their tokens."""
    backend, card = backend_for(agent), card_of(agent, "http://127.0.0.1/")
    agents = {
        token: ServedAgent(backend, Store(folder), card.name, {}, user=user)
        for token, user in users.items()
    }
    return Server(agents, card).app()


class Caller:
    """One who asks, with a token."""

    def __init__(self, app: Starlette, token: str = "", **headers: str) -> None:
        given = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://127.0.0.1",
            headers={**given, **headers},
        )

    async def ask(self, method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await self._http.post("/", json=body)
        assert answer.status_code == 200, answer.text
        told = answer.json()
        return told["result"] if "result" in told else told["error"]["code"]

    async def say(self, text: str, id: str, **where: str) -> Any:
        message = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}], **where}
        told = await self.ask("SendMessage", message=message)
        return told["task"] if isinstance(told, dict) else told


def answer(task: Any) -> str:
    return task["artifacts"][0]["parts"][0]["text"]


@pytest.fixture
def callers(tmp_path: Path) -> tuple[Caller, Caller]:
    app = served(remember, tmp_path, {"a-token": "ALICE", "b-token": "BOB"})
    return Caller(app, "a-token"), Caller(app, "b-token")


async def test_a_damaged_store_is_an_answer_to_the_caller_and_a_line_in_the_log(tmp_path: Path):
    told: list[str] = []
    agent = ServedAgent(backend_for(remember), Store(tmp_path), "desk", {}, report=told.append)
    caller = Caller(Server({"": agent}, card_of(remember, "http://127.0.0.1/")).app())
    await caller.say("hello", "1")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("update conversations set begun = 'junk'")
    assert await caller.ask("ListTasks") == INTERNAL
    [line] = told
    assert line.startswith("ListTasks: the store")
    assert "it is damaged: its column 'begun'" in line


async def test_a_server_whose_store_is_damaged_stops_with_the_reason(tmp_path: Path):
    agent = ServedAgent(backend_for(remember), Store(tmp_path), "desk", {})
    server = Server({"": agent}, card_of(remember, "http://127.0.0.1/"))
    await Caller(server.app()).say("hello", "1")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("update conversation_events set line = 'junk'")
    failures: list[GreenroomError] = []
    app = server.app(on_failure=failures.append)
    async with app.router.lifespan_context(app):
        pass
    [error] = failures
    assert "it is damaged: its column 'line'" in str(error)


@pytest.mark.parametrize(
    "damage",
    [
        "delete from conversation_events where seq = 2 or seq > 4",
        "update conversation_events set line = x'7b0a'",
    ],
)
async def test_a_conversation_that_is_damaged_is_named_and_keeps_no_other_from_going_on(
    damage: str, tmp_path: Path
):
    told: list[str] = []
    agent = ServedAgent(backend_for(remember), Store(tmp_path), "desk", {}, report=told.append)
    await Caller(Server({"": agent}, card_of(remember, "http://127.0.0.1/")).app()).say("hi", "1")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute(damage)
    assert await agent.resume() == 0
    [line] = told
    assert "cannot be continued: " in line


async def test_each_token_is_a_user_with_state_of_its_own(callers: tuple[Caller, Caller]):
    alice, bob = callers
    await alice.say("my secret", "1", contextId="first")
    assert answer(await alice.say("more", "2", contextId="second")) == "before: my secret"
    assert answer(await bob.say("hello", "3", contextId="first")) == "before: "


async def test_what_one_user_does_is_unknown_to_another(callers: tuple[Caller, Caller]):
    alice, bob = callers
    task = await alice.say("my secret", "1", contextId="chat")
    assert (await alice.ask("GetTask", id=task["id"]))["id"] == task["id"]
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        assert await bob.ask(method, id=task["id"]) == UNKNOWN
    assert await bob.say("go on", "2", taskId=task["id"]) == UNKNOWN
    assert (await bob.ask("ListTasks"))["tasks"] == []
    assert (await bob.ask("ListTasks", contextId="chat"))["tasks"] == []
    assert len((await alice.ask("ListTasks"))["tasks"]) == 1


async def test_one_token_is_one_user_and_a_wrong_one_is_none(tmp_path: Path):
    app = served(remember, tmp_path, {"a-token": ""})
    await Caller(app, "a-token").say("once", "1")
    assert answer(await Caller(app, "a-token").say("twice", "2")) == "before: once"
    with pytest.raises(AssertionError, match="bearer"):
        await Caller(app, "b-token").say("mine", "3")


async def test_another_agent_in_the_same_store_knows_nothing_of_a_task(tmp_path: Path):
    @step
    def other(input: str) -> str:
        return input

    task = await Caller(served(remember, tmp_path, {"": ""})).say("my secret", "1")
    stranger = Caller(served(other, tmp_path, {"": ""}))
    assert await stranger.ask("GetTask", id=task["id"]) == UNKNOWN
    assert await stranger.ask("CancelTask", id=task["id"]) == UNKNOWN
    assert (await stranger.ask("ListTasks"))["tasks"] == []


async def test_a_tenant_is_refused_as_all_would_share_what_is_said(tmp_path: Path):
    caller = Caller(served(remember, tmp_path, {"": ""}))
    assert await caller.ask("ListTasks", tenant="acme") == -32004
    assert (await caller.ask("ListTasks", tenant=""))["tasks"] == []


async def test_a_first_message_that_comes_twice_is_acted_on_once(tmp_path: Path):
    caller = Caller(served(remember, tmp_path, {"": ""}))
    first, again = await asyncio.gather(caller.say("hi", "m1"), caller.say("hi", "m1"))
    assert (first["id"], first["contextId"]) == (again["id"], again["contextId"])
    later = await caller.say("hi", "m1")
    assert later["id"] == first["id"]
    assert answer(later) == "before: "
    assert answer(await caller.say("something else", "m1")) == "before: hi"


async def test_what_is_done_for_others_belongs_to_the_trace_of_the_one_who_asks(tmp_path: Path):
    from opentelemetry import trace

    traces: list[int] = []

    @step
    def look(input: str) -> str:
        traces.append(trace.get_current_span().get_span_context().trace_id)
        return input

    app = served(look, tmp_path, {"": ""})
    await Caller(app, traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01").say("hi", "1")
    await Caller(app).say("hi", "2")
    assert traces == [int("ab" * 16, 16), 0]
