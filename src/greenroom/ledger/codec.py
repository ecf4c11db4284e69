"""Ledgers as JSON lines: one event a line, so a cut file loses at most its last line."""

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
    """JSON for a value of another type, where a case may hold anything, such as in its tags."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_foreign)


def encoded(event: Event) -> bytes:
    """An event as a line of JSON, its end included; what was left at its default is left out."""
    try:
        return _ENCODER.encode(event) + b"\n"
    except ValueError:
        return _mended(event) + b"\n"


def event_data(event: Event) -> dict[str, Json]:
    """An event as a JSON object, as it is written."""
    return json.loads(encoded(event))


def event_from(data: object) -> Event:
    """The event that is written as a JSON object; BadLedger if it is none."""
    (event,) = decode([f"{json.dumps(data)}", ""], "history")
    return event


def encoded_lines(events: Sequence[Event]) -> bytes:
    """Events as lines of JSON, each as `encoded` has it, in one go."""
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
    """JSON of what msgspec refuses: numbers of thousands of digits, odd keys, half characters."""
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(data, fallback=default)
    except PydanticSerializationError:
        return json.dumps(data, default=default).encode()


def _mended(event: Event) -> bytes:
    """JSON of what msgspec refuses: numbers of thousands of digits, and half characters.

    Half a character, as a cut stream leaves it, is replaced, so that the rest of the run is kept.
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

    A last line without its newline that does not parse is the mark of a cut, and is left out.
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
                f"Ledgers are written by Ledger.save, one JSON object a line."
            ) from error


def _event(line: str) -> Event:
    try:
        return _decoder().decode(line)
    except msgspec.ValidationError:
        # Events are not checked when they are made: a model may have counted 12.0 tokens, or given
        # its price as a Decimal, which is written as a text.
        return _lenient().decode(line)
