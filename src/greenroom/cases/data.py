"""Cases as data: what a ledger's first event and a file can hold of them.

Live parts (functions, tools, users, metrics) are written down by qualified name and a hash of
their source under the key "live", and come back only where the author's code is at hand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from inspect import isroutine
from typing import Any, cast

from greenroom.cases.case import USUAL_STOP, Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion, criterion_data, criterion_from
from greenroom.cases.mocks import ByArgs, Fault, InTurn, Live, by_args, fault, in_turn
from greenroom.cases.users import user_data, user_from
from greenroom.errors import BadCase, BadFile, BadMetric, BadQuery, BadValue
from greenroom.ledger.identity import code_identity
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import JSON_TYPES, Json, plain


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
        data["mocks"] = {tool: mock_data(mock) for tool, mock in case.mocks.items()}
    if case.allow_tools:
        data["allow_tools"] = [t if isinstance(t, str) else _live(t) for t in case.allow_tools]
    if case.state:
        data["state"] = plain(case.state, f"state of case {case.id!r}")
    if case.stop is not USUAL_STOP and case.stop != USUAL_STOP:
        data["stop"] = _stop_data(case.stop)
    if case.metrics:
        data["metrics"] = [_metric_data(metric) for metric in case.metrics]
    if case.name:
        data["name"] = case.name
    if case.description:
        data["description"] = case.description
    if case.now is not None:
        data["now"] = case.now
    if case.user is not None:
        data["user"] = user_data(case.user) or _shown(case.user)
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
    if case.extra:
        data["extra"] = plain(case.extra, f"extra of case {case.id!r}")
    return data


def _shown(part: object) -> Json:
    return {**_live(part), "shown": repr(part)}


_LIVE = ("user", "bridge", "agent")


def live_parts(case: Case) -> list[str]:
    """The places in a case that hold code, and so cannot come back from a file."""
    data = case_data(case)
    places = [name for name in _LIVE if _is_live(data.get(name))]
    places += [f"metrics.{m['name']}" for m in data.get("metrics", ()) if _is_code(m)]
    places += [f"mocks.{tool}" for tool, mock in data.get("mocks", {}).items() if _is_live(mock)]
    places += [f"allow_tools.{i}" for i, t in enumerate(data.get("allow_tools", ())) if _is_live(t)]
    return [f"{case.id}.{place}" for place in places]


def written_data(case: Case) -> dict[str, Json]:
    """The case as a file can hold it: its data without what is code."""
    data = {
        name: value
        for name, value in case_data(case).items()
        if name not in _LIVE or not _is_live(value)
    }
    if "metrics" in data:
        data["metrics"] = [metric for metric in data["metrics"] if not _is_code(metric)]
    if "mocks" in data:
        data["mocks"] = {t: mock for t, mock in data["mocks"].items() if not _is_live(mock)}
    if "allow_tools" in data:
        data["allow_tools"] = [tool for tool in data["allow_tools"] if not _is_live(tool)]
    return data


def _is_code(metric: Json) -> bool:
    """Whether a metric was written down by what it is, not by its name in the registry."""
    return isinstance(metric, dict) and "criterion" not in metric


def _is_live(mock: Json) -> bool:
    """Whether what was written down of a mock stands for code; its answers may say anything."""
    match mock:
        case {"live": _}:
            return True
        case {"in_turn": [*answers]}:
            return any(_is_live(answer) for answer in answers)
        case {"by_args": [*pairs], **rest}:
            return any(_is_live(answer) for answer in [*(a for _, a in pairs), *rest.values()])
        case _:
            return False


def _live(part: object) -> Json:
    return {"live": code_identity(part)}


def expect_data(expect: Expect) -> dict[str, Json]:
    """An expectation as JSON; what is not set is left out."""
    data: dict[str, Json] = {}
    if expect.tools is not None:
        data["tools"] = [
            wanted if isinstance(wanted, str) else {"tool": wanted.tool, "args": plain(wanted.args)}
            for wanted in expect.tools
        ]
    if expect.response is not None:
        data["response"] = expect.response
    if expect.contains is not None:
        data["contains"] = plain(expect.contains)
    if expect.state is not None:
        data["state"] = plain(expect.state)
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
        data["state_matches"] = plain(stop.state_matches)
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


def _metric_data(metric: Any) -> Json:
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
    held = [getattr(metric, f.name) for f in fields(metric)] if is_dataclass(metric) else []
    code = [code_identity(value) for value in held if isroutine(value)]
    return {"live": code} if code else {}


def _ours(part: object) -> bool:
    return type(part).__module__.startswith("greenroom.")


_FIELDS = frozenset(
    [
        "id",
        "says",
        "expect",
        "turns",
        "mocks",
        "allow_tools",
        "state",
        "stop",
        "metrics",
        "user",
        "bridge",
        "agent",
        "name",
        "description",
        "now",
        "tags",
        "metadata",
        "target",
        "extra",
    ]
)


def case_from(data: Mapping[str, Any], where: str = "case", *, live: bool = False) -> Case:
    """The case written down in `data`.

    With `live=True` parts that were code are left out instead of refused, as when a ledger is
    scored again: what happened needs no mocks.
    """
    _known(data, _FIELDS, where)
    if not live:
        _refuse_code(data, where)
    try:
        return Case(
            _typed(data, "id", str, where, ""),
            _typed(data, "says", str, where, ""),
            expect=_expect_from(data.get("expect"), f"{where}.expect"),
            turns=[
                _turn_from(turn, f"{where}.turns[{i}]")
                for i, turn in enumerate(_typed(data, "turns", Sequence, where, ()))
            ],
            mocks={} if live else _mocks_from(_typed(data, "mocks", Mapping, where, {}), where),
            allow_tools=_names_from(_typed(data, "allow_tools", Sequence, where, ()), where, live),
            state=_typed(data, "state", Mapping, where, {}),
            stop=_stop_from(_typed(data, "stop", Mapping, where, {}), f"{where}.stop"),
            metrics=_metrics_from(_typed(data, "metrics", Sequence, where, ()), where, live),
            user=_user_from(data.get("user"), f"{where}.user"),
            name=_typed(data, "name", str, where, ""),
            description=_typed(data, "description", str, where, ""),
            tags=_typed(data, "tags", Sequence, where, ()),
            metadata=_typed(data, "metadata", Mapping, where, {}),
            now=data.get("now"),
            target=_typed(data, "target", str, where, ""),
            extra=data.get("extra"),
        )
    except (BadValue, BadCase, BadMetric, BadQuery) as error:
        raise BadFile(f"{where}: {error}") from error


def _refuse_code(data: Mapping[str, Any], where: str) -> None:
    """A part left out in silence would make it another case."""
    for name in _LIVE:
        if name in data and (name != "user" or _is_live(data[name])):
            raise BadFile(
                f"{where} has `{name}`, which is code; a file holds data only. Keep this case in a "
                f"Python module, or leave `{name}` out."
            )


def _known(data: object, names: frozenset[str], where: str) -> None:
    if not isinstance(data, Mapping):
        raise BadFile(f"{where} is {data!r}, but should be a mapping with {sorted(names)}.")
    for key in cast("Mapping[str, Any]", data):
        if key not in names:
            raise BadFile(f"{where} has the unknown field {key!r}; known are {sorted(names)}.")


def _typed(data: Mapping[str, Any], key: str, kind: Any, where: str, default: Any) -> Any:
    value = data.get(key, default)
    if not isinstance(value, kind) or (kind is not str and isinstance(value, str)):
        wanted = _WORDS[kind]
        raise BadFile(f"{where}.{key} is {value!r}, but should be a {wanted}.")
    return value


_WORDS: dict[Any, str] = {str: "text", Mapping: "mapping", Sequence: "list"}


def _names_from(tools: Sequence[Any], where: str, live: bool) -> list[str]:
    for tool in tools:
        if not live and not isinstance(tool, str):
            raise BadFile(f"{where}.allow_tools holds {tool!r}; name the tool.")
    return [tool for tool in tools if isinstance(tool, str)]


def _turn_from(data: Any, where: str) -> Turn:
    _known(data, frozenset(("says", "expect", "extra")), where)
    return Turn(
        _typed(data, "says", str, where, ""),
        _expect_from(data.get("expect"), f"{where}.expect"),
        data.get("extra"),
    )


def _user_from(data: Any, where: str) -> Any:
    return None if data is None or _is_live(data) else user_from(data, where)


def _metrics_from(data: Sequence[Any], where: str, live: bool) -> list[Criterion]:
    """Metrics by name; those that were code are left out or, unless `live`, refused."""
    kept = [item for item in data if not (live and _is_code(item))]
    return [criterion_from(item, f"{where}.metrics[{i}]") for i, item in enumerate(kept)]


def _expect_from(data: Any, where: str) -> Expect | None:
    if data is None:
        return None
    _known(data, _EXPECTED, where)
    tools = None
    if data.get("tools") is not None:
        tools = [
            _call_from(i, f"{where}.tools") for i in _typed(data, "tools", Sequence, where, ())
        ]
    return Expect(
        tools=tools,
        response=data.get("response"),
        contains=data.get("contains"),
        state=data.get("state"),
        reference=data.get("reference"),
        intermediate=data.get("intermediate"),
        extra=data.get("extra"),
    )


_EXPECTED = frozenset(part.name for part in fields(Expect))


def _call_from(data: Any, where: str) -> ToolCall | str:
    if isinstance(data, str):
        return data
    _known(data, frozenset(("tool", "args")), where)
    return ToolCall(_typed(data, "tool", str, where, ""), _typed(data, "args", Mapping, where, {}))


def _stop_from(data: Mapping[str, Any], where: str) -> Stop:
    _known(data, frozenset(("max_turns", "max_seconds", "state_matches")), where)
    return Stop(**data)


def _mocks_from(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {tool: _mock_from(mock, f"{where}.mocks.{tool}") for tool, mock in data.items()}


def _mock_from(data: Any, where: str) -> Any:
    _known(data, frozenset(("value", "in_turn", "by_args", "otherwise", "fault")), where)
    match dict(data):
        case {"value": value, **rest} if not rest:
            return value
        case {"in_turn": [*answers], **rest} if not rest:
            return in_turn(*(_mock_from(answer, where) for answer in answers))
        case {"by_args": [*pairs], **rest} if not rest.keys() - {"otherwise"}:
            others = {key: _mock_from(answer, where) for key, answer in rest.items()}
            return by_args(*(_pair_from(pair, where) for pair in pairs), **others)
        case {"fault": {**given}, **rest} if not rest:
            _known(given, frozenset(("error", "timeout", "slow", "value", "malformed")), where)
            return fault(**given)
        case other:
            raise BadFile(f"{where} is {other!r}; give one of value, in_turn, by_args, fault.")


def _pair_from(pair: Any, where: str) -> tuple[Mapping[str, Any], Any]:
    match pair:
        case [{**args}, answer]:
            return args, _mock_from(answer, where)
        case _:
            raise BadFile(f"{where}.by_args holds {pair!r}; give [arguments, mock] pairs.")
