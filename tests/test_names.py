"""Every name that the table of names promises is there, with the options it is shown with."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import greenroom
from greenroom.apps.cli.commands import main
from greenroom.suite import Options

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "names.md"
ROOMS = [
    "agents",
    "cases",
    "models",
    "ledger",
    "metrics",
    "metrics.judges",
    "simulation",
    "suite",
    "results",
    "store",
    "world",
    "backends",
    "backends.a2a",
    "backends.adk",
    "errors",
    "telemetry",
    "traces",
    "testing",
    "reports.reporters",
    "cases.files",
    "cases.scenarios",
    "agents.mermaid",
    "apps.pytest_plugin",
    "suite.adk",
]
# What the examples call a thing of ours; each is looked up in its class.
THINGS = {
    "report": "results.Report",
    "result": "results.CaseResult",
    "ledger": "ledger.Ledger",
    "evalset": "cases.EvalSet",
    "ctx": "world.Context",
    "wait": "backends.Yield",
    "guess": "agents.Estimate",
    "store": "store.Store",
    "graph": "agents.Graph",
    "performance": "simulation.Performance",
    "step": "ledger.Step",
}
# Names of a reader's own, in examples.
OWN = {
    "BillingState",
    "EXACT",
    "Type",
    "agent",
    "app",
    "args",
    "baseline",
    "case",
    "cases",
    "changes",
    "data",
    "filter",
    "fn",
    "id",
    "key",
    "kind",
    "ledgers",
    "message",
    "metrics",
    "model",
    "name",
    "on",
    "open_db",
    "path",
    "pattern",
    "question",
    "reads",
    "refund",
    "result",
    "result_of_it",
    "reviewer",
    "scope",
    "seconds",
    "simulator",
    "snapshot",
    "state",
    "supervisor",
    "text",
    "tool",
    "url",
    "urls",
    "usd",
    "user",
    "user_agent",
    "value",
    "worker",
    "writer",
}


def cells() -> Iterator[tuple[int, str]]:
    """Every piece of code in the column of our names, with the line it stands in."""
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("|") or line.startswith("|---"):
            continue
        here = re.split(r"(?<!\\)\|", line)[-2]
        for code in re.findall(r"`([^`]+)`", here):
            yield number, code.replace("\\|", "|")


CELLS = list(cells())


def found(name: str) -> list[Any]:
    """The public things of that name, in whichever rooms."""
    places = ["greenroom", *(f"greenroom.{room}" for room in ROOMS)]
    rooms = [importlib.import_module(place) for place in places]
    return [getattr(room, name) for room in rooms if hasattr(room, name)]


def is_member(name: str) -> bool:
    """Whether one of the things that the examples speak of has it."""
    return any(has_member(thing, name) for kind in THINGS.values() for thing in found_at(kind))


def found_at(kind: str) -> list[Any]:
    room, _, name = kind.rpartition(".")
    return [getattr(importlib.import_module(f"greenroom.{room}"), name)]


def has_member(thing: Any, name: str) -> bool:
    return hasattr(thing, name) or name in getattr(thing, "__annotations__", {})


def parsed(code: str) -> ast.expr | None:
    """The code as Python, with something where the page leaves it open."""
    whole = code.replace("…", "...").removeprefix("await ").removeprefix("@")
    whole = re.sub(r"(?<!=),? ?\.\.\.(?=\))", "", whole)
    whole = re.sub(r"=(?=[,)])", "=...", whole)
    try:
        return ast.parse(whole, mode="eval").body
    except SyntaxError:
        return None


def problems(code: str) -> Iterator[str]:
    if code.startswith("greenroom "):
        yield from command_problems(code.split()[1:])
        return
    tree = parsed(code)
    if tree is None:
        return  # a word or a sign that is not an expression
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            yield from call_problems(part.func.id, part)
        elif isinstance(part, ast.Attribute):
            yield from attribute_problems(part)
        elif isinstance(part, ast.Name) and len(part.id) > 1:
            known = part.id in OWN or part.id in THINGS or part.id == "greenroom"
            if not known and not found(part.id) and not is_member(part.id):
                yield f"there is no {part.id}"


def call_problems(name: str, call: ast.Call) -> Iterator[str]:
    options = [options_of(thing, name) for thing in found(name) if callable(thing)]
    if not options or None in options:
        return
    for keyword in call.keywords:
        if keyword.arg and not any(keyword.arg in (each or ()) for each in options):
            yield f"{name} takes no {keyword.arg}="


def options_of(thing: Any, name: str) -> set[str] | None:
    """The options that a thing is made or called with; None if it takes any, or does not say."""
    try:
        taken = inspect.signature(thing).parameters
    except ValueError:
        return None
    if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        of_runs = name in ("evaluate", "rehearse", "stream", "simulate_all")
        return {*taken, *Options.__annotations__} if of_runs else None
    return set(taken)


def attribute_problems(part: ast.Attribute) -> Iterator[str]:
    if not isinstance(part.value, ast.Name):
        return
    holder = part.value.id
    if holder == "greenroom":
        if not hasattr(greenroom, part.attr):
            importlib.import_module(f"greenroom.{part.attr}")
    elif holder in THINGS:
        if not any(has_member(thing, part.attr) for thing in found_at(THINGS[holder])):
            yield f"a {holder} has no {part.attr}"
    elif (things := found(holder)) and not any(has_member(thing, part.attr) for thing in things):
        yield f"{holder} has no {part.attr}"


def command_problems(words: list[str]) -> Iterator[str]:
    command: click.Command = main
    for word in words:
        if word.startswith("-"):
            options = [name for option in command.params for name in option.opts]
            if word not in options:
                yield f"`greenroom {' '.join(words)}` has no {word}"
        elif isinstance(command, click.Group):
            if word not in command.commands:
                yield f"there is no command {word}"
                return
            command = command.commands[word]


def test_every_name_in_the_table_is_there() -> None:
    wrong = {f"names.md:{line}": list(problems(code)) for line, code in CELLS}
    assert {place: found for place, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "code",
    ["Agents(…)", "Agent(instruct=)", "report.nothing", "greenroom agent draw", "choose(price=)"],
)
def test_a_name_that_is_not_there_would_be_found(code: str) -> None:
    assert list(problems(code))


def test_every_name_of_adk_fluent_is_in_the_table() -> None:
    fluent = pytest.importorskip("adk_fluent", reason="adk-fluent is not installed here")
    text = PAGE.read_text(encoding="utf-8")
    named = {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}
    assert sorted(set(fluent.__all__) - named) == []


def loaded_by(statement: str) -> set[str]:
    """The modules of ours that a statement loads, in a process of its own."""
    code = (
        f"import sys\n{statement}\nprint(*(m for m in sys.modules if m.startswith('greenroom.')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


HIGHER = [
    "greenroom.agents.contracts",
    "greenroom.agents.costs",
    "greenroom.agents.mermaid",
    "greenroom.models.candidate",
    "greenroom.models.choice",
    "greenroom.models.providers",
    "greenroom.suite",
    "greenroom.simulation",
    "greenroom.store",
]


def test_importing_the_package_loads_no_level_of_it() -> None:
    assert loaded_by("import greenroom") == set()


def test_an_agent_alone_loads_nothing_that_looks_at_agents_or_runs_cases() -> None:
    loaded = loaded_by("from greenroom import Agent, Scripted, loop, route, step, tool")
    assert [name for name in HIGHER if name in loaded] == []


def test_a_rehearsal_loads_no_contracts_costs_choices_or_drawings() -> None:
    loaded = loaded_by(
        "from greenroom import Agent, Case, Scripted, rehearse\n"
        "from greenroom.metrics import contains\n"
        "case = Case('a', says='Hi', metrics=[contains('Hi')])\n"
        "assert rehearse(Agent('a', model=Scripted('Hi')), [case], check='off').passed"
    )
    looked_at = [
        name for name in HIGHER if name.startswith(("greenroom.agents", "greenroom.models"))
    ]
    assert [name for name in looked_at if name in loaded] == []
