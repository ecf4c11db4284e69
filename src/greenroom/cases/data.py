"""Cases as data: what a ledger's first event and a file can hold of them.

Live parts (functions, tools, users, metrics) are written as a qualified name and a hash of
their source under the key "live", and can be restored only where the user's code is available.
"""

from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

from greenroom.cases.case import Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion, criterion_data
from greenroom.cases.liveness import (
    LIVE_FIELDS,
    QUERIES,
    asking_parts,
    is_code,
    is_live,
    queries_with_code,
)
from greenroom.cases.mocks import ByArgs, Fault, InTurn, Live, Simulated, has_execute
from greenroom.cases.users import person_data, person_of, user_data
from greenroom.cases.wire import RecordWriter
from greenroom.errors import BadValue
from greenroom.ledger.changes import WithStateChange
from greenroom.ledger.functions import Anything
from greenroom.ledger.identity import code_identity
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import (
    JSON_TYPES,
    Json,
    as_array,
    as_object,
    plain,
    without_addresses,
)
from greenroom.ledger.query import holds_code, plain_query
from greenroom.ledger.records import field_names, is_record
from greenroom.ledger.simulated import WORLD

__all__ = [
    "case_data",
    "expect_data",
    "live_parts",
    "metric_data",
    "mock_data",
    "written_data",
]


def case_data(case: Case) -> dict[str, Json]:
    """The case as JSON; what is not set is left out."""
    return _CASE.write(case, f"case {case.id!r}")


def _shown(part: object) -> dict[str, Json]:
    return {**_live(part), "shown": without_addresses(repr(part))}


def _shown_user(user: object) -> Json:
    """A user who is code, with all that is data about the person: metrics need their goals."""
    person = person_of(user)
    return {**_shown(user), **({"person": person_data(person)} if person else {})}


def live_parts(case: Case) -> list[str]:
    """The places in a case that hold code, and so cannot be restored from a file."""
    data = case_data(case)
    places = [name for name in LIVE_FIELDS if is_live(data.get(name))]
    metrics, allowed = as_array(data.get("metrics", [])), as_array(data.get("allow_tools", []))
    mocks = as_object(data.get("mocks", {}))
    places += [f"metrics.{metric['name']}" for metric in metrics if is_code(metric)]
    places += [f"mocks.{tool}" for tool, mock in mocks.items() if is_live(mock)]
    places += [f"allow_tools.{i}" for i, tool in enumerate(allowed) if is_live(tool)]
    places += queries_with_code(data)
    return [f"{case.id}.{place}" for place in places]


def written_data(case: Case) -> dict[str, Json]:
    """The case as a file can hold it: its data, without code."""
    data = {
        name: value
        for name, value in case_data(case).items()
        if name not in LIVE_FIELDS or not is_live(value)
    }
    if "metrics" in data:
        data["metrics"] = [m for m in as_array(data["metrics"]) if not is_code(m)]
    if "mocks" in data:
        mocks = as_object(data["mocks"])
        data["mocks"] = {tool: mock for tool, mock in mocks.items() if not is_live(mock)}
    if "allow_tools" in data:
        data["allow_tools"] = [t for t in as_array(data["allow_tools"]) if not is_live(t)]
    for part in asking_parts(data).values():
        for name in [name for name in QUERIES if holds_code(part.get(name))]:
            del part[name]
    return _without_empty_parts(data)


def _without_empty_parts(data: dict[str, Json]) -> dict[str, Json]:
    """The data without expectations and stops that held only code."""
    for part in (data, *map(as_object, as_array(data.get("turns", [])))):
        for name in ("expect", "stop"):
            if part.get(name) == {}:
                del part[name]
    return data


def _live(part: object) -> dict[str, Json]:
    return {"live": code_identity(part)}


def expect_data(expect: Expect) -> dict[str, Json]:
    """An expectation as JSON; what is not set is left out."""
    return _EXPECT.write(expect, "an expectation")


def mock_data(mock: object) -> Json:
    """A mock as JSON: {"value": ...} for a constant, {"live": ...} for code."""
    if type(mock) in JSON_TYPES:
        return _constant_data(mock)
    match mock:
        case InTurn():
            return {"in_turn": [mock_data(answer) for answer in mock.answers]}
        case ByArgs():
            pairs: list[Json] = [
                [plain_query(args), mock_data(answer)] for args, answer in mock.answers
            ]
            rest = {"otherwise": mock_data(mock.otherwise)} if mock.has_otherwise else {}
            return {"by_args": pairs, **rest}
        case Fault():
            parts = mock.given.items()
            return {"fault": {k: mock_data(v) if k == "lost" else plain(v) for k, v in parts}}
        case Simulated():
            return _simulated_data(mock)
        case Live():
            return {**_live(mock.tool), "hosts": list(mock.hosts)}
        case WithStateChange():
            # A record too, but its changes are not part of the value.
            whole = cast("WithStateChange[Any]", mock)
            return {**_constant_data(whole.result), "changes": plain(whole.changes, "a mock")}
        case _ if callable(mock) or has_execute(mock):
            return _live(mock)
        case _:
            return _constant_data(mock)


def _simulated_data(mock: Simulated) -> dict[str, Json]:
    """A simulated world as JSON; a model that is not a name is code."""
    world: dict[str, Json] = {"world": mock.world, "state": plain(mock.state)}
    if mock.name != WORLD:
        world["name"] = mock.name
    if isinstance(mock.model, str):
        return {"simulated": {**world, "model": mock.model}}
    return {**as_object(_write_model(mock.model, "")), "simulated": world}


def _write_mocks(mocks: Mapping[str, Anything], _where: str) -> Json:
    """All mocks; of tools that share a simulated world, the first holds it and the others name that tool."""
    found: dict[str, Json] = {}
    worlds: list[tuple[Simulated, str]] = []
    for tool, mock in mocks.items():
        found[tool] = mock_data(mock)
        if isinstance(mock, Simulated):
            first = next((name for world, name in worlds if world == mock), "")
            worlds.append((mock, first or tool))
            if first and not is_live(found[tool]):
                found[tool] = {"simulated": first}
    return found


def _constant_data(mock: object) -> dict[str, Json]:
    try:
        return {"value": plain(mock, "a mock")}
    except BadValue:
        # A framework's tool object; a value that is not JSON fails when it is returned to the agent.
        return _live(mock)


def metric_data(metric: object) -> Json:
    """A metric as JSON: its name or its criterion; its identity and repr if it is code."""
    if isinstance(metric, Criterion):
        return criterion_data(metric)
    if isinstance(metric, str):
        return metric
    name = getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__)
    if not _ours(metric):
        return {"name": str(name), **_live(metric)}
    return {"name": str(name), "shown": repr(metric), **_code_in(metric)}


def _code_in(metric: object) -> dict[str, Json]:
    """The functions passed to a built-in metric, so that a change inside them is noticed."""
    code: list[Json] = [code_identity(routine) for routine in _routines(metric)]
    return {"live": code} if code else {}


_LEAVES = frozenset((str, int, float, bool, type(None)))


def _routines(part: object) -> list[Any]:
    """User functions in the fields of a built-in part, and in the mappings it holds.

    Greenroom's own functions do not count: a new version of Greenroom does not change the case.
    """
    if isinstance(part, FunctionType | MethodType | BuiltinFunctionType):
        return [] if str(part.__module__).startswith("greenroom.") else [part]
    if isinstance(part, Mapping):
        inner = list(cast("Mapping[str, Any]", part).values())
    elif is_record(part) and _ours(part):
        inner = [getattr(part, name) for name in field_names(cast("type[Any]", type(part)))]
    else:
        return []
    parts = [value for value in inner if type(value) not in _LEAVES]
    return [routine for part in parts for routine in _routines(part)]


def _ours(part: object) -> bool:
    return type(part).__module__.startswith("greenroom.")


# The fields of each part that are not written unchanged, and how they are written.


def _write_extra(extra: Mapping[str, Json], where: str) -> Json:
    return plain(extra, where) or None


def _write_user(user: object, _where: str) -> Json:
    return user_data(user) or _shown_user(user)


def _write_live(part: object, _where: str) -> Json:
    return _shown(part)


def _write_model(model: object, _where: str) -> Json:
    if isinstance(model, str):
        return model
    answers = str(getattr(model, "identity", "")) or repr(model)
    return {**_live(model), "shown": answers}


def _write_calls(calls: Sequence[ToolCall | str], where: str) -> Json:
    return [
        one if isinstance(one, str) else {"tool": one.tool, "args": plain_query(one.args, where)}
        for one in calls
    ]


def _write_stop(stop: Stop, where: str) -> Json:
    limits = {"max_turns": stop.max_turns, "max_seconds": stop.max_seconds}
    return limits | _STOP.write(stop, where)


_EXPECT = RecordWriter(
    Expect,
    {
        "tools": _write_calls,
        "state": plain_query,
        "state_after": plain_query,
        "extra": _write_extra,
    },
)
_STOP = RecordWriter(Stop, {"state_matches": plain_query})
_TURN = RecordWriter(Turn, {"expect": lambda expect, _: expect_data(expect), "extra": _write_extra})
_CASE = RecordWriter(
    Case,
    {
        "expect": lambda expect, _: expect_data(expect),
        "turns": lambda turns, where: [_TURN.write(turn, where) for turn in turns],
        "mocks": _write_mocks,
        "allow_tools": lambda tools, _: [t if isinstance(t, str) else _live(t) for t in tools],
        "stop": _write_stop,
        "metrics": lambda metrics, _: [metric_data(metric) for metric in metrics],
        "user": _write_user,
        "bridge": _write_live,
        "agent": _write_live,
        "model": _write_model,
        "extra": _write_extra,
    },
    without=("origin",),
)
