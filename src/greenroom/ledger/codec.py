"""Ledgers as JSON lines: one event per line, so an interrupted write loses at most the last line."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import msgspec

from greenroom.errors import BadLedger
from greenroom.ledger.events import AnyEvent, Event
from greenroom.ledger.plain import Json


@cache
def _decoder() -> "msgspec.json.Decoder[AnyEvent]":
    # Made when first needed: most runs only write.
    return msgspec.json.Decoder(AnyEvent)


@cache
def _lenient() -> "msgspec.json.Decoder[AnyEvent]":
    return msgspec.json.Decoder(AnyEvent, strict=False)


def _foreign(value: object) -> object:
    """JSON for a value of another type: parts of a case, such as its tags, may hold anything."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_foreign)


def encoded(event: Event) -> bytes:
    """An event as a line of JSON, with its newline; fields at their defaults are left out."""
    try:
        return _ENCODER.encode(event) + b"\n"
    except ValueError:
        return _mended(event) + b"\n"


def event_data(event: Event) -> dict[str, Json]:
    """An event as a JSON object, in its written form."""
    return json.loads(encoded(event))


def event_from(data: object) -> Event:
    """The event in a JSON object; BadLedger if it is not one."""
    (event,) = decode([f"{json.dumps(data)}", ""], "history")
    return event


def encoded_lines(events: Sequence[Event]) -> bytes:
    """Events as lines of JSON, each as `encoded` writes it."""
    try:
        return _ENCODER.encode_lines(events)
    except ValueError:
        return b"".join(map(encoded, events))


def json_of(data: object, default: Callable[[object], object] | None = None) -> bytes:
    """JSON in UTF-8; half a surrogate pair, which UTF-8 cannot hold, is escaped."""
    try:
        return msgspec.json.encode(data, enc_hook=default)
    except (TypeError, ValueError):
        return _odd_json_of(data, default)


def _odd_json_of(data: object, default: Callable[[object], object] | None) -> bytes:
    """JSON of what msgspec refuses: numbers of thousands of digits, odd keys, half surrogate pairs."""
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(data, fallback=default)
    except PydanticSerializationError:
        return json.dumps(data, default=default).encode()


def _mended(event: Event) -> bytes:
    """JSON of what msgspec refuses: numbers of thousands of digits, and half surrogate pairs.

    Half a pair, which an interrupted stream leaves, is replaced, so that the rest of the trial is kept.
    """
    from pydantic_core import PydanticSerializationError, to_json

    whole = msgspec.to_builtins(event, enc_hook=_foreign)
    try:
        return to_json(whole)
    except PydanticSerializationError:
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode(errors="surrogatepass").decode(errors="replace").encode()


def decode(lines: Iterable[str], source: str = "ledger") -> Iterator[Event]:
    """The events in these lines; BadLedger names the line that is not one.

    A last line that does not parse and has no newline is an interrupted write, and is left out.
    """
    numbered = [(number, line) for number, line in enumerate(lines, start=1)]
    last = len(numbered)
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            yield _event(line)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            if number == last and type(error) is msgspec.DecodeError:
                return  # not even JSON
            raise BadLedger(
                f"{source}, line {number} is not an event of a ledger: {error}. "
                f"Ledgers are written by Ledger.save, one JSON object per line."
            ) from error


def _event(line: str) -> Event:
    try:
        return _decoder().decode(line)
    except msgspec.ValidationError:
        # Events are not checked when they are made: a model may have counted 12.0 tokens, or given
        # its price as a Decimal, which is written as a string.
        return _lenient().decode(line)
