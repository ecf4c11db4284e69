"""Cases as data: what a ledger's first event and a file can hold of them.

Live parts (functions, tools, users, metrics) are written down by qualified name and a hash of
their source under the key "live", and come back only where the author's code is at hand.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import isroutine
from typing import Any, cast

from greenroom.cases.case import USUAL_STOP, Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion, criterion_data
from greenroom.cases.liveness import (
    LIVE_FIELDS,
    QUERIES,
    asking_parts,
    is_code,
    is_live,
    queries_with_code,
)
from greenroom.cases.mocks import ByArgs, Fault, InTurn, Live
from greenroom.cases.reader import case_from
from greenroom.cases.users import person_data, person_of, user_data
from greenroom.errors import BadValue
from greenroom.ledger.changes import WithStateChange
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import JSON_TYPES, Json, plain
from greenroom.ledger.query import holds_code, plain_query

__all__ = [
    "case_data",
    "case_from",
    "expect_data",
    "live_parts",
    "metric_data",
    "mock_data",
    "written_data",
]


def case_data(case: Case) -> dict[str, Json]:
    """The case as JSON; what is not set is left out."""
    data: dict[str, Json] = {"id": case.id}
    if case.says:
        data["says"] = case.says
    if case.expect:
        data["expect"] = expect_data(case.expect)
    if case.turns:
        data["turns"] = [_turn_data(turn) for turn in case.turns]
    if case.mocks:
        data["mocks"] = mocks = {}
        for tool, mock in case.mocks.items():
            mocks[tool] = mock_data(mock)
    if case.allow_tools:
        data["allow_tools"] = [t if isinstance(t, str) else _live(t) for t in case.allow_tools]
    if case.state:
        data["state"] = plain(case.state, f"state of case {case.id!r}")
    if case.stop is not USUAL_STOP and case.stop != USUAL_STOP:
        data["stop"] = _stop_data(case.stop)
    if case.metrics:
        data["metrics"] = [metric_data(metric) for metric in case.metrics]
    if case.name:
        data["name"] = case.name
    if case.description:
        data["description"] = case.description
    if case.now is not None:
        data["now"] = case.now
    if case.user is not None:
        data["user"] = user_data(case.user) or _shown_user(case.user)
    if case.bridge is not None:
        data["bridge"] = _shown(case.bridge)
    if case.agent is not None:
        data["agent"] = _shown(case.agent)
    if case.tags:
        data["tags"] = list(case.tags)
    if case.metadata:
        data["metadata"] = plain(case.metadata, f"metadata of case {case.id!r}")
    if case.target:
        data["target"] = case.target
    if not case.implied:
        data["implied"] = False
    if case.extra:
        data["extra"] = plain(case.extra, f"extra of case {case.id!r}")
    return data


def _shown(part: object) -> Json:
    return {**_live(part), "shown": repr(part)}


def _shown_user(user: object) -> Json:
    """A user who is code, with all that is data about the person: metrics ask for their goals."""
    person = person_of(user)
    return {**_shown(user), **({"person": person_data(person)} if person else {})}


def live_parts(case: Case) -> list[str]:
    """The places in a case that hold code, and so cannot come back from a file."""
    data = case_data(case)
    places = [name for name in LIVE_FIELDS if is_live(data.get(name))]
    places += [f"metrics.{m['name']}" for m in data.get("metrics", ()) if is_code(m)]
    places += [f"mocks.{tool}" for tool, mock in data.get("mocks", {}).items() if is_live(mock)]
    places += [f"allow_tools.{i}" for i, t in enumerate(data.get("allow_tools", ())) if is_live(t)]
    places += queries_with_code(data)
    return [f"{case.id}.{place}" for place in places]


def written_data(case: Case) -> dict[str, Json]:
    """The case as a file can hold it: its data without what is code."""
    data = {
        name: value
        for name, value in case_data(case).items()
        if name not in LIVE_FIELDS or not is_live(value)
    }
    if "metrics" in data:
        data["metrics"] = [metric for metric in data["metrics"] if not is_code(metric)]
    if "mocks" in data:
        data["mocks"] = {t: mock for t, mock in data["mocks"].items() if not is_live(mock)}
    if "allow_tools" in data:
        data["allow_tools"] = [tool for tool in data["allow_tools"] if not is_live(tool)]
    for part in asking_parts(data).values():
        for name in [name for name in QUERIES if holds_code(part.get(name))]:
            del part[name]
    return _without_empty_parts(data)


def _without_empty_parts(data: dict[str, Json]) -> dict[str, Json]:
    """Without the expectations and stops of which only code was left."""
    for part in (data, *data.get("turns", ())):
        for name in ("expect", "stop"):
            if part.get(name) == {}:
                del part[name]
    return data


def _live(part: object) -> Json:
    return {"live": code_identity(part)}


def expect_data(expect: Expect) -> dict[str, Json]:
    """An expectation as JSON; what is not set is left out."""
    data: dict[str, Json] = {}
    if expect.tools is not None:
        calls: list[Json] = []
        data["tools"] = calls
        for wanted in expect.tools:
            if not isinstance(wanted, str):
                wanted = {"tool": wanted.tool, "args": plain_query(wanted.args)}
            calls.append(wanted)
    if expect.response is not None:
        data["response"] = expect.response
    contains = expect.contains
    if contains is not None:
        data["contains"] = contains if type(contains) is str else plain(contains)
    if expect.state is not None:
        data["state"] = plain_query(expect.state)
    if expect.reference is not None:
        data["reference"] = expect.reference
    if expect.intermediate is not None:
        data["intermediate"] = plain(expect.intermediate)
    if expect.extra:
        data["extra"] = plain(expect.extra)
    return data


def _turn_data(turn: Turn) -> dict[str, Json]:
    data: dict[str, Json] = {"says": turn.says}
    if turn.expect:
        data["expect"] = expect_data(turn.expect)
    if turn.extra:
        data["extra"] = plain(turn.extra)
    return data


def _stop_data(stop: Stop) -> dict[str, Json]:
    data: dict[str, Json] = {"max_turns": stop.max_turns, "max_seconds": stop.max_seconds}
    if stop.state_matches is not None:
        data["state_matches"] = plain_query(stop.state_matches)
    return data


def mock_data(mock: Any) -> Json:
    """A mock as JSON: {"value": ...} for a constant, {"live": ...} for code."""
    if type(mock) in JSON_TYPES:
        return _constant_data(mock)
    match mock:
        case InTurn():
            return {"in_turn": [mock_data(answer) for answer in mock.answers]}
        case ByArgs():
            pairs = [[plain(args), mock_data(answer)] for args, answer in mock.answers]
            rest = {"otherwise": mock_data(mock.otherwise)} if mock.has_otherwise else {}
            return {"by_args": pairs, **rest}
        case Fault():
            return {"fault": plain(mock.given, "a fault")}
        case Live():
            return {**_live(mock.tool), "hosts": list(mock.hosts)}
        case WithStateChange():
            # A record too, but its changes are no part of the value.
            whole = cast("WithStateChange[Any]", mock)
            return {**_constant_data(whole.result), "changes": plain(whole.changes, "a mock")}
        case _ if callable(mock) or hasattr(mock, "execute"):
            return _live(mock)
        case _:
            return _constant_data(mock)


def _constant_data(mock: Any) -> Json:
    try:
        return {"value": plain(mock, "a mock")}
    except BadValue:
        # A framework's tool object handed over; a value that is no JSON fails when it is given out.
        return _live(mock)


def metric_data(metric: Any) -> Json:
    """A metric as JSON: its name or its criterion; what it is and looks like if it is code."""
    if isinstance(metric, Criterion):
        return criterion_data(metric)
    if isinstance(metric, str):
        return metric
    name = getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__)
    if not _ours(metric):
        return {"name": str(name), **_live(metric)}
    return {"name": str(name), "shown": repr(metric), **_code_in(metric)}


def _code_in(metric: Any) -> dict[str, Json]:
    """The functions a metric of ours was given, so that a change inside them is noticed."""
    code = [code_identity(routine) for routine in _routines(metric)]
    return {"live": code} if code else {}


def _routines(part: Any) -> list[Any]:
    """The functions in the fields of a part of ours and in the mappings it holds."""
    if isroutine(part):
        return [part]
    if isinstance(part, Mapping):
        inner = list(cast("Mapping[str, Any]", part).values())
    elif is_dataclass(part) and _ours(part):
        inner = [getattr(part, f.name) for f in fields(part)]
    else:
        return []
    return [routine for value in inner for routine in _routines(value)]


def _ours(part: object) -> bool:
    return type(part).__module__.startswith("greenroom.")
