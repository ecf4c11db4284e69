"""Reads the expectations in files part by part: an error names the place as the file writes it."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, cast

from greenroom.cases.fields import ProblemList
from greenroom.cases.problems import at, mapping_at, shown, wrong
from greenroom.cases.wire import list_of, read_number, read_text, read_whole
from greenroom.errors import BadCase, BadMetric, BadQuery, BadValue
from greenroom.ledger.plain import Json, is_array
from greenroom.ledger.query import check_places, check_query

REFUSALS = (BadCase, BadMetric, BadQuery, BadValue)
"""The errors that the parts of a case raise for invalid values."""
_NOTHING = "it checks nothing"
_LEAVE_OUT = "Write a string, or leave it out"
# The error messages of parts made in Python, which name the part and its field.
_OF_A_FIELD = re.compile(r"\w+\(\.\.\.\): `(\w+)` is (.*), but should be (.*)", re.DOTALL)
_OF_A_PART = re.compile(r"(?:case '[^']*'(?::|(?= has))|\w+\((?:\.\.\.)?\):?) ?")
_PATH = re.compile(r"(\S+?)(?: uses |: )")


def placed(where: str, make: Callable[..., object], *args: object, **fields: object) -> Any:
    """The result of `make` for these parts; if it refuses them, the error names this place."""
    try:
        return make(*args, **fields)
    except REFUSALS as error:
        message = str(error).removeprefix(f"{where} ").rstrip(".")
        if found := _OF_A_FIELD.fullmatch(message):
            raise wrong(at(where, found[1]), f"{found[2]} should be {found[3]}") from error
        raise wrong(where, _OF_A_PART.sub("", message, count=1)) from error


def text_from(data: Json, where: str) -> str:
    """A string that is not blank."""
    text = read_text(data, where)
    if not text.strip():
        raise wrong(where, _NOTHING, _LEAVE_OUT)
    return text


def texts_from(data: Json, where: str) -> list[str]:
    """A list of strings, none of them blank."""
    if not is_array(data):
        raise wrong(where, f"{shown(data)} should be a list of strings")
    if not data:
        raise wrong(where, _NOTHING, _LEAVE_OUT)
    return list_of(text_from)(data, where)


def contains_from(data: Json, where: str) -> str | list[str]:
    """A string, or a list of strings, to look for."""
    if isinstance(data, str):
        return text_from(data, where)
    if not is_array(data):
        raise wrong(where, f"{shown(data)} should be a string or a list of strings")
    return texts_from(data, where)


def state_from(data: Json, where: str) -> Mapping[str, Json]:
    """A query by scope; one that every state matches is refused."""
    given, problems = mapping_at(where, data), ProblemList()
    for scope, part in given.items():
        place = at(where, scope)
        if not isinstance(part, Mapping):
            message = f"{shown(part)} is where the keys of a scope should be"
            fix = "Group by scope:"
            refusal = wrong(place, message, fix, example={"session": {scope: part}})
            problems.add(refusal, place)
        elif not part:
            problems.add(wrong(place, _NOTHING, "Say what a key should hold"), place)
        else:
            query = cast("Mapping[str, Any]", part)
            problems.part(place, partial(_query_checked, query, place), None)
    if not given:
        problems.add(wrong(where, _NOTHING, "Say what a key should hold, or leave it out"), where)
    problems.settle()
    return given


def _query_checked(query: Mapping[str, object], where: str) -> None:
    try:
        check_query(query, where)
        check_places(query, where)
    except BadQuery as error:
        message = str(error).rstrip(".")
        found = _PATH.match(message)
        place = found[1] if found and found[1].startswith(where) else where
        rest = message.removeprefix(place).lstrip(": ")
        raise wrong(place, rest.replace("uses ", "it uses ", 1)) from error


def states_from(data: Json, where: str) -> Mapping[str, Mapping[str, Json]]:
    """Queries by scope, by the name of a node."""
    given, problems = mapping_at(where, data), ProblemList()
    for node, query in given.items():
        place = at(where, node)
        problems.part(place, partial(state_from, query, place), {})
    if not given:
        problems.add(wrong(where, _NOTHING, "Name a node, or leave it out"), where)
    problems.settle()
    return given


def turns_limit(data: Json, where: str) -> int:
    """A maximum number of turns."""
    if (number := read_whole(data, where)) < 1:
        raise wrong(where, f"{number} should be 1 or more")
    return number


def seconds_limit(data: Json, where: str) -> float:
    """A maximum number of seconds."""
    if not 0 < (number := read_number(data, where)) < inf:
        raise wrong(where, f"{number} should be more than 0")
    return number
