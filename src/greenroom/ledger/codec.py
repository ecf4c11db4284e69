"""Ledgers as JSON lines: one event a line, so a cut file loses at most its last line."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, cast

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from greenroom.errors import BadLedger
from greenroom.ledger.events import AnyEvent, Event


@cache
def _adapter() -> TypeAdapter[AnyEvent]:
    return TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


def encode(events: Iterable[Event]) -> Iterator[str]:
    """One line of JSON for each event."""
    adapter = _adapter()
    for event in events:
        try:
            yield adapter.dump_json(cast(AnyEvent, event)).decode()
        except PydanticSerializationError:
            yield _mended(adapter.dump_python(cast(AnyEvent, event)))


def _mended(event: object) -> str:
    """Half a character, as a cut stream leaves it, fits no file; the rest of the run must not go."""
    text = json.dumps(event, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="surrogatepass").decode(errors="replace")


def decode(lines: Iterable[str], source: str = "ledger") -> Iterator[Event]:
    """The events in these lines; a line that is no event is named with its number.

    A last line without its newline that does not parse is the mark of a cut, and is left out.
    """
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


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{found['msg']} at {place!r}" if place else str(found["msg"])
