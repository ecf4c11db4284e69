"""Runs of a clerk who looks things up, cut where a test wants it and taken up again."""

from pathlib import Path
from typing import Any

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Report,
    Turn,
    call,
    evaluate,
    tool,
)
from greenroom.metrics import contains
from greenroom.models import ModelRequest
from greenroom.store import Store
from store.asked import Asked


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


def answer(request: ModelRequest) -> Any:
    """A look first, then what was found."""
    if request.n % 2 == 0:
        return call("look", key=f"k{request.n}")
    return f"Answer {request.n}: {request.last}"


def clerk(model: Any, instructions: str = "Be brief.") -> Agent:
    return Agent("clerk", model=model, instructions=instructions, tools=[look])


def case(name: str, *turns: str, **options: Any) -> Case:
    said = [Turn(text) for text in turns or ("Hello", "And now?")]
    given: dict[str, Any] = {"mocks": {"look": f"found {name}"}, **options}
    return Case(name, turns=said, **given)


def cases(*names: str) -> EvalSet:
    return EvalSet("errands", [case(name) for name in names or ("a", "b", "c")])


OK = contains("Answer", name="ok")
PER_TRIAL = 4
"""How often a trial of `case` asks its model: twice in each of its two turns."""


async def cut_run(place: Path, evalset: EvalSet, at: int, **options: Any) -> Asked:
    """A run that was stopped at the `at`-th question."""
    model = Asked(answer, cut=at)
    given: dict[str, Any] = {"metrics": [OK], "concurrency": 1, **options}
    await evaluate(clerk(model), evalset, store=place, cancel=model.cancel, **given)
    return model


async def resumed(place: Path, evalset: EvalSet, **options: Any) -> tuple[Report, Asked]:
    model = Asked(answer)
    given: dict[str, Any] = {"metrics": [OK], "concurrency": 1, "resume": True, **options}
    agent = given.pop("agent", None) or clerk(model)
    return await evaluate(agent, evalset, store=place, **given), model


def ids(report: Report) -> list[str]:
    return [result.label for result in report]


def statuses(report: Report) -> list[str]:
    return [result.status for result in report]


def left_files(place: Path) -> list[Path]:
    """The files in which a journal has anything."""
    [run] = Store(place).runs()
    files = [path for path in (place / "journals" / run.id).iterdir() if path.name != "lock"]
    return sorted(path for path in files if path.read_bytes().strip(b"\0"))
