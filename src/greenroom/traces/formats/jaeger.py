"""Traces as Jaeger exports them: the JSON of its page and of its query service."""

from collections.abc import Iterator

from greenroom.errors import BadTrace
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.records import Flaw, Found, Span
from greenroom.traces.values import array, number, obj, text

_MICROSECONDS = 1_000_000


class Jaeger:
    """Reads `{"data": [{"traceID": ..., "spans": [...]}]}`."""

    name = "jaeger"

    def recognises(self, file: TraceFile) -> bool:
        """Whether it holds traces with spans that have operations."""
        data = file.first.get("data")
        first = data[0] if is_array(data) and data else None
        return is_object(first) and "spans" in first and "traceID" in first

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each span."""
        for document in file.documents:
            whole = document.data if is_object(document.data) else {}
            for number_, trace in enumerate(array(whole.get("data"), "data")):
                place = document.at(f"data[{number_}]")
                if not is_object(trace):
                    yield Flaw(place=place, why="a trace should be an object.", source=file.source)
                    continue
                named = trace.get("traceID")
                for index, span in enumerate(array(trace.get("spans"), f"{place}.spans")):
                    where = f"{place}.spans[{index}]"
                    try:
                        yield _span(obj(span, "a span"), where)
                    except BadTrace as error:
                        yield Flaw(
                            place=where, why=str(error), trace=str(named or ""), source=file.source
                        )


def _span(span: dict[str, Json], place: str) -> Span:
    start = number(span.get("startTime"), "startTime") / _MICROSECONDS
    tags = {
        text(obj(tag, "a tag").get("key"), "a tag's key"): obj(tag, "a tag").get("value")
        for tag in array(span.get("tags"), "tags")
    }
    status, said = tags.get("otel.status_code"), tags.get("otel.status_description")
    return Span(
        trace=text(span.get("traceID"), "traceID"),
        id=text(span.get("spanID"), "spanID"),
        parent=_parent(span),
        name=text(span.get("operationName"), "operationName", empty=True),
        start=start,
        end=start + number(span.get("duration", 0), "duration") / _MICROSECONDS,
        attributes=tags,
        failed=status == "ERROR" or tags.get("error") in (True, "true"),
        error=said if isinstance(said, str) else "",
        scope=str(tags.get("otel.scope.name") or ""),
        lacks=tags.get("otel.dropped_attributes_count") not in (None, 0, "0"),
        place=place,
    )


def _parent(span: dict[str, Json]) -> str:
    for reference in array(span.get("references"), "references"):
        found = obj(reference, "a reference")
        if found.get("refType", "CHILD_OF") == "CHILD_OF":
            return text(found.get("spanID"), "a reference's spanID")
    return text(span.get("parentSpanID"), "parentSpanID", empty=True)
