"""A case made from answers: the questions that an author of cases would be asked."""

import json
from collections.abc import Callable
from typing import Any

import click

from greenroom.apps.cli.evalsets import free_id
from greenroom.apps.cli.exits import harmless
from greenroom.cases import Case, EvalSet, Expect, Turn
from greenroom.errors import BadInput
from greenroom.ledger import call
from greenroom.ledger.messages import ToolCall
from greenroom.results.text import number_of


def asked_case(evalset: EvalSet, case_id: str) -> Case:
    """The case that its author describes; nothing is kept until they say that it is right."""
    click.echo("A new case. An empty answer leaves something out; Ctrl-C ends without a change.\n")
    known = case_id or _asked("id", default=free_id("case", evalset), check=_unused(evalset))
    name = _asked("name")
    tags = [tag.strip() for tag in _asked("tags, separated by commas").split(",") if tag.strip()]
    turns: list[Turn] = []
    mocks: dict[str, Any] = {}
    while says := _asked(f"turn {len(turns) + 1}: the user says"):
        turns.append(Turn(says, _expected(mocks)))
    if not turns:
        raise BadInput("a case needs at least one turn in which the user says something.")
    case = Case(known, turns=turns, mocks=mocks, name=name, tags=tags)
    count = number_of(len(turns), "turn")
    click.echo(harmless(f"\n{known!r}: {count}, mocks for {', '.join(mocks) or 'no tools'}"))
    if not click.confirm("Add it?", default=True):
        raise click.Abort
    return case


def _expected(mocks: dict[str, Any]) -> Expect | None:
    """What one turn should bring; a tool that is expected gets a mock on the way."""
    contains = _asked("  the answer contains")
    tools: list[ToolCall] | None = None
    while tool := _asked("  a tool that should be called ('none' if no tool may be)"):
        if tool == "none" and tools is None:
            tools = []
            break
        tools = [*(tools or []), call(tool, **_json("  with the arguments", "{}", dict))]
        if tool not in mocks:
            mocks[tool] = _json(f"  what {tool} answers", '"ok"')
    if not contains and tools is None:
        return None
    return Expect(contains=contains or None, tools=tools)


def _asked(question: str, default: str = "", check: Callable[[str], str] | None = None) -> str:
    shown = bool(default)
    answer = click.prompt(
        question, default=default, show_default=shown, value_proc=check or (lambda text: text)
    )
    return str(answer).strip()


def _unused(evalset: EvalSet) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text.strip() in evalset:
            raise click.BadParameter(f"{text!r} is taken; give another.")
        return text

    return check


def _json(question: str, default: str, kind: type = object) -> Any:
    """A value as JSON; a text that is none is taken as it is, where a text will do."""

    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if not isinstance(value, kind):
            raise click.BadParameter('write it as JSON: {"order": 7}')
        return value

    return click.prompt(f"{question}, as JSON", default=default, value_proc=read)
