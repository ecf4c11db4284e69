"""The child process of a play: it imports the agent, holds one rehearsal, and takes moves as JSON lines.

Every move is answered by one line on what was standard output; what the agent prints goes elsewhere. After
each move the ledger is in its file, so a child that dies loses only the move in progress.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from greenroom.agents import check
from greenroom.agents.costs import estimate
from greenroom.agents.costs.tables import estimate_table
from greenroom.agents.data_links import data_links
from greenroom.agents.flow import Flow
from greenroom.agents.mermaid import mermaid
from greenroom.backends.registry import backend_for
from greenroom.cases.data import case_data
from greenroom.cases.files.save import save_text
from greenroom.cases.from_runs import harvest
from greenroom.cases.reader import case_from
from greenroom.errors import BadInput, GreenroomError
from greenroom.ledger.events import RunResumed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, as_object, is_object, plain
from greenroom.ledger.questions import cost, ended
from greenroom.reports.page.graph import graph_of
from greenroom.reports.page.shapes import AgentDetails, Part, Play, Waiting
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.story import state_places
from greenroom.reports.page.timeline import timeline
from greenroom.simulation.rehearsal import Rehearsal, Rest
from greenroom.suite.inputs.import_rules import only_rehearsing
from greenroom.suite.inputs.references import load_agent
from greenroom.suite.mock_suggestions import suggested_mock


class Player:
    """One play: an agent, a rehearsal of it, and the file that keeps it."""

    def __init__(self, agent: object, file: Path) -> None:
        self._agent = agent
        self._file = file
        self._model: Json = None
        self._rest = Rest()
        self._play = Rehearsal(agent)

    async def do(self, move: dict[str, Json]) -> object:
        """Make a move; returns the play afterwards."""
        match move["do"]:
            case "begin":
                self._begin(move)
            case "take_up":
                await self._take_up(move)
            case "fork_from":
                self._begin(move)
                await self._fork_from(Ledger.load(self._file.with_name(str(move["file"]))), move)
            case "say":
                self._rest = await self._play.say(str(_given(move, "text")))
            case "answer":
                self._rest = await self._play.answer(as_object(_given(move, "answers")))
            case "simulate":
                self._rest = await self._play.let_user_answer()
            case "mocks":
                self._play.give_mocks(mocks_from(move))
                if self._rest.refused:
                    self._rest = await self._play.go_on()
            case "fork":
                return self._fork(move)
            case "look":
                pass
            case "describe":
                return agent_data(self._agent)
            case "case":
                return case_data(harvest(self._play.ledger, str(move["id"])))
            case other:
                raise BadInput(f"{other!r} is not a move.")
        write_private(self._play.ledger.dumps(), self._file)
        return play_data(self._play, self._rest, self._agent)

    def _begin(self, move: dict[str, Json]) -> None:
        case = case_from(
            {
                "id": "play",
                **{name: move[name] for name in ("user", "mocks", "state") if move.get(name)},
            }
        )
        self._model = move.get("model")
        self._play = Rehearsal(self._agent, case, model=self._model)

    async def _take_up(self, move: dict[str, Json]) -> None:
        """Continue a play that rests in its file."""
        self._begin(move)
        ledger = Ledger.load(self._file) if self._file.exists() else Ledger()
        self._play = self._continuing(ledger)
        end = ended(ledger)
        if end is not None:
            how = "finished" if end.reason == "finished" else "error"
            self._rest = Rest(ended=how, error=end.error)
        elif len(ledger):
            self._rest = await self._play.go_on()

    async def _fork_from(self, recorded: Ledger, move: dict[str, Json]) -> None:
        """Continue a recorded trial from before an event; from its end if none is named."""
        at: object = move["at"]
        end = len(recorded) - (ended(recorded) is not None)
        self._play = self._continuing(recorded).fork(end if type(at) is not int else at)
        self._rest = await self._play.go_on()

    def _continuing(self, ledger: Ledger) -> Rehearsal:
        return Rehearsal(self._agent, self._play.case, ledger=ledger, model=self._model)

    def _fork(self, move: dict[str, Json]) -> Json:
        at: object = move["at"]
        if type(at) is not int:
            raise BadInput(f"at {at!r} should be the number of an event.")
        other = self._play.fork(at, mocks_from(move))
        target = self._file.with_name(str(move["file"]))
        write_private(other.ledger.dumps(), target)
        return {"forked": target.stem}


def mocks_from(move: dict[str, Json]) -> dict[str, Any]:
    """Mocks as an eval-set file writes them."""
    given = as_object(move.get("mocks") or {})
    taken_away = {name: None for name, mock in given.items() if mock is None}
    kept = {name: mock for name, mock in given.items() if mock is not None}
    return {**case_from({"id": "play", "mocks": kept}).mocks, **taken_away} if given else {}


def _given(move: dict[str, Json], name: str) -> Json:
    if name not in move:
        raise BadInput(f"the request has no {name!r}, which the move {move['do']!r} needs.")
    return move[name]


def write_private(text: str, file: Path) -> None:
    """Write text to a file that only this user can read."""
    save_text(text, file)
    file.chmod(0o600)


# As the page shows it


def play_data(play: Rehearsal, rest: Rest, agent: object) -> Play:
    """A play for the page: what has happened, what the agent waits for, and which tools need a mock."""
    tools = backend_for(agent).tools or {}
    ledger = play.ledger
    # The pauses between two moves are not shown.
    pauses = {event.seq for event in ledger.of(RunResumed)}
    lacking = {name: suggested_mock(tools[name]) if name in tools else {} for name in rest.refused}
    return Play(
        id="",
        agent=0,
        state="ended" if rest.ended == "finished" else "broken" if rest.ended else "resting",
        timeline=[row for row in timeline(ledger, Trimmer()) if row.get("seq") not in pauses],
        values=list(state_places(ledger.fold())),
        waits=[
            Waiting(id=wait.id, tool=wait.tool, prompt=wait.prompt, args=plain(wait.args))
            for wait in rest.waits
        ],
        mocks=as_object(case_data(play.case).get("mocks") or {}),
        tools=list(tools),
        asking=[name for name, facts in tools.items() if facts.yields],
        missing=dict[str, Json](lacking),
        error=rest.error,
        cost=cost(ledger) if len(ledger) else None,
        events=len(ledger),
    )


def agent_data(agent: object) -> AgentDetails:
    """An agent for the page: its graph, its contract issues, and which node reads what another wrote."""
    backend = backend_for(agent)
    facts = as_object(backend.snapshot) if is_object(backend.snapshot) else {}
    name = str(facts.get("name") or "")
    graph = graph_of(backend.snapshot) or Part(kind="agent", name=name)
    if not isinstance(agent, Flow):
        why = f"Contracts are checked only for Greenroom's own agents; this one is run by {backend.name}."
        return AgentDetails(ref="", name=name, graph=graph, why=why)
    issues: list[dict[str, Json]] = [
        {"code": one.kind, "text": one.says, "place": one.node, "hint": one.fix}
        for one in check(agent)
    ]
    return AgentDetails(
        ref="",
        name=name,
        graph=graph,
        mermaid=mermaid(backend.snapshot),
        issues=issues,
        links=[(link.writer, link.reader, link.place) for link in data_links(facts)],
        estimate=estimate_table(estimate(agent)),
    )


# The process


async def main(reference: str, file: str) -> None:
    """Read moves from standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the agent prints goes to standard error
    sys.stdout = sys.stderr
    player: Player | None = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            if player is None:
                player = Player(await load_agent(reference), Path(file))
            found: dict[str, Json] = {"play": to_builtins(await player.do(json.loads(line)))}
        except GreenroomError as error:
            found = {"error": str(error), "kind": type(error).__name__}
        except Exception as error:  # noqa: BLE001 - the author's code, whatever it raises when it is imported
            found = {"error": f"{type(error).__name__}: {error}", "kind": "BadInput"}
        answers.write(f"{json.dumps(found)}\n")
        answers.flush()


if __name__ == "__main__":
    with only_rehearsing():
        asyncio.run(main(*sys.argv[1:]))
