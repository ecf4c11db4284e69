"""What readers of traces and logs return: spans, which are still to be assembled, and whole conversations."""

from msgspec import Struct, field

from greenroom.errors import BadTrace
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json


class Span(Struct, frozen=True, kw_only=True):
    """A span as another tool wrote it; attributes are those of OpenTelemetry's conventions or alike.

    Times are seconds since the epoch. `place` is its place in the file, for errors. `lacks` says that
    attributes were left out, because there were too many or on purpose.
    """

    trace: str
    id: str
    name: str
    start: float
    end: float | None = None
    parent: str = ""
    attributes: dict[str, Json] = field(default_factory=dict[str, Json])
    failed: bool = False
    error: str = ""
    scope: str = ""
    lacks: bool = False
    place: str = ""


class Imported(Struct, frozen=True, kw_only=True):
    """A conversation that was recorded elsewhere, as a ledger.

    `verdicts` are the other tool's verdicts on it, by name: kept, but never treated as measurements.
    """

    conversation: str
    ledger: Ledger
    format: str = ""
    source: str = ""
    case_id: str = ""
    """The case or task it was recorded for, if the source names one."""
    trial: int = 1
    verdicts: dict[str, Json] = field(default_factory=dict[str, Json])
    notes: tuple[str, ...] = ()


class Flaw(Struct, frozen=True, kw_only=True):
    """Something in a file that cannot be read, and where; what belongs to `trace` is left out with it.

    Without a trace, all spans of its file are left out; whole conversations are still read.
    """

    place: str
    why: str
    trace: str = ""
    source: str = ""

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.source, self.place) if part)
        return f"{where}: {self.why}" if where else self.why

    def error(self) -> BadTrace:
        """The flaw as an error to raise."""
        return BadTrace(str(self), self)


Found = Span | Imported | Flaw
"""What a reader finds in a file."""
