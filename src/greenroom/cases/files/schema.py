"""The JSON schema of Greenroom's own shape, made from the types of its fields."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from greenroom.cases.case import Case, Expect, Stop, Turn
from greenroom.cases.evalset import MOST_TRIALS, EvalSet
from greenroom.cases.files.own import VERSION
from greenroom.cases.mock_reader import FAULT_FIELDS, WORLD_FIELDS
from greenroom.cases.names import MAX_ID
from greenroom.cases.users import SimulatedUser, UserAgents
from greenroom.ledger.attachments import MARK
from greenroom.ledger.plain import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_ID: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_ID}
_CODE = ("bridge", "agent")


def evalset_schema() -> Schema:
    """A JSON schema (2020-12) for files of Greenroom's own shape; unknown fields are refused."""
    return {
        "$schema": DIALECT,
        "title": "Greenroom eval set",
        **_record(EvalSet, {**_HEAD, **_SET}, without=("shape", "usual")),
        "required": ["version", "cases"],
        "$defs": {
            "case": _record(Case, _CASE, without=("script", "origin", *_CODE)),
            "turn": _record(
                Turn, {"expect": _ref("expect"), "attachments": _list(_ref("attachment"))}
            ),
            "attachment": _ATTACHMENT,
            "expect": _record(Expect, _EXPECT),
            "stop": _record(Stop, {"state_matches": _by_scope()}),
            "call": _only({"tool": {"type": "string", "minLength": 1}, "args": _OBJECT}, "tool"),
            "mock": _mock(),
            "criterion": {"anyOf": [_TEXT, _NAMED_CRITERION]},
            "user": {"anyOf": [_LINES, _ref("person"), _ref("agents")]},
            "agents": {
                **_record(UserAgents, {"tools": {"type": "object"}, "loop": _ref("user")}),
                "required": ["tools"],
            },
            "person": _record(SimulatedUser, {"model": _TEXT}),
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _by_scope() -> Schema:
    return {"type": "object", "additionalProperties": _OBJECT}


def _only(properties: Mapping[str, Json], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        **({"required": list(required)} if required else {}),
        "additionalProperties": False,
    }


_HEAD: dict[str, Schema] = {"$schema": _TEXT, "version": {"const": VERSION}}
_SET: dict[str, Schema] = {
    "id": _ID,
    "trials": {"type": "integer", "minimum": 1, "maximum": MOST_TRIALS},
    "cases": _list(_ref("case")),
    "metrics": _list(_ref("criterion")),
}
_CASE: dict[str, Schema] = {
    "id": _ID,
    "expect": _ref("expect"),
    "turns": _list(_ref("turn")),
    "mocks": {"type": "object", "additionalProperties": _ref("mock")},
    "allow_tools": _list(_TEXT),
    "state": _by_scope(),
    "stop": _ref("stop"),
    "metrics": _list(_ref("criterion")),
    "user": _ref("user"),
    "model": {"anyOf": [_TEXT, {"type": "null"}]},
    "attachments": _list(_ref("attachment")),
}
_EXPECT: dict[str, Schema] = {
    **dict.fromkeys(("response", "reference", "stopped_by"), _TEXT),
    "tools": _list({"anyOf": [_TEXT, _ref("call")]}),
    "contains": {"anyOf": [_TEXT, _list(_TEXT)]},
    "intermediate": _list(_TEXT),
    "state": _by_scope(),
    "state_after": {"type": "object", "additionalProperties": _by_scope()},
}

_NAMES: Schema = {"media_type": _TEXT, "name": _TEXT}
_ATTACHMENT: Schema = {
    "anyOf": [
        _TEXT,
        _only({"path": _TEXT, **_NAMES}, "path"),
        _only({"base64": _TEXT, **_NAMES}, "base64"),
        _only({MARK: _TEXT, **_NAMES, "size": {"type": "integer"}}, MARK, "media_type", "size"),
    ]
}
_NAMED_CRITERION: Schema = {
    "type": "object",
    "properties": {"criterion": _TEXT, "threshold": {"type": "number"}},
    "required": ["criterion"],
}
_LINES = _only({"lines": {"type": "array"}, "then": {}}, "lines")


def _record(
    kind: type[Any], special: Mapping[str, Schema], without: tuple[str, ...] = ()
) -> Schema:
    """The schema of a record: its fields by their types, except special ones."""
    from pydantic import TypeAdapter  # heavy, and only a schema needs it

    hints = get_type_hints(kind)
    parts = [part for part in fields(kind) if part.init and part.name not in without]
    properties = {name: special[name] for name in special if name not in hints}
    for part in parts:
        known = special.get(part.name)
        properties[part.name] = (
            TypeAdapter(hints[part.name]).json_schema() if known is None else known
        )
    needed = [p.name for p in parts if p.default is MISSING and p.default_factory is MISSING]
    return _only(properties, *needed)


def _mock() -> Schema:
    pair: Schema = {
        "type": "array",
        "prefixItems": [_OBJECT, _ref("mock")],
        "minItems": 2,
        "maxItems": 2,
    }
    texts: Schema = {name: {"type": "string"} for name in WORLD_FIELDS}
    world = _only({**texts, "state": _OBJECT}, "world", "model")
    faults: Schema = {**{name: dict[str, Any]() for name in FAULT_FIELDS}, "lost": _ref("mock")}
    return {
        "oneOf": [
            _only({"value": {}, "changes": _list(_OBJECT)}, "value"),
            _only({"in_turn": {**_list(_ref("mock")), "minItems": 1}}, "in_turn"),
            _only({"by_args": _list(pair), "otherwise": _ref("mock")}, "by_args"),
            _only({"fault": _only(faults)}, "fault"),
            _only({"simulated": {"anyOf": [{"type": "string"}, world]}}, "simulated"),
        ]
    }
