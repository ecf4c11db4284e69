"""Run by the Python that has google-adk's eval extra: sets played with services of the author's.

Prints a JSON object: for each question by its name, what came of it.
"""

import asyncio
import json
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.adk.apps import App
from google.adk.artifacts import FileArtifactService, InMemoryArtifactService
from google.adk.events import Event
from google.adk.sessions import (
    BaseSessionService,
    DatabaseSessionService,
    InMemorySessionService,
    Session,
)
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from backends.adk.scripts import agent, case
from backends.adk.served_set import LINES, OSLO, THANKS, one, told, weather
from greenroom import Case, EvalSet, Report
from greenroom.suite.adk.service import evaluate_in_adk

CASES = EvalSet(
    "weather",
    [
        Case(f"case {n}", turns=[OSLO, THANKS], mocks={"weather": f"{n}"}, state={"user": {"n": n}})
        for n in range(2)
    ],
)
FILES = ("bill.png", "user:me.png")
PHOTO = types.Part(inline_data=types.Blob(data=b"photo", mime_type="image/png"))


def clerk(**options: Any) -> Any:
    return agent("clerk", *LINES, tools=[weather], **options)


def in_words(event: Event) -> list[Any]:
    """Who said, called or was answered what."""
    found: list[Any] = []
    for part in (event.content.parts if event.content else None) or []:
        if part.function_call:
            found.append([part.function_call.name, part.function_call.args])
        elif part.function_response:
            found.append(part.function_response.response)
        else:
            found.append(part.text)
    return [event.author, *found]


async def played_with(service: BaseSessionService) -> Any:
    report: Report = await evaluate_in_adk(
        clerk(), CASES, trials=2, concurrency=4, session_service=service
    )
    listed = await service.list_sessions(app_name="weather", user_id="greenroom")
    sessions: dict[str, Any] = {}
    for each in listed.sessions:
        found = await service.get_session(
            app_name="weather", user_id="greenroom", session_id=each.id
        )
        sessions[each.id] = [in_words(event) for event in found.events] if found else None
    return {"results": [told(result) for result in report], "sessions": sessions}


async def copied() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        kinds: dict[str, Callable[[], BaseSessionService]] = {
            "memory": InMemorySessionService,
            "sqlite": lambda: SqliteSessionService(f"{folder}/one.db"),
            "database": lambda: DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/two.db"),
        }
        found: dict[str, Any] = {}
        for name, opened in kinds.items():
            service = opened()
            found[name] = await played_with(service)
            if isinstance(service, DatabaseSessionService):
                await service.close()
        return found


async def bare() -> Any:
    report: Report = await evaluate_in_adk(clerk(), CASES, trials=2, concurrency=4)
    return [told(result) for result in report]


async def app_named() -> Any:
    service = InMemorySessionService()
    app = App(name="shop", root_agent=agent("clerk", "done"))
    await one(app, case(state={"session": {"a": 1}}), {}, session_service=service)
    (session,) = (await service.list_sessions(app_name="shop", user_id="greenroom")).sessions
    return [session.id.rpartition("-")[0], session.state]


class Broken(InMemorySessionService):
    """Takes one event and no more."""

    async def append_event(self, session: Session, event: Event) -> Event:
        if session.events:
            raise OSError("disk full")
        return await super().append_event(session, event)


class Remote(InMemorySessionService):
    """Would keep its sessions elsewhere."""

    async def create_session(self, **options: Any) -> Session:
        socket.create_connection(("127.0.0.1", 9), timeout=5).close()
        return await super().create_session(**options)


async def broken() -> Any:
    found: dict[str, Any] = {}
    for kind in (Broken, Remote):
        report: Report = await evaluate_in_adk(clerk(), CASES, trials=2, session_service=kind())
        found[kind.__name__] = [told(result) for result in report]
    return found


async def save(callback_context: Any) -> None:
    """Put files away, as an agent's callback would."""
    for name in FILES:
        before = await callback_context.load_artifact(name)
        callback_context.state[f"saw {name}"] = "new" if before is None else "left behind"
        await callback_context.save_artifact(name, PHOTO)


async def files() -> Any:
    """Which files are where after two trials, and whether a trial found one there before."""
    with tempfile.TemporaryDirectory() as folder:
        kept, sessions = FileArtifactService(folder), InMemorySessionService()
        asked = EvalSet("files", [case("one"), case("two")])
        report: Report = await evaluate_in_adk(
            agent("clerk", "done", before_agent_callback=save),
            asked,
            {},
            trials=2,
            concurrency=4,
            session_service=sessions,
            artifact_service=kept,
        )
        found: list[Any] = []
        for each in (await sessions.list_sessions(app_name="files", user_id="greenroom")).sessions:
            place: dict[str, Any] = {
                "app_name": "files",
                "user_id": "greenroom",
                "session_id": each.id,
            }
            photo = await kept.load_artifact(filename="bill.png", **place)
            versions = await kept.list_versions(filename="bill.png", **place)
            found.append([[each.state[f"saw {n}"] for n in FILES], versions, photo == PHOTO])
        return {
            "results": [told(one) for one in report],
            "files": found,
            "saved": names_in(Path(folder)),
        }


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.png") if path.is_file())


class Full(InMemoryArtifactService):
    """Has no room."""

    async def save_artifact(self, **_: Any) -> int:
        raise OSError("disk full")


class Far(InMemoryArtifactService):
    """Would keep its files elsewhere."""

    async def save_artifact(self, **asked: Any) -> int:
        socket.create_connection(("127.0.0.1", 9), timeout=5).close()
        return await super().save_artifact(**asked)


async def save_anyway(callback_context: Any) -> None:
    """Does not mind if nothing is saved."""
    with suppress(Exception):
        await save(callback_context)


async def broken_files() -> Any:
    careless = agent("clerk", "done", before_agent_callback=save_anyway)
    return [
        await one(careless, case(), {}, artifact_service=service) for service in (Full(), Far())
    ]


QUESTIONS = (copied, bare, app_named, broken, files, broken_files)


async def main() -> None:
    warnings.simplefilter("ignore")
    answers = {question.__name__: await question() for question in QUESTIONS}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
