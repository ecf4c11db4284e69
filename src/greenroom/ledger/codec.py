"""Ledgers as JSON lines: one event a line, so a cut file loses at most its last line."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic_core import PydanticSerializationError, to_json

from greenroom.errors import BadLedger
from greenroom.ledger.events import AnyEvent, Event

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


@cache
def _adapter() -> "TypeAdapter[AnyEvent]":
    # Writing needs its core only, and most runs are only written.
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


def encode(events: Iterable[Event]) -> Iterator[str]:
    """One line of JSON for each event."""
    return (encoded(event).decode() for event in events)


def encoded(event: Event) -> bytes:
    """An event as one line of JSON, with all its fields in their order."""
    told = {**_usual(type(event)), **vars(event)}
    try:
        return to_json(told)
    except PydanticSerializationError:
        return _mended(told)


@cache
def _usual(kind: type[Event]) -> dict[str, Any]:
    """What an event of this kind says of itself unless it was told otherwise."""
    return {field.name: field.default for field in fields(cast(Any, kind))}


def json_of(data: Any) -> bytes:
    """JSON in UTF-8; half a character has no place there, and is spelt out."""
    try:
        return to_json(data)
    except PydanticSerializationError:
        return json.dumps(data).encode()


def _mended(told: dict[str, Any]) -> bytes:
    """Half a character, as a cut stream leaves it, fits no file; the rest of the run must not go."""
    text = json.dumps(told, ensure_ascii=False, allow_nan=False, default=_parts)
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
            yield adapter.validate_json(line)
        except ValidationError as error:
            if number == last and not _is_json(line):
                return
            raise BadLedger(
                f"{source}, line {number} is not an event of a ledger: {_first(error)}. "
                f"Ledgers are written by Ledger.save, one JSON object a line."
            ) from error


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _first(error: "ValidationError") -> str:
    found = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{found['msg']} at {place!r}" if place else str(found["msg"])
