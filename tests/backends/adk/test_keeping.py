"""What becomes of a run's session and files in services that the author named."""

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from google.adk.apps import App
from google.adk.artifacts import BaseArtifactService, InMemoryArtifactService
from google.adk.events import Event, EventActions
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from backends.adk.scripts import agent, case
from greenroom import Ledger, Turn, simulate, tool
from greenroom.backends.adk.served import APP, SESSION, USER, ServedBackend
from greenroom.errors import BadInput, GreenroomError, RunBroke
from greenroom.ledger import questions as q
from greenroom.suite.adk.sessions import Named, Place, SessionCopy, TrialFiles

PLACE = Place("shop", "one-1-aa")
WHOLE = ["session_service has session 'one-1-aa' of user 'greenroom' in app 'shop'"]
TOLD = ["one", "note", "noted", "done", "two", "fine"]


def note(city: str, tool_context: ToolContext) -> str:
    """Note the city."""
    tool_context.state["city"] = city
    tool_context.state["temp:near"] = city
    return "noted"


async def serve(served: ServedBackend[None], app: App) -> None:
    """A loop as simple as can be, with somebody else's session alongside its own."""
    await served.sessions.create_session(app_name=APP, user_id=USER, session_id=SESSION)
    other = await served.sessions.create_session(app_name=APP, user_id=USER, session_id="other")
    await served.sessions.append_event(other, Event(author="stranger"))
    runner = Runner(app=app, app_name=APP, session_service=served.sessions)
    events: list[Event] = []
    while line := await served.prompter.next_line(events):
        running = runner.run_async(user_id=USER, session_id=SESSION, new_message=line)
        events = [*events, *[event async for event in running]]


async def played(copy: SessionCopy) -> Ledger:
    clerk = agent("clerk", ("note", {"city": "Oslo"}), "done", "fine", tools=[note])
    served = ServedBackend(clerk, serve, copy)
    asked = case(
        says="",
        turns=[Turn("one"), Turn("two")],
        state={"session": {"a": [1]}, "user": {"b": 2}, "temp": {"c": 3}},
        allow_tools=["note"],
    )
    async with copy:
        ledger = await simulate(asked, served)
        await served.over()
    return ledger


def told(event: Event) -> str:
    """An event in one word."""
    (part,) = (event.content.parts if event.content else None) or []
    if part.function_call:
        return str(part.function_call.name)
    if part.function_response:
        return str((part.function_response.response or {})["result"])
    return str(part.text)


async def found_in(service: BaseSessionService, place: Place = PLACE) -> Session:
    found = await service.get_session(
        app_name=place.app, user_id=place.user, session_id=place.session
    )
    assert found is not None
    return found


def in_a_file(folder: Path) -> BaseSessionService:
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    return SqliteSessionService(str(folder / "sessions.db"))


# Early versions of Python 3.12 take the numbered parameters of google-adk's SQL for named ones.
@pytest.mark.filterwarnings("ignore:Binding .* is a named parameter:DeprecationWarning")
@pytest.mark.parametrize("opened", [lambda _: InMemorySessionService(), in_a_file])
async def test_the_copy_has_every_event_in_order_and_the_state(
    opened: Callable[[Path], BaseSessionService], tmp_path: Path
):
    service = opened(tmp_path)
    copy = SessionCopy(service, PLACE)
    ledger = await played(copy)
    assert q.ended(ledger)
    session = await found_in(service)
    assert [told(event) for event in session.events] == TOLD
    assert session.state == {"a": [1], "user:b": 2, "city": "Oslo"}
    assert copy.notes == WHOLE


class Slow(InMemorySessionService):
    """Takes its time."""

    async def append_event(self, session: Session, event: Event) -> Event:
        await asyncio.sleep(0.01)
        return await super().append_event(session, event)


async def test_a_slow_service_still_gets_everything_before_the_trial_is_over():
    service = Slow()
    await played(SessionCopy(service, PLACE))
    assert [told(event) for event in (await found_in(service)).events] == TOLD


class Meddling(InMemorySessionService):
    """Changes what it is given."""

    async def create_session(self, **options: Any) -> Session:
        options["state"]["a"].append("changed")
        return await super().create_session(**options)

    async def append_event(self, session: Session, event: Event) -> Event:
        event.content = types.Content(parts=[types.Part(text="changed")])
        return await super().append_event(session, event)


async def test_a_service_that_changes_its_copy_changes_nothing_else():
    first, second = [await played(SessionCopy(one(), PLACE)) for one in (Slow, Meddling)]
    assert [type(event) for event in first] == [type(event) for event in second]
    assert q.responses(first) == q.responses(second) == ["done", "fine"]
    assert q.state(first) == q.state(second)


class Broken(InMemorySessionService):
    """Breaks at its third event, by `trouble`."""

    count = 0

    async def append_event(self, session: Session, event: Event) -> Event:
        self.count += 1
        if self.count == 3:
            await self.trouble()
        return await super().append_event(session, event)

    async def trouble(self) -> None:
        raise OSError("disk full")


class Hanging(Broken):
    async def trouble(self) -> None:
        await asyncio.Event().wait()


class Blocking(Broken):
    async def trouble(self) -> None:
        for _ in range(1200):
            doze()


def doze() -> None:
    time.sleep(0.05)


class Deaf(Broken):
    """Does not want to hear that it is over."""

    async def trouble(self) -> None:
        for _ in range(1200):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)


class Phoning(Broken):
    async def trouble(self) -> None:
        socket.create_connection(("127.0.0.1", 9), timeout=5).close()


@tool
def pay(order: int) -> str:
    """Pay."""
    raise AssertionError("never reached")


class Paying(Broken):
    async def trouble(self) -> None:
        pay(7)


class Closed(InMemorySessionService):
    async def create_session(self, **_: Any) -> Session:
        raise ConnectionError("no such file")


@pytest.mark.parametrize("kind,copied,why", [
    (Broken, 2, "OSError('disk full')"),
    (Hanging, 2, "TimeoutError('not done within 1 s')"),
    (Blocking, 2, "TimeoutError('not done within 1 s')"),
    (Deaf, 2, "TimeoutError('not done within 1 s')"),
    (Phoning, 2, "service_hosts=[...], or keep the sessions in a local SQLite file"),
    (Paying, 2, "session_service called the tool 'pay'"),
    (Closed, 0, "ConnectionError('no such file')"),
])  # fmt: skip
async def test_a_copy_that_fails_is_told_and_leaves_the_run_alone(
    kind: type[InMemorySessionService], copied: int, why: str
):
    service = kind()
    copy = SessionCopy(service, PLACE, seconds=1)
    ledger = await played(copy)
    assert q.ended(ledger)
    assert q.responses(ledger) == ["done", "fine"]
    assert why in " ".join(copy.notes)
    assert f"Events copied: {copied};" in copy.notes[-1]
    assert "session 'one-1-aa' of user 'greenroom' in app 'shop', is incomplete" in copy.notes[-1]
    if copied:
        assert [told(event) for event in (await found_in(service)).events] == TOLD[:copied]


async def test_an_event_that_cannot_be_copied_is_told_and_does_not_break_the_run():
    event = Event(author="clerk", actions=EventActions(state_delta={"lock": Lock()}))
    async with SessionCopy(InMemorySessionService(), PLACE) as copy:
        copy.begin({})
        copy.keep(event)
    (note,) = copy.notes
    assert "cannot pickle" in note
    assert "Events copied: 0;" in note


async def test_a_service_that_swallows_its_refusal_is_told_of_too():
    class Swallowing(Phoning):
        async def trouble(self) -> None:
            with pytest.raises(PermissionError):
                await super().trouble()

    copy = SessionCopy(Swallowing(), PLACE)
    await played(copy)
    refused, whole = copy.notes
    assert "127.0.0.1" in refused
    assert "service_hosts=" in refused
    assert [whole] == WHOLE


async def test_a_host_that_was_named_is_reached():
    reached: list[int] = []

    async def answer(_: Any, writer: asyncio.StreamWriter) -> None:
        reached.append(1)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    class Remote(Broken):
        async def trouble(self) -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()

    copy = SessionCopy(Remote(), PLACE, hosts=[f"127.0.0.1:{port}"])
    await played(copy)
    server.close()
    assert (copy.notes, reached) == (WHOLE, [1])


async def test_a_trial_that_is_cut_does_not_wait_for_its_copy():
    copy = SessionCopy(Hanging(), PLACE)
    with pytest.raises(KeyError):
        async with copy:
            raise KeyError


# Places


@given(st.text(), st.text(min_size=1))
def test_every_trial_has_a_place_that_services_take(app: str, case_id: str):
    one, other = (Place.of_trial(app, case_id, 2) for _ in range(2))
    assert one.session != other.session
    assert set(one.session) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert one.session[0] != "-"
    assert "/" not in one.app
    assert one.app.strip(".")
    assert max(len(one.app), len(one.session)) <= 128


def test_a_place_tells_whose_it_is():
    place = Place.of_trial("Shop: March", "Refund twice", 3)
    assert (place.app, place.user) == ("Shop-March", "greenroom")
    assert place.session.startswith("refund-twice-3-")


# Files


def files(service: BaseArtifactService, name: str = "one") -> TrialFiles:
    return TrialFiles(service, Place("shop", name), (), lambda error: error)


async def test_no_trial_finds_the_files_of_another():
    service = InMemoryArtifactService()
    one, other = files(service, "one"), files(service, "two")
    here: dict[str, Any] = {"app_name": APP, "user_id": USER, "session_id": SESSION}
    for name in ("bill", "user:photo"):
        part = types.Part(text=name)
        assert await one.save_artifact(filename=name, artifact=part, **here) == 0
        assert await one.load_artifact(filename=name, **here) == part
        assert await other.load_artifact(filename=name, **here) is None
        assert await one.list_versions(filename=name, **here) == [0]
        assert await other.list_versions(filename=name, **here) == []
    assert await one.list_artifact_keys(**here) == ["bill", "user:photo"]
    assert await other.list_artifact_keys(**here) == []
    await one.delete_artifact(filename="bill", **here)
    assert await one.list_artifact_keys(**here) == ["user:photo"]


async def test_the_author_finds_a_file_beside_the_copy_of_its_session():
    service = InMemoryArtifactService()
    here = {"app_name": APP, "user_id": USER, "session_id": SESSION}
    await files(service).save_artifact(filename="bill", artifact=types.Part(text="7"), **here)
    found = await service.load_artifact(
        app_name="shop", user_id="greenroom", session_id="one", filename="bill"
    )
    assert found == types.Part(text="7")


@pytest.mark.parametrize("error,raised", [
    (OSError("disk full"), RunBroke),
    (ValueError("no such name"), ValueError),
])  # fmt: skip
async def test_only_what_is_no_answer_to_the_agent_breaks_the_trial(
    error: Exception, raised: type[Exception]
):
    class Full(InMemoryArtifactService):
        async def save_artifact(self, **_: Any) -> int:
            raise error

    kept: list[GreenroomError] = []

    def broke(error: GreenroomError) -> GreenroomError:
        kept.append(error)
        return error

    full = TrialFiles(Full(), PLACE, (), broke)
    with pytest.raises(raised, match=str(error)):
        await full.save_artifact(filename="bill", artifact=types.Part(text="7"))
    assert [type(one) for one in kept] == ([RunBroke] if raised is RunBroke else [])


# Doors


@pytest.mark.parametrize("given", [
    {"sessions": "sqlite:///sessions.db"},
    {"sessions": InMemorySessionService},
    {"artifacts": InMemorySessionService()},
    {"hosts": "db.example.com"},
])  # fmt: skip
def test_what_is_no_service_is_refused(given: dict[str, Any]):
    with pytest.raises(BadInput, match=r"_(service|hosts)=.*; give "):
        Named(**given)
