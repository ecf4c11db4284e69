"""Spans as OpenTelemetry's SDK prints them: `span.to_json()`, or the console exporter's output."""

from collections.abc import Iterator

from greenroom.errors import BadTrace
from greenroom.ledger.plain import Json, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.records import Flaw, Found, Span
from greenroom.traces.values import moment, obj, text


class SdkJson:
    """Reads a list of spans, one on each line, or one after another."""

    name = "sdk"

    def recognises(self, file: TraceFile) -> bool:
        """Whether its first entry is a span with its context."""
        first = next((one for _, one in _entries(file)), None)
        if not is_object(first):
            return False
        context = first.get("context")
        return is_object(context) and "trace_id" in context and "parent_id" in first

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each span."""
        for place, one in _entries(file):
            try:
                yield _span(obj(one, "a span"), place)
            except BadTrace as error:
                yield Flaw(place=place, why=str(error), source=file.source)


def _entries(file: TraceFile) -> Iterator[tuple[str, Json]]:
    """The entries that may be spans, each with its place, without the metrics that are printed among them."""
    for place, one in file.entries():
        if not (is_object(one) and "resource_metrics" in one):
            yield place, one


def _span(span: dict[str, Json], place: str) -> Span:
    context = obj(span.get("context"), "context")
    status = obj(span.get("status") or {}, "status")
    ended = span.get("end_time")
    return Span(
        trace=text(context.get("trace_id"), "trace_id").removeprefix("0x"),
        id=text(context.get("span_id"), "span_id").removeprefix("0x"),
        parent=text(span.get("parent_id"), "parent_id", empty=True).removeprefix("0x"),
        name=text(span.get("name"), "name", empty=True),
        start=moment(span.get("start_time"), "start_time"),
        end=None if ended is None else moment(ended, "end_time"),
        attributes=obj(span.get("attributes") or {}, "attributes"),
        failed=status.get("status_code") == "ERROR",
        error=str(status.get("description") or ""),
        place=place,
    )
