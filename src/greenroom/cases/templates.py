"""Cases to start from: the usual shapes, with blanks to fill in.

A blank reads `<<fill in: …>>`. It survives a file, and `check` finds every one that is left.
"""

import re

from greenroom.cases.case import Case, Expect, Turn
from greenroom.errors import BadInput
from greenroom.ledger.messages import call

BLANK = re.compile(r"<<fill in: [^<>]*>>")


def blank(what: str) -> str:
    """A blank to fill in."""
    return f"<<fill in: {what}>>"


def single_turn(id: str, *, says: str = "", contains: str = "") -> Case:
    """One question and what the answer should contain."""
    return Case(
        id,
        says or blank("what the user says"),
        expect=Expect(contains=contains or blank("words that a good answer contains")),
        description=blank("what this case shows"),
        tags=["single-turn"],
    )


def multi_turn(id: str, *, says: tuple[str, ...] = (), turns: int = 2) -> Case:
    """A conversation of several turns; the last one says what is expected."""
    said = says or tuple(blank(f"what the user says in turn {n + 1}") for n in range(turns))
    *before, last = said or ("",)
    expect = Expect(contains=blank("words that a good last answer contains"))
    return Case(
        id,
        turns=[*map(Turn, before), Turn(last, expect)],
        description=blank("what this conversation shows"),
        tags=["multi-turn"],
    )


def tool_test(id: str, *, tool: str = "", says: str = "") -> Case:
    """One question that should lead to one call of a tool, answered by a mock."""
    name = tool or blank("the name of a tool")
    wanted = call(name, **{blank("an argument"): blank("its value")})
    return Case(
        id,
        says or blank("what the user says"),
        expect=Expect(tools=[wanted], contains=blank("words from the tool's answer")),
        mocks={name: blank("what the tool answers")},
        description=blank("what this case shows"),
        tags=["tool-test"],
    )


TEMPLATES = {"single-turn": single_turn, "multi-turn": multi_turn, "tool-test": tool_test}


def from_template(template: str, id: str) -> Case:
    """The case made by the template of this name, with all blanks open."""
    if template not in TEMPLATES:
        raise BadInput(f"there is no template {template!r}; use one of: {', '.join(TEMPLATES)}.")
    return TEMPLATES[template](id)
