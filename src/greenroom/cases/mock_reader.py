"""Reads mocks from the data of a ledger or a file."""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast, get_args

from greenroom.cases.attachments import with_attachments
from greenroom.cases.expected import placed
from greenroom.cases.fields import Fields, ProblemList, only
from greenroom.cases.mocks import Simulated, by_args, fault, in_turn, simulated
from greenroom.cases.names import near_name
from greenroom.cases.problems import at, mapping_at, shown, wrong
from greenroom.cases.wire import list_of
from greenroom.ledger.changes import Change, Operation, WithStateChange
from greenroom.ledger.plain import Json, is_array, is_object

MOCK_FIELDS = ("value", "changes", "in_turn", "by_args", "otherwise", "fault", "simulated")
FAULT_FIELDS = ("error", "timeout", "slow", "value", "malformed", "lost", "injected")
WORLD_FIELDS = ("world", "model", "state", "name")


def mocks_from(data: Json, where: str) -> dict[str, Any]:
    """The mocks of a case, by tool."""
    given, problems = mapping_at(where, data), ProblemList()
    read = {
        tool: problems.part(
            at(where, tool), partial(_whole_mock, _shared(mock, given), at(where, tool)), None
        )
        for tool, mock in given.items()
    }
    problems.settle()
    return read


def _shared(mock: Json, mocks: Mapping[str, Json]) -> Json:
    """The mock of a tool that names another one, because one simulated world answers for both."""
    named = mock.get("simulated") if is_object(mock) and len(mock) == 1 else None
    other = mocks.get(named) if isinstance(named, str) else None
    return other if is_object(other) and is_object(other.get("simulated")) else mock


def _world_from(data: Json, where: str) -> Simulated:
    if isinstance(data, str):
        message = f"{shown(data)} is not a tool of this case with a simulated world"
        raise wrong(where, message, "Name the tool, or describe the world in full")
    fields = Fields(mapping_at(where, data, WORLD_FIELDS), where, WORLD_FIELDS, camel=False)
    given: dict[str, Any] = {name: fields.text(name) for name in ("world", "model")}
    given["state"] = fields.mapping("state")
    if "name" in cast("Mapping[str, Json]", data):
        given["name"] = fields.text("name")
    fields.settle()
    if not given["model"]:
        raise wrong(where, "no model answers in this world", "Add", example={"model": "..."})
    return placed(where, simulated, given.pop("world"), **given)


def _whole_mock(data: Json, where: str) -> object:
    return _mock_from(with_attachments(data, where), where)


def _mock_from(data: Json, where: str) -> object:
    if not is_object(data) or not any(near_name(key, MOCK_FIELDS) for key in data):
        message = f"{shown(data)} is not a mock: it may have {', '.join(MOCK_FIELDS)}"
        raise wrong(where, message, "Write", example={"value": data})
    for kind in ("in_turn", "by_args"):
        if kind in data and not is_array(data[kind]):
            raise wrong(at(where, kind), f"{shown(data[kind])} should be a list")
    if "fault" in data:
        mapping_at(at(where, "fault"), data["fault"], FAULT_FIELDS)
    match dict(only(data, MOCK_FIELDS, where)):
        case {"value": value, "changes": [*changes], **rest} if not rest:
            return WithStateChange(value, tuple(_change_from(c, where) for c in changes))
        case {"value": value, **rest} if not rest:
            return value
        case {"in_turn": [*answers], **rest} if not rest:
            inner = list_of(_mock_from)(answers, at(where, "in_turn"))
            return placed(where, in_turn, *inner)
        case {"by_args": [*pairs], **rest} if not rest.keys() - {"otherwise"}:
            others = {key: _mock_from(answer, at(where, key)) for key, answer in rest.items()}
            return placed(
                where, by_args, *list_of(_pair_from)(pairs, at(where, "by_args")), **others
            )
        case {"simulated": world, **rest} if not rest:
            return _world_from(world, at(where, "simulated"))
        case {"fault": {**given}, **rest} if not rest:
            inside = at(where, "fault")
            if "lost" in given:
                given = {**given, "lost": _mock_from(given["lost"], at(inside, "lost"))}
            return placed(inside, fault, **only(given, FAULT_FIELDS, inside))
        case other:
            raise wrong(
                where,
                f"{shown(other)} is not a mock",
                "Give value, in_turn, by_args, fault or simulated",
            )


def _change_from(data: Any, where: str) -> Change:
    match data:
        case {"scope": str(scope), "path": [str(), *_] as path, **rest} if rest.keys() <= _CHANGE:
            op = rest.get("op", "set")
            if all(isinstance(key, str) for key in path) and op in get_args(Operation):
                return Change(scope, tuple(path), op, rest.get("value"))
        case _:
            pass
    raise wrong(
        at(where, "changes"), f"it holds {shown(data)}", "Give scope, path (a list), op and value"
    )


_CHANGE = frozenset(("op", "value"))


def _pair_from(pair: Any, where: str) -> tuple[Mapping[str, object], object]:
    match pair:
        case [{**args}, answer]:
            return cast("Mapping[str, Any]", args), _mock_from(answer, at(where, 1))
        case _:
            example: Json = [{"argument": "..."}, {"value": "..."}]
            message = f"{shown(pair)} should be a pair of arguments and a mock"
            raise wrong(where, message, "Write", example=example)
