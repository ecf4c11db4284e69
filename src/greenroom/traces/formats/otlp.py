"""Spans in OTLP: as JSON (of an exporter, a collector's file, or Tempo), and as protobuf."""

import base64
import binascii
import re
from collections.abc import Iterator

from greenroom.errors import BadTrace, MissingExtra
from greenroom.installation import how_to_install
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.records import Flaw, Found, Span
from greenroom.traces.values import array, first, number, obj, text

_NANOSECONDS = 1_000_000_000
_HEX = re.compile("[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")
_TOPS = ("resourceSpans", "resource_spans", "batches")


class OtlpJson:
    """Reads `{"resourceSpans": [...]}`, one object or one on each line."""

    name = "otlp"

    def recognises(self, file: TraceFile) -> bool:
        """Whether it begins with spans of a resource."""
        return any(is_array(file.first.get(name)) for name in _TOPS)

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each span."""
        for document in file.documents:
            for one in document.data if is_array(document.data) else [document.data]:
                yield from spans_in(one, file.source, document.place)


class OtlpProtobuf:
    """Reads what an OTLP exporter sends: an ExportTraceServiceRequest. Needs the extra `otel`."""

    name = "otlp-protobuf"

    def recognises(self, file: TraceFile) -> bool:
        """Whether it begins like one: with the field of resource spans."""
        return file.raw[:1] == b"\n" and not file.is_text and bool(_protobuf_length(file.raw))

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each span."""
        yield from spans_in(from_protobuf(file.raw, file.source), file.source, "")


def _protobuf_length(raw: bytes) -> int:
    """The declared length of the first field; 0 if there are fewer bytes than that."""
    length = shift = 0
    for at, byte in enumerate(raw[1:6], start=2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return length if length else 0
        if at > len(raw):
            break
    return 0


def from_protobuf(raw: bytes, source: str) -> Json:
    """A request to a collector, converted to the equivalent JSON."""
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )
    except ImportError as error:
        raise MissingExtra(
            f"{source} is OTLP as protobuf, which cannot be read without a package: {error}. Install it "
            f"with {how_to_install('otel')}, or export JSON."
        ) from error
    try:
        made = ExportTraceServiceRequest.FromString(raw)
    except DecodeError as error:
        raise BadTrace(f"it is not an OTLP request, or it is incomplete: {error}.") from error
    return MessageToDict(made)


def spans_in(data: Json, source: str, place: str) -> Iterator[Span | Flaw]:
    """The spans of one request."""
    try:
        whole = obj(data, "an OTLP request")
        top = next((name for name in _TOPS if name in whole), _TOPS[0])
        for number_, resource in enumerate(array(whole.get(top), top)):
            held = obj(resource, f"{top}[{number_}]")
            name = "scopeSpans" if "scopeSpans" in held else "scope_spans"
            name = name if name in held else "instrumentationLibrarySpans"
            for index, scope in enumerate(array(held.get(name), name)):
                inner = obj(scope, f"{name}[{index}]")
                where = f"{top}[{number_}].{name}[{index}]"
                yield from _spans(inner, source, f"{place}, {where}" if place else where)
    except BadTrace as error:
        yield Flaw(place=place, why=str(error), source=source)


def _spans(scope: dict[str, Json], source: str, place: str) -> Iterator[Span | Flaw]:
    about = scope.get("scope")
    named = str(about.get("name") or "") if is_object(about) else ""
    for number_, span in enumerate(array(scope.get("spans"), "spans")):
        where = f"{place}.spans[{number_}]"
        trace = ""
        try:
            held = obj(span, "a span")
            trace = _id(first(held, ("traceId", "trace_id")), "traceId")
            yield _span(held, trace, named, where)
        except BadTrace as error:
            yield Flaw(place=where, why=str(error), trace=trace, source=source)


def _span(span: dict[str, Json], trace: str, scope: str, place: str) -> Span:
    parent = first(span, ("parentSpanId", "parent_span_id"))
    ended = first(span, ("endTimeUnixNano", "end_time_unix_nano"))
    status = span.get("status")
    state = obj(status, "status") if status is not None else {}
    end = None if ended in (None, "0", 0) else number(ended, "endTimeUnixNano") / _NANOSECONDS
    attributes = _attributes(span.get("attributes"))
    failed = state.get("code") in (2, "2", "STATUS_CODE_ERROR")
    return Span(
        trace=trace,
        id=_id(first(span, ("spanId", "span_id")), "spanId"),
        parent=_id(parent, "parentSpanId") if parent else "",
        name=text(span.get("name"), "name", empty=True),
        start=number(
            first(span, ("startTimeUnixNano", "start_time_unix_nano")), "startTimeUnixNano"
        )
        / _NANOSECONDS,
        end=end,
        attributes={**_exception(span), **attributes} if failed else attributes,
        failed=failed,
        error=str(state.get("message") or ""),
        scope=scope,
        lacks=first(span, ("droppedAttributesCount", "dropped_attributes_count")) not in (None, 0),
        place=place,
    )


def _exception(span: dict[str, Json]) -> dict[str, Json]:
    """The type of the error that a span recorded as an event."""
    for event in array(span.get("events"), "events"):
        held = obj(event, "an event")
        if held.get("name") == "exception":
            kind = _attributes(held.get("attributes")).get("exception.type")
            return {"error.type": kind} if isinstance(kind, str) else {}
    return {}


def _id(value: Json, what: str) -> str:
    """An id in hexadecimal digits; Tempo and protobuf write the same bytes in base64."""
    given = text(value, what)
    if _HEX.fullmatch(given):
        return given.lower()
    try:
        raw = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) not in (8, 16):
        raise BadTrace(f"{what} should be 16 or 32 hexadecimal digits, not {given[:60]!r}.")
    return raw.hex()


def _attributes(value: Json) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for one in array(value, "attributes"):
        held = obj(one, "an attribute")
        found[text(held.get("key"), "an attribute's key")] = _value(held.get("value"))
    return found


def _value(value: Json, depth: int = 0) -> Json:
    if value is None or depth > 60:
        return None
    held = obj(value, "an attribute's value")
    for name, inner in held.items():
        match name:
            case "stringValue" | "string_value" | "boolValue" | "bool_value" | "bytesValue":
                return inner
            case "intValue" | "int_value":
                return int(number_or_negative(inner))
            case "doubleValue" | "double_value":
                return inner if isinstance(inner, int | float) else None
            case "arrayValue" | "array_value":
                items = obj(inner, "arrayValue").get("values")
                return [_value(one, depth + 1) for one in array(items, "values")]
            case "kvlistValue" | "kvlist_value":
                return _attributes(obj(inner, "kvlistValue").get("values"))
            case _:
                continue
    return None


def number_or_negative(value: Json) -> float:
    """A whole number, which JSON for protobuf writes as a string."""
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise BadTrace(f"intValue should be a whole number, not {str(value)[:60]!r}.")
