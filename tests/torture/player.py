"""One evaluation in a process of its own, for others to kill.

    player.py <store> <report> <port> <process>

It goes on with the run that is in the store, if there is one. A line on stdout acknowledges each
finished trial; the report is written at the end.
"""

import asyncio
import importlib
import json
import os
import re
import signal
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from greenroom import Agent, Case, EvalSet, SimulatedUser, Stop, UserAgents, call, rehearse, tool
from greenroom.ledger.messages import Usage
from greenroom.metrics import called, contains
from greenroom.metrics.judges import judge
from greenroom.models import ModelReply, ModelRequest
from greenroom.models.model import OnDelta
from greenroom.results import CaseResult
from greenroom.store import Store, failpoints
from store.timeless import timeless

importlib.reload(failpoints)  # which a fork has imported before it knew where to crash

CASES = 6


class Far:
    """A model behind a socket."""

    def __init__(self, port: int, process: int, name: str = "far") -> None:
        self.name = name
        self._port = port
        self._process = process

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """What the other side of the socket says."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(json.dumps(self._asked(request)).encode() + b"\n")
        answer = json.loads(await reader.read())
        writer.close()
        calls = tuple(call(name, **args) for name, args in answer.get("calls", ()))
        return ModelReply(answer.get("text", ""), calls, Usage(10, 5), 0.001, "", self.name)

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        shown = repr([(m.role, m.text, m.calls) for m in request.messages]) + request.instructions
        found = re.search(r"\[(case-\d+)\]", shown)
        assert found is not None, shown
        return {
            "process": self._process,
            "case": found[1],
            "who": request.agent,
            "n": request.n,
            "mark": blake2b(shown.encode(), digest_size=6).hexdigest(),
        }


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool
def note(text: str) -> str:
    """Write something down."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


def noted(text: str, ctx: Any) -> int:
    """A mock that changes the state, which a trial that goes on must find again."""
    ctx.state.session["notes"] = [*ctx.state.session.get("notes", []), text]
    return len(ctx.state.session["notes"])


def cases(model: Far) -> EvalSet:
    patient = SimulatedUser("Ill since Monday.", name="patient", stop_signal="BYE", model=model)
    user = UserAgents(loop=patient, tools={"ask": Agent("helper", model=model)})
    return EvalSet(
        "torture",
        [
            Case(
                f"case-{i}",
                f"Hello, this is [case-{i}].",
                user=user,
                mocks={"look": f"found {i}", "note": noted},
                state={"session": {}},
                stop=Stop(max_turns=20),
            )
            for i in range(CASES)
        ],
    )


def acknowledge(result: CaseResult) -> None:
    os.write(1, f"{result.case_id}\n".encode())


def main() -> None:
    # A test that runs in the background hands an ignored SIGINT down to its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    place, target, port, process = sys.argv[1:]
    model = Far(int(port), int(process))
    known = Store(place).runs()
    report = rehearse(
        Agent("clerk", model=model, tools=[look, note, ask]),
        cases(model),
        store=place,
        resume=known[0].id if known else False,
        metrics=[
            contains("answer", name="answers"),
            called("look"),
            judge("kind", "Is it kind?", model=Far(int(port), int(process), "judge"), samples=2),
        ],
        concurrency=3,
        on_case_complete=acknowledge,
    )
    told = {"id": report.id, "report": timeless(report)}
    Path(target).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
