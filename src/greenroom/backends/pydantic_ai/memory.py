"""What is remembered of a run's messages, and the messages made of it again.

Both speak the framework's own format. Its serializer asks several functions about every message,
which takes a good part of what a rehearsal may cost. So messages of plain fields are told here, but
for what is None by default; the framework tells the others.
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
from greenroom.ledger.records import record


def remembered(messages: Sequence[ModelMessage]) -> list[Json]:
    """The messages as JSON of its own: `recalled` makes the same messages of it."""
    return [_told(message) for message in messages]


def recalled(known: list[Json]) -> list[ModelMessage]:
    """The messages that were remembered."""
    # The framework keeps some of what it is given, and what happened is never edited.
    return ModelMessagesTypeAdapter.validate_python(deepcopy(known)) if known else []


def _told(message: ModelMessage) -> Json:
    try:
        return _plainly(message)
    except _HasMoreError:
        return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


class _HasMoreError(Exception):
    """There is more to a message than plain fields."""


@record
class _Form:
    """The fields of a kind of message or part: those always said, and those that are mostly None."""

    read: Callable[[object], tuple[dict[str, object], dict[str, object], bool]]
    """What is always said, first that which is mostly plain as it is; and whether it is all."""
    rest: tuple[str, ...]


def _plainly(thing: object) -> dict[str, Json]:
    """The fields of a message or a part, if each is plain."""
    form = _FORMS.get(type(thing))
    if form is None:
        raise _HasMoreError
    told, others, is_all = form.read(thing)
    if not is_all:
        given = [(name, getattr(thing, name)) for name in form.rest]
        others |= {name: value for name, value in given if value is not None}
    if not _LEAVES.issuperset(map(type, told.values())):
        others |= told
    for name, value in others.items():
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
    """Whether this is JSON as it is; of floats nobody knows without a look."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
    if kind is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    return all(map(_is_json, value)) if kind is list else kind in _LEAVES


def _form(kind: type[Any], *said: str) -> _Form:
    """A kind whose fields are always said if they are not None by default, or are named here."""
    known = {field.name: field.default is None for field in fields(kind)}
    names = [name for name, is_none in known.items() if not is_none or name in said]
    rest = [name for name in known if name not in names]
    bare = " is ".join(["None", *(f"it.{name}" for name in rest), "None"])
    told, others = (
        ", ".join(f"{name!r}: it.{name}" for name in names if (name in _OPEN) is is_open)
        for is_open in (False, True)
    )
    return _Form(_compiled(f"({{{told}}}, {{{others}}}, {bare})"), tuple(rest))


def _compiled(expression: str) -> Callable[[Any], Any]:
    # As the dataclasses module does, of names only: looked up one by one, each costs twice as much.
    return eval(f"lambda it: {expression}")  # noqa: S307


_LEAVES: Final = frozenset((str, int, bool, type(None)))
_OPEN: Final = frozenset(("parts", "timestamp", "usage", "args"))
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
_FORMS: Final[Mapping[type, _Form]] = {
    ModelRequest: _form(ModelRequest, "timestamp", "run_id", "conversation_id"),
    ModelResponse: _form(ModelResponse, "model_name", "model_id", "run_id", "conversation_id"),
    SystemPromptPart: _form(SystemPromptPart),
    TextPart: _form(TextPart),
    ToolCallPart: _form(ToolCallPart, "args"),
    ToolReturnPart: _form(ToolReturnPart),
    UserPromptPart: _form(UserPromptPart),
}
