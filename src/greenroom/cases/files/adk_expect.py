"""Expectations that google-adk's turns cannot express: under `greenroom` of the case, turn by turn."""

from collections.abc import Sequence
from dataclasses import replace

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.data import expect_data
from greenroom.cases.fields import ProblemList
from greenroom.cases.problems import shown, wrong
from greenroom.cases.reader import expect_from
from greenroom.ledger.plain import Json, is_array

BEYOND = ("response", "contains", "state", "state_after")


def expectations_beyond(case: Case) -> list[Json]:
    """What each turn expects that google-adk has no field for; empty if none does."""
    found: list[Json] = []
    for turn in case.script:
        data = {} if turn.expect is None else expect_data(turn.expect)
        found.append({name: data[name] for name in BEYOND if name in data} or None)
    return found if any(found) else []


def with_expectations(turns: Sequence[Turn], data: Json, place: str) -> list[Turn]:
    """The turns, each with what else is expected of it; null expects nothing more."""
    if not is_array(data) or len(data) > len(turns):
        raise wrong(place, f"{shown(data)} should be a list with what each turn expects")
    problems = ProblemList()
    more = problems.each(
        data, place, lambda one, where: None if one is None else expect_from(one, where)
    )
    problems.settle()
    found = list(turns)
    for i, expect in enumerate(more):
        if expect is not None:
            given = {name: getattr(expect, name) for name in BEYOND}
            found[i] = replace(turns[i], expect=replace(turns[i].expect or Expect(), **given))
    return found


def says_more(case: Case) -> bool:
    """Whether a case expects what google-adk's own criteria do not measure."""
    expected = [turn.expect for turn in case.script if turn.expect is not None]
    return any(getattr(expect, name) is not None for expect in expected for name in BEYOND)
