"""Plays on the server: each has a child process and a file, and the file outlives the process."""

import asyncio
import json
import os
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenroom.apps.web.children import check_model
from greenroom.apps.web.player import write_private
from greenroom.cases.liveness import is_live
from greenroom.errors import BadInput, GreenroomError, NotFound
from greenroom.ledger.events import UserSaid
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.money import money
from greenroom.ledger.plain import Json, as_object, is_object
from greenroom.ledger.private_folders import make_private
from greenroom.ledger.questions import started
from greenroom.results.words import dollars, shortened
from greenroom.store import Store
from greenroom.store.configuration import withheld, without

_MOST = 8
"""How many children may rest at once; the one that has been idle longest is let go."""
_PATIENCE = 180.0
_LONGEST_LINE = 64 * 1024 * 1024
_LONGEST_WORDS = 120
_PLAYS = "plays"
_SETTINGS = ("user", "mocks", "state")


class PlayBroke(GreenroomError):
    """The child of a play died, or did not answer."""


@dataclass(slots=True, eq=False)
class _Table:
    """One play: its settings, and its child process while there is one."""

    id: str
    agent: int
    settings: dict[str, Json]
    forked_from: str = ""
    cost: float = 0.0
    """What its models have cost so far, as far as prices are known."""
    code: float = 0.0
    """When the agent's file was last changed, as of the child's import."""
    child: asyncio.subprocess.Process | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def note(self, reference: str) -> str:
        """The play's settings, kept next to its ledger; its agent by name, since another server numbers agents anew."""
        kept = {"agent": reference, "settings": self.settings, "forked_from": self.forked_from}
        return json.dumps(kept)


class Plays:
    """All plays of one server; those of earlier servers are found in the folder."""

    def __init__(self, store: Store, agents: Sequence[str], budget: float) -> None:
        self._place = store.place
        self._folder = store.place / _PLAYS
        self._store = store.address
        self._agents = agents
        self._budget = budget
        self._tables: dict[str, _Table] = {}

    async def begin(self, asked: Mapping[str, Json]) -> dict[str, Any]:
        """A new play."""
        agent = asked.get("agent", 0)
        if type(agent) is not int or not 0 <= agent < len(self._agents):
            raise BadInput(f"agent {agent!r} was not given when the server was started.")
        settings = {name: asked[name] for name in _SETTINGS if asked.get(name)}
        user = settings.get("user")
        if is_object(user):
            check_model(str(user.get("model") or ""))
        table = _Table(secrets.token_hex(4), agent, settings)
        found = await self._ask(table, {"do": "begin", **settings})
        self._keep(table)
        return found

    async def take_over(
        self, recorded: Ledger, reference: str, at: int | None, *, model: str
    ) -> dict[str, Json]:
        """A play that continues a recorded trial: from before an event, or from its end.

        If a `model` answered in place of the agent's own, it goes on answering.
        """
        if reference not in self._agents:
            raise BadInput(
                f"this trial is of {reference or 'an agent without a name'!r}, which this server was not "
                f"started with: greenroom web {shlex.quote(reference or 'AGENT')}."
            )
        check_model(model)
        settings = settings_of(recorded) | ({"model": model} if model else {})
        table = _Table(secrets.token_hex(4), list(self._agents).index(reference), settings)
        file = self._folder / f"{table.id}.from.jsonl"
        make_private(self._place, _PLAYS)
        recorded.save(file)  # includes attachments, so that the child finds them
        file.chmod(0o600)
        try:
            move = {"do": "fork_from", "file": file.name, "at": at}
            found = await self._ask(table, {**move, **settings})
        except GreenroomError:
            await _dismiss(table)
            raise
        finally:
            file.unlink()
        self._keep(table)
        return found

    async def look(self, play_id: str) -> dict[str, Json]:
        """The current state of a play."""
        return await self._ask(self._table(play_id), {"do": "look"})

    async def move(self, play_id: str, do: str, asked: Mapping[str, Json]) -> dict[str, Json]:
        """Say, answer, simulate, change mocks."""
        table = self._table(play_id)
        if table.cost >= self._budget > 0:
            raise BadInput(
                f"this conversation has cost {dollars(table.cost)}, and the server may spend ${money(self._budget)} on "
                f"one. `greenroom web --budget USD` raises that."
            )
        found = await self._ask(table, {**asked, "do": do})
        if do == "mocks":
            table.settings["mocks"] = found["mocks"]
            self._keep(table)
        return found

    async def fork(self, play_id: str, asked: Mapping[str, Json]) -> dict[str, Any]:
        """Another play that continues from before an event."""
        table = self._table(play_id)
        other = _Table(secrets.token_hex(4), table.agent, dict(table.settings), play_id)
        move = {"do": "fork", "at": asked.get("at"), "mocks": asked.get("mocks") or {}}
        await self._say(table, {**move, "file": f"{other.id}.jsonl"})
        self._keep(other)
        found = await self.look(other.id)
        if asked.get("mocks"):
            return await self.move(other.id, "mocks", {"mocks": asked["mocks"]})
        return found

    async def case(self, play_id: str, case_id: str) -> dict[str, Any]:
        """The play as the data of a case."""
        return await self._say(self._table(play_id), {"do": "case", "id": case_id})

    async def describe(self, agent: int) -> dict[str, Any]:
        """How an agent of this server is made, as reported by a child that imports it."""
        if not 0 <= agent < len(self._agents):
            raise NotFound(f"there is no agent {agent} among those this server was started with.")
        table = _Table(f"agent{agent}", agent, {})
        try:
            found, ref = await self._say(table, {"do": "describe"}), self._agents[agent]
            return {**found, "ref": ref, "name": found["name"] or ref}
        finally:
            await _dismiss(table)

    def all(self) -> list[dict[str, Json]]:
        """Every play that is kept, the latest first."""
        files = sorted(self._folder.glob("*.json"), key=lambda file: -file.stat().st_mtime)
        found: list[dict[str, Json]] = []
        for file in files:
            with suppress(NotFound):  # of an agent that this server was not given
                agent = self._table(file.stem).agent
                found.append({"id": file.stem, "agent": agent, **self._line(file, agent)})
        return found

    def _line(self, note: Path, agent: int) -> dict[str, Json]:
        """What distinguishes a play from the others: its first words, its length, when it was last used."""
        line: dict[str, Json] = {"name": self._agents[agent], "at": note.stat().st_mtime}
        with suppress(OSError, GreenroomError):
            ledger = Ledger.load(note.with_suffix(".jsonl"))
            first = next((event.text for event in ledger.of(UserSaid)), "")
            line |= {"events": len(ledger), "says": shortened(first, _LONGEST_WORDS)}
        return line

    async def close(self) -> None:
        """End all children; their plays are kept in files."""
        for table in self._tables.values():
            await _dismiss(table)

    # Inside

    def _table(self, play_id: str) -> _Table:
        if play_id in self._tables:
            self._tables[play_id] = self._tables.pop(play_id)
            return self._tables[play_id]
        if not play_id.isalnum() or not (note := self._folder / f"{play_id}.json").is_file():
            raise NotFound(f"there is no play {play_id!r}. Begin another one.")
        kept = json.loads(note.read_text())
        if kept["agent"] not in self._agents:
            raise NotFound(
                f"play {play_id!r} is of {kept['agent']}, which this server was not given."
            )
        number = list(self._agents).index(kept["agent"])
        table = _Table(play_id, number, kept["settings"], kept["forked_from"])
        self._tables[play_id] = table
        return table

    def _keep(self, table: _Table) -> None:
        self._tables[table.id] = table
        note = table.note(self._agents[table.agent])
        write_private(note, self._folder / f"{table.id}.json")

    async def _ask(self, table: _Table, move: Mapping[str, Json]) -> dict[str, Any]:
        found = await self._say(table, move)
        table.cost = found.get("cost") or table.cost
        changed = _changed(self._agents[table.agent])
        about = {"id": table.id, "agent": table.agent, "forked_from": table.forked_from}
        name = self._agents[table.agent]
        return {**found, **about, "name": name, "changed": changed != table.code}

    async def _say(self, table: _Table, move: Mapping[str, Json]) -> dict[str, Any]:
        """One move, answered by the child; a child that is gone is replaced, and the new one continues the play."""
        async with table.lock:
            if table.child is None or table.child.returncode is not None:
                await self._hire(table)
                if move["do"] not in ("begin", "fork_from", "take_up", "describe"):
                    await self._exchange(table, {"do": "take_up", **table.settings})
            return await self._exchange(table, move)

    async def _exchange(self, table: _Table, move: Mapping[str, Json]) -> dict[str, Any]:
        child = table.child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(move).encode() + b"\n")
            await child.stdin.drain()
            async with asyncio.timeout(_PATIENCE):
                line = await child.stdout.readline()
        except (TimeoutError, OSError, ValueError):
            line = b""
        if not line.endswith(b"\n"):
            await _dismiss(table)
            raise PlayBroke(
                "the process that runs this conversation has died; what it had finished is kept. Try again."
            )
        found = json.loads(line)
        if "error" in found:
            raise BadInput(found["error"])
        return found["play"]

    async def _hire(self, table: _Table) -> None:
        resting = [one for one in self._tables.values() if one.child is not None]
        for idle in resting[: max(len(resting) - _MOST + 1, 0)]:
            await _dismiss(idle)
        make_private(self._place, _PLAYS)
        reference = self._agents[table.agent]
        table.code = _changed(reference)
        table.child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "greenroom.apps.web.player",
            reference,
            str(self._folder / f"{table.id}.jsonl"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
            start_new_session=True,
            env=without(withheld(self._store), os.environ),
        )


def settings_of(recorded: Ledger) -> dict[str, Json]:
    """Mocks, state and user of the case that was recorded, as far as they are data and not code."""
    first = started(recorded)
    case = as_object(first.case) if first is not None and is_object(first.case) else {}
    found = {name: case[name] for name in _SETTINGS if case.get(name)}
    mocks = found.get("mocks")
    if is_object(mocks):
        found["mocks"] = {name: mock for name, mock in mocks.items() if not is_live(mock)}
    user = found.get("user")
    if is_object(user) and ".py" in str(user.get("model") or ""):
        del found["user"]  # the page must not name code
    return {name: value for name, value in found.items() if value and not is_live(value)}


async def _dismiss(table: _Table) -> None:
    child, table.child = table.child, None
    if child is not None and child.returncode is None:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()


def _changed(reference: str) -> float:
    """When the file of an agent was last written; 0 if that is not known."""
    where = Path(reference.partition(".py:")[0] + (".py" if ".py:" in reference else ""))
    with suppress(OSError):
        return where.stat().st_mtime
    return 0.0
