"""Ledgers as JSON lines: one event a line, so a cut file loses at most its last line."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from pydantic_core import PydanticSerializationError, from_json, to_json

from greenroom.errors import BadLedger
from greenroom.ledger.events import AnyEvent, Event

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


@cache
def _adapter() -> "TypeAdapter[AnyEvent]":
    # Writing needs its core only, and most runs are only written.
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


def encoded(event: Event) -> bytes:
    """An event as a line of JSON, its end included: what was said of it, but no unmentioned defaults."""
    told = event.__dict__
    try:
        line = orjson.dumps(told, None, orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        line = _mended(told) + b"\n"
    if "kind" in told:
        return line
    return _HEADS[type(event)] + line[1:] if told else _HEADS[type(event)][:-1] + b"}\n"


class _Heads(dict[type[Event], bytes]):
    """How the line of an event of each kind begins."""

    def __missing__(self, kind: type[Event]) -> bytes:
        name: str = kind.kind  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        head = self[kind] = f'{{"kind":"{name}",'.encode()
        return head


_HEADS = _Heads()


def json_of(data: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """JSON in UTF-8; half a character has no place there, and is spelt out."""
    try:
        return orjson.dumps(data, default)
    except TypeError:  # that, or a number of more than 64 bits
        pass
    try:
        return to_json(data, fallback=default)
    except PydanticSerializationError:
        return json.dumps(data, default=default).encode()


def _mended(told: dict[str, Any]) -> bytes:
    """What the fast way does not take: numbers of more than 64 bits, and half characters.

    Half a character, as a cut stream leaves it, fits no file; the rest of the run must not go.
    """
    try:
        return to_json(told)
    except PydanticSerializationError:
        text = json.dumps(
            told, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_parts
        )
        return text.encode(errors="surrogatepass").decode(errors="replace").encode()


def _parts(value: Any) -> dict[str, Any]:
    """A record inside an event, by its fields."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def decode(lines: Iterable[str], source: str = "ledger") -> Iterator[Event]:
    """The events in these lines; a line that is no event is named with its number.

    A last line without its newline that does not parse is the mark of a cut, and is left out.
    """
    from pydantic import ValidationError

    adapter = _adapter()
    numbered = [(number, line) for number, line in enumerate(lines, start=1)]
    last = len(numbered)
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            told = from_json(line)
            event = adapter.validate_python(told)
        except ValueError as error:
            is_json = isinstance(error, ValidationError)  # else it is not even JSON
            if number == last and not is_json:
                return
            why = _first(error) if is_json else str(error)
            raise BadLedger(
                f"{source}, line {number} is not an event of a ledger: {why}. "
                f"Ledgers are written by Ledger.save, one JSON object a line."
            ) from error
        yield _as_told(event, told)


def _as_told(event: Event, told: dict[str, Any]) -> Event:
    """An event without the defaults that its line leaves out: written again it is the same line."""
    given = vars(event)
    named = {name: given[name] for name in told if name in given}
    given.clear()
    given.update(named)
    return event


def _first(error: "ValidationError") -> str:
    found = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{found['msg']} at {place!r}" if place else str(found["msg"])
