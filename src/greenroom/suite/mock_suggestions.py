"""Mocks to begin with: every tool an agent has, as YAML to paste into an eval set."""

import inspect
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, get_type_hints

from greenroom.backends.backend import ToolFacts
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.ledger.plain import Json

_SAMPLES: Mapping[str, Json] = {
    "string": "",
    "integer": 0,
    "number": 0.0,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
_DEEPEST = 4


def mocks_block(tools: Sequence[ToolFacts]) -> str:
    """A YAML block that mocks these tools in the shapes their return annotations promise; "" for none."""
    if not tools:
        return ""
    return "\n".join(["mocks:", *(line for facts in tools for line in _lines(facts)), ""])


def mocked_everywhere(cases: Iterable[Case], more: Iterable[object] = ()) -> set[str]:
    """The tools that have an answer in every one of the cases, or are named in `more`."""
    named = [{*case.mocks, *_names(case.allow_tools)} for case in cases]
    return {*(set[str].intersection(*named) if named else ()), *_names(more)}


def _names(tools: Iterable[object]) -> list[str]:
    return [str(tool if isinstance(tool, str) else getattr(tool, "name", tool)) for tool in tools]


def unmocked_tools(agent: object, mocked: Collection[str] = ()) -> list[ToolFacts]:
    """The tools that would be refused; those the user answers need no mock.

    For an agent whose tools are known only while it runs, there are none.
    """
    tools = backend_for(agent).tools or {}
    return [facts for name, facts in tools.items() if name not in mocked and not facts.yields]


def suggested_mock(facts: ToolFacts) -> dict[str, Json]:
    """A mock of one tool as a file holds it, in the shape that its return annotation promises."""
    hints = _hints(facts)
    returns = _schema(hints["return"]) if "return" in hints else {}
    return {"value": sample(returns)}


def _lines(facts: ToolFacts) -> list[str]:
    hints = _hints(facts)
    given = [_parameter(name, hints) for name in facts.parameters]
    returns = _schema(hints["return"]) if "return" in hints else {}
    arrow = f" -> {_word(returns)}" if returns else ""
    answer = json.dumps(sample(returns), ensure_ascii=False)
    mock = f"{{value: {answer}}}"
    return [f"  # {facts.name}({', '.join(given)}){arrow}", f"  {json.dumps(facts.name)}: {mock}"]


def _parameter(name: str, hints: Mapping[str, object]) -> str:
    word = _word(_schema(hints[name])) if name in hints else ""
    return f"{name}: {word}" if word else name


def _hints(facts: ToolFacts) -> dict[str, object]:
    """The annotations of the function behind the tool, as far as they can be read."""
    function = getattr(facts.origin, "fn", facts.origin)
    if not callable(function):
        return {}
    try:
        return get_type_hints(inspect.unwrap(function))
    except Exception:  # noqa: BLE001 - annotations are the author's and may name what is not there
        return {}


def _schema(hint: Any) -> dict[str, Json]:
    from pydantic import TypeAdapter

    try:
        found = TypeAdapter(hint).json_schema(mode="serialization")
    except Exception:  # noqa: BLE001 - a type that has no schema has no shape to show
        return {}
    # The schema of a recursive type is among the definitions.
    return {**found, **_named(found, found)}


def _named(schema: Mapping[str, object], root: Mapping[str, Any]) -> Mapping[str, Json]:
    """The definition that a schema refers to; nothing if it refers to none."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return root.get("$defs", {}).get(name, {})


def _word(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(filter(None, map(_word, schema["anyOf"])))
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    return str(schema.get("type") or schema.get("title") or "")


def sample(schema: Mapping[str, object], words: str = "") -> Json:
    """A value of the shape that a schema describes; its strings are `words`."""
    return _sample(schema, schema, words, 0)


def _sample(schema: Mapping[str, Any], root: Mapping[str, Any], words: str, depth: int) -> Json:
    if depth > _DEEPEST:
        return None
    schema = {**schema, **_named(schema, root)}
    if "default" in schema:
        return schema["default"]
    if "anyOf" in schema:
        return _sample(schema["anyOf"][0], root, words, depth + 1)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("properties"):
        parts: dict[str, Any] = schema["properties"]
        return {name: _sample(part, root, words, depth + 1) for name, part in parts.items()}
    kind = str(schema.get("type", "null"))
    return words if kind == "string" else _SAMPLES.get(kind)
