"""The flows of the documentation, and agents built from blueprints, do the same compiled to google-adk."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.adk.both_ways import check
from backends.conformance.test_native import NativeHarness
from greenroom import Agent, Case, Scripted, call
from greenroom.agents import Flow
from greenroom.backends.adk import to_adk
from greenroom.errors import BadAgent, CannotCompile
from greenroom.testing import Blueprint, HandOver, Structured, ToolPlan, Verdict
from test_documents import EXAMPLES, Example, is_installed, plain_terminal, run_script

QUICK = ("docs/cookbook/approval.md", "docs/cookbook/team.md", "docs/cookbook/cost-ceiling.md")
PAGES = (
    *QUICK,
    "README.md",
    "docs/cookbook/",
    "docs/how-to/agents.md",
    "docs/how-to/attachments.md",
    "docs/how-to/contracts.md",
    "docs/how-to/drawing.md",
    "docs/how-to/flow.md",
    "docs/how-to/handoffs.md",
)
NO_FORM = {("docs/cookbook/long-conversation.md", "guide")}


def scripts() -> Iterator[Any]:
    """The examples of these pages that define agents, each page's longest scripts alone."""
    for example in EXAMPLES:
        blocks = (*example.before, example.block)
        is_script = example.block.language == "python" and not example.not_run
        is_longest = not any(example.block in other.before for other in EXAMPLES)
        has_agent = any("Agent(" in block.text for block in blocks)
        if is_script and is_longest and has_agent and example.block.page.startswith(PAGES):
            marks = () if example.block.page in QUICK else (pytest.mark.heavy,)
            yield pytest.param(example, id=example.id, marks=marks)


def flows_of(values: dict[str, Any]) -> Iterator[tuple[str, Flow]]:
    for name, value in values.items():
        if isinstance(value, Flow) and value.is_part:
            yield name, with_scripts(value)


def with_scripts(flow: Flow) -> Flow:
    """The flow, where no model is asked for real."""
    parts = {key: with_scripts(part) for key, part in flow.children().items()}
    made = flow.with_children(parts) if parts else flow
    if isinstance(made, Agent) and not isinstance(made.model, Scripted):
        return replace(made, model=Scripted(then="Fine."))
    return made


def says_of(values: dict[str, Any]) -> list[str]:
    """What the users of the script's cases say first."""
    found = [
        one for value in values.values() for one in (value if isinstance(value, list) else [value])
    ]
    said = [str(case.says) for case in found if isinstance(case, Case) and case.says]
    return list(dict.fromkeys(said)) or ["Hello"]


@pytest.mark.parametrize("example", list(scripts()))
def test_the_flows_of_a_page_do_the_same(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := [package for package in example.needs if not is_installed(package)]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "example.py")])
    for name, value in plain_terminal({}).items():
        monkeypatch.setenv(name, value)
    blocks = (*example.before, example.block)
    with contextlib.chdir(tmp_path), run_script(blocks, tmp_path / "example.py") as (script, _):
        for name, flow in flows_of(vars(script)):
            if (example.block.page, name) in NO_FORM:
                with pytest.raises(CannotCompile):
                    to_adk(flow)
                continue
            for says in says_of(vars(script)):
                asyncio.run(check_or_refused(flow, says))


async def check_or_refused(flow: Flow, says: str) -> None:
    try:
        await check(flow, [says])
    except BadAgent:
        with pytest.raises(BadAgent):  # a part that cannot stand alone is none either way
            to_adk(flow)


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sun in {city}"


async def forecast(city: str) -> dict[str, Any]:
    """The weather to come."""
    return {"city": city, "days": [1, 2]}


def broken(city: str) -> str:
    """It never works."""
    raise RuntimeError(f"no {city}")


def colour() -> str:
    """Ask the user for a colour."""
    raise AssertionError("a question has no body to run")


TOOLS = [ToolPlan(weather), ToolPlan(forecast), ToolPlan(broken), ToolPlan(colour, "question")]
BILLING = Blueprint(
    name="billing", lines=[call("weather", city="Rome"), "Paid.", "Bye."], tools=TOOLS
)
BLUEPRINTS: dict[str, tuple[Blueprint, Sequence[str]]] = {
    "a talk": (Blueprint(lines=["Hi.", "Yes.", "Bye."]), ["a", "b", "c"]),
    "one call": (Blueprint(lines=[call("weather", city="Oslo"), "Sun."], tools=TOOLS), ["a"]),
    "several calls at once": (
        Blueprint(
            lines=[[call("weather", city="Oslo"), call("forecast", city="Rome")], "Sun.", "Bye."],
            tools=TOOLS,
        ),
        ["a", "b"],
    ),
    "a tool that fails": (
        Blueprint(lines=[call("broken", city="Oslo"), "No."], tools=TOOLS),
        ["a"],
    ),
    "a tool that is made up": (Blueprint(lines=[call("nothing"), "No."], tools=TOOLS), ["a"]),
    "arguments that do not fit": (
        Blueprint(lines=[call("weather", town=7), "No."], tools=TOOLS),
        ["a"],
    ),
    "a question next to a call": (
        Blueprint(lines=[[call("colour"), call("weather", city="Oslo")], "Red."], tools=TOOLS),
        ["a"],
    ),
    "a model that breaks": (Blueprint(lines=["Hi.", RuntimeError("gone")]), ["a", "b"]),
    "a structured answer": (
        Blueprint(lines=[Structured({"ok": True})], output=Verdict, writes="verdict"),
        ["a"],
    ),
    "a hand-over": (Blueprint(lines=[HandOver("billing")], helpers=[BILLING]), ["a", "b"]),
    "a wait for the next message": (
        Blueprint(lines=["First?", "Second."], awaits_input=True, writes="said"),
        ["a"],
    ),
}


@pytest.mark.parametrize("name", BLUEPRINTS)
async def test_an_agent_of_a_blueprint_does_the_same(name: str) -> None:
    plan, says = BLUEPRINTS[name]
    heard = await check(NativeHarness().build(plan), says)
    assert len(heard.answers) == len(says)
