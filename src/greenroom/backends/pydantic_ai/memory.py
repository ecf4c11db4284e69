"""What is remembered of a run's messages, and the messages made of it again.

Both speak the framework's own format. Its serializer takes 0.3 ms for four messages, a quarter of what
a rehearsal may cost over the bare run. So messages of plain fields are written here, in a tenth of
that, without what is None by default; the framework writes the others.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from greenroom.ledger.plain import Json, plain


def remembered(messages: Sequence[ModelMessage]) -> list[Json]:
    """The messages as JSON of its own: `recalled` makes the same messages of it."""
    return [_as_json(message) for message in messages]


def recalled(known: list[Json]) -> list[ModelMessage]:
    """The messages that were remembered."""
    # The framework keeps some of what it is given, and what happened is never edited.
    return ModelMessagesTypeAdapter.validate_python(deepcopy(known)) if known else []


def _as_json(message: ModelMessage) -> Json:
    try:
        return _plainly(message)
    except _HasMoreError:
        return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


class _HasMoreError(Exception):
    """There is more to a message than plain fields."""


def _plainly(thing: object) -> dict[str, Json]:
    """The fields of a message or a part, if each is plain."""
    known = _FIELDS.get(type(thing))
    if known is None:
        raise _HasMoreError
    told: dict[str, Json] = {}
    for name, is_always_said in known.items():
        value: object = getattr(thing, name)
        if value is not None or is_always_said:
            kind = type(value)
            told[name] = value if kind in _LEAVES else _TELLERS.get(kind, _more)(value, name)
    return told


def _more(_: Any, __: str) -> Json:
    raise _HasMoreError


def _moment(value: datetime, _: str) -> Json:
    # As the framework writes it, which takes it long to find for the usual ones.
    if value.tzinfo is not UTC or value.year < 1000:
        return to_jsonable_python(value)
    return msgspec.json.encode(value)[1:-1].decode()


def _number(value: Decimal, _: str) -> Json:
    return to_jsonable_python(value)


def _usage(value: RequestUsage, name: str) -> Json:
    """What was counted; what was not is zero."""
    known = vars(value)
    if name == "usage" and known == _UNCOUNTED:
        return {}
    # It may have been given fields that it was not born with, and prices are not counted.
    if name != "usage" or not _COUNTS.issuperset(known) or not _is_json(value.details):
        raise _HasMoreError
    told = {key: count for key, count in known.items() if count or type(count) is Decimal}
    if not _NUMBERS.issuperset(map(type, told.values())):
        raise _HasMoreError
    return plain(told)


def _parts(value: list[Any], name: str) -> Json:
    if name != "parts":
        raise _HasMoreError
    return [_plainly(part) for part in value]


def _object(value: dict[str, Json], name: str) -> Json:
    # Of a tool's own answer the framework also writes down which files are in it.
    if name == "content":
        raise _HasMoreError
    if is_flat(value):
        return dict(value)
    if not _is_json(value):
        raise _HasMoreError
    return plain(value)


def is_flat(value: Mapping[Any, Any]) -> bool:
    """Whether these are texts, whole numbers and the like by their names, and nothing below."""
    return _LEAVES.issuperset(map(type, value.values())) and _TEXT.issuperset(map(type, value))


def _is_json(value: Json) -> bool:
    """Whether this is JSON as it is; floats need a closer look."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
    if kind is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    return all(map(_is_json, value)) if kind is list else kind in _LEAVES


def _said(kind: type[Any], *always: str) -> dict[str, bool]:
    """The fields of a kind, and whether each is said even if it is None, as it is by default."""
    return {one.name: one.default is not None or one.name in always for one in fields(kind)}


_LEAVES: Final = frozenset((str, int, bool, type(None)))
_COUNTS: Final = frozenset(field.name for field in fields(RequestUsage))
_UNCOUNTED: Final[Mapping[str, Json]] = {"details": {}}
_TEXT: Final = frozenset((str,))
_NUMBERS: Final = frozenset((int, dict))
_TELLERS: Final[Mapping[type, Callable[[Any, str], Json]]] = {
    datetime: _moment,
    Decimal: _number,
    RequestUsage: _usage,
    list: _parts,
    dict: _object,
}
_FIELDS: Final[Mapping[type, Mapping[str, bool]]] = {
    ModelRequest: _said(ModelRequest, "timestamp", "run_id", "conversation_id"),
    ModelResponse: _said(ModelResponse, "model_name", "model_id", "run_id", "conversation_id"),
    SystemPromptPart: _said(SystemPromptPart),
    TextPart: _said(TextPart),
    ToolCallPart: _said(ToolCallPart, "args"),
    ToolReturnPart: _said(ToolReturnPart),
    UserPromptPart: _said(UserPromptPart),
}
