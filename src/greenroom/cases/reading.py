"""Cases read from data: a ledger's first event, or one entry of a file.

Every complaint says its place. A field that looks like a misspelt one is refused; what else is
unknown is kept in `extra`, what stands deeper under its path there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast, get_args

from greenroom.cases.case import Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion, criterion_from
from greenroom.cases.liveness import LIVE_FIELDS, is_code, is_live, queries_with_code
from greenroom.cases.mocks import by_args, fault, in_turn
from greenroom.cases.places import at, mapping_at, shown, unknown_field, wrong
from greenroom.cases.users import user_from
from greenroom.errors import BadCase, BadMetric, BadQuery, BadValue
from greenroom.ledger.changes import Change, Operation, WithStateChange
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json

Extra = dict[str, Json]

CASE_FIELDS = tuple(part.name for part in fields(Case) if part.init)
EXPECT_FIELDS = tuple(part.name for part in fields(Expect))
TURN_FIELDS = tuple(part.name for part in fields(Turn))
STOP_FIELDS = tuple(part.name for part in fields(Stop))
CALL_FIELDS = ("tool", "args")
MOCK_FIELDS = ("value", "changes", "in_turn", "by_args", "otherwise", "fault")
FAULT_FIELDS = ("error", "timeout", "slow", "value", "malformed")


def case_from(data: Mapping[str, Any], where: str = "case", *, live: bool = False) -> Case:
    """The case written down in `data`.

    With `live=True` parts that were code are left out instead of refused, as when a ledger is
    scored again: what happened needs no mocks.
    """
    extra = extra_of(data, CASE_FIELDS, where)
    if not live:
        _refuse_code(data, where)
    try:
        return Case(
            _text(data, "id", where),
            _text(data, "says", where),
            expect=_expect_from(data.get("expect"), at(where, "expect")),
            turns=[
                _turn_from(turn, at(where, "turns", i))
                for i, turn in enumerate(_list(data, "turns", where))
            ]
            or (),
            mocks={} if live else _mocks_from(_mapping(data, "mocks", where), where),
            allow_tools=_names_from(_list(data, "allow_tools", where), where, live) or (),
            state=_mapping(data, "state", where),
            stop=_stop_from(_mapping(data, "stop", where), at(where, "stop"), extra),
            metrics=_metrics_from(_list(data, "metrics", where), where, live) or (),
            user=_user_from(data.get("user"), at(where, "user")),
            name=_text(data, "name", where),
            description=_text(data, "description", where),
            tags=_texts(data, "tags", where) or (),
            metadata=_mapping(data, "metadata", where),
            now=_number(data, "now", where),
            target=_text(data, "target", where),
            implied=data.get("implied", True),
            extra=extra or None,
        )
    except (BadValue, BadCase, BadMetric, BadQuery) as error:
        raise wrong(where, str(error).rstrip(".")) from error


def _refuse_code(data: Mapping[str, Any], where: str) -> None:
    """A part left out in silence would make it another case."""
    for name in LIVE_FIELDS:
        if name in data and (name != "user" or is_live(data[name])):
            raise wrong(
                where,
                f"it has `{name}`, which is code; a file holds data only",
                f"Keep this case in a Python module, or leave `{name}` out",
            )
    for place in queries_with_code(data):
        raise wrong(
            f"{where}.{place}",
            "it has `$live`, which stands for a function; a file holds data only",
            "Keep this case in a Python module, or say it with operators",
        )


# Fields


def extra_of(data: object, known: Sequence[str], where: str) -> Extra:
    """What a mapping says beyond its fields, with what it calls `extra` itself."""
    given = mapping_at(where, data, known)
    beyond = {key: given[key] for key in given if key not in known}
    for key in beyond:
        if error := unknown_field(where, key, known):
            raise error
    extra = given.get("extra")
    if extra is None:
        return beyond
    for key in mapping_at(at(where, "extra"), extra):
        if key in beyond:
            raise wrong(at(where, key), "it is given twice, the other time under `extra`")
    return {**extra, **beyond}


def _only(data: object, known: Sequence[str], where: str) -> Mapping[str, Any]:
    """A mapping that is one of few forms: with a field beyond them it is none of them."""
    given = mapping_at(where, data, known)
    for key in given:
        if key not in known:
            raise unknown_field(where, key, known) or wrong(
                where, f"the field {shown(key)} is unknown", f"Known are {', '.join(known)}"
            )
    return given


def _typed(data: Mapping[str, Any], key: str, kind: Any, where: str, default: Any) -> Any:
    value = data.get(key, default)
    if not isinstance(value, kind) or (kind is not str and isinstance(value, str)):
        raise wrong(at(where, key), f"{shown(value)} should be a {_WORDS[kind]}")
    return value


_WORDS: dict[Any, str] = {str: "text", Mapping: "mapping", Sequence: "list"}


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    return _typed(data, key, str, where, "")


def _mapping(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    return _typed(data, key, Mapping, where, {})


def _list(data: Mapping[str, Any], key: str, where: str) -> Sequence[Any]:
    return _typed(data, key, Sequence, where, ())


def _texts(data: Mapping[str, Any], key: str, where: str) -> Sequence[str]:
    found = _list(data, key, where)
    for i, item in enumerate(found):
        if not isinstance(item, str):
            raise wrong(at(where, key, i), f"{shown(item)} should be a text")
    return found


def _number(data: Mapping[str, Any], key: str, where: str) -> Any:
    value = data.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise wrong(at(where, key), f"{shown(value)} should be a number")


# Turns


def _turn_from(data: Any, where: str) -> Turn:
    extra = extra_of(data, TURN_FIELDS, where)
    expect = _expect_from(data.get("expect"), at(where, "expect"))
    return _placed(where, Turn, _text(data, "says", where), expect, extra or None)


def _expect_from(data: Any, where: str) -> Expect | None:
    if data is None:
        return None
    extra = extra_of(data, EXPECT_FIELDS, where)
    tools = None
    if data.get("tools") is not None:
        tools = [
            _call_from(call, at(where, "tools", i), at("tools", i), extra)
            for i, call in enumerate(_list(data, "tools", where))
        ]
    said = {name: data.get(name) for name in EXPECT_FIELDS if name not in ("tools", "extra")}
    return _placed(where, Expect, tools=tools, extra=extra or None, **said)


def _call_from(data: Any, where: str, inside: str, extra: Extra) -> ToolCall | str:
    """An expected call; what else its mapping says goes to the expectation's `extra`."""
    if isinstance(data, str):
        return data
    beyond = extra_of(data, CALL_FIELDS, where)
    extra |= {at(inside, key): value for key, value in beyond.items()}
    if not _text(data, "tool", where):
        raise wrong(where, f"{shown(data)} names no tool", "Give `tool`, and `args` if they matter")
    return ToolCall(data["tool"], _mapping(data, "args", where))


def _stop_from(data: Mapping[str, Any], where: str, extra: Extra) -> Stop:
    beyond = extra_of(data, STOP_FIELDS, where)
    extra |= {at("stop", key): value for key, value in beyond.items()}
    for limit in ("max_turns", "max_seconds"):
        _number(data, limit, where)
    return _placed(where, Stop, **{key: data[key] for key in STOP_FIELDS if key in data})


def _placed(where: str, make: Callable[..., Any], *args: Any, **fields: Any) -> Any:
    """What `make` makes of these parts; if it refuses them, that happened here."""
    try:
        return make(*args, **fields)
    except (BadCase, BadMetric, BadQuery, BadValue) as error:
        raise wrong(where, str(error).removeprefix(f"{where} ").rstrip(".")) from error


# Users, metrics, tools


def _names_from(tools: Sequence[Any], where: str, live: bool) -> list[str]:
    for i, tool in enumerate(tools):
        if not live and not isinstance(tool, str):
            raise wrong(at(where, "allow_tools", i), f"{shown(tool)} is no name of a tool")
    return [tool for tool in tools if isinstance(tool, str)]


def _user_from(data: Any, where: str) -> Any:
    if is_live(data):
        data = data.get("person")
    return None if data is None else _placed(where, user_from, data, where)


def _metrics_from(data: Sequence[Any], where: str, live: bool) -> list[Criterion]:
    """Metrics by name; those that were code are left out or, unless `live`, refused."""
    kept = [item for item in data if not (live and is_code(item))]
    return metrics_from(kept, at(where, "metrics"))


def metrics_from(data: Sequence[Any], where: str) -> list[Criterion]:
    """The metrics that a list names."""
    found: list[Criterion] = []
    for i, item in enumerate(data):
        place = at(where, i)
        found.append(_placed(place, criterion_from, item, place))
        threshold = cast(object, found[-1].threshold)
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | None):
            raise wrong(at(place, "threshold"), f"{shown(threshold)} should be a number")
    return found


# Mocks


def _mocks_from(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {tool: _mock_from(mock, at(where, "mocks", tool)) for tool, mock in data.items()}


def _mock_from(data: Any, where: str) -> Any:
    match dict(_only(data, MOCK_FIELDS, where)):
        case {"value": value, "changes": [*changes], **rest} if not rest:
            return WithStateChange(value, tuple(_change_from(c, where) for c in changes))
        case {"value": value, **rest} if not rest:
            return value
        case {"in_turn": [*answers], **rest} if not rest:
            return _placed(where, in_turn, *(_mock_from(answer, where) for answer in answers))
        case {"by_args": [*pairs], **rest} if not rest.keys() - {"otherwise"}:
            others = {key: _mock_from(answer, where) for key, answer in rest.items()}
            return by_args(*(_pair_from(pair, where) for pair in pairs), **others)
        case {"fault": {**given}, **rest} if not rest:
            return _placed(where, fault, **_only(given, FAULT_FIELDS, where))
        case other:
            raise wrong(
                where, f"{shown(other)} is no mock", "Give value, in_turn, by_args or fault"
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


def _pair_from(pair: Any, where: str) -> tuple[Mapping[str, Any], Any]:
    match pair:
        case [{**args}, answer]:
            return cast("Mapping[str, Any]", args), _mock_from(answer, where)
        case _:
            raise wrong(at(where, "by_args"), f"it holds {shown(pair)}", "Give [arguments, mock]")
