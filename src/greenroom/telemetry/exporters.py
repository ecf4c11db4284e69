"""Exporters that may reach their endpoint through the fence of a rehearsal, and send no secrets."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

import msgspec
from msgspec import Struct
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status
from opentelemetry.util.types import AttributeValue

from greenroom.ledger.redaction import Redactor, redactor
from greenroom.simulation.fence import opening_for

_PORTS = {"http": 80, "https": 443}
_OPERATION: Final = "gen_ai.operation.name"
_LISTED: Final = frozenset(
    (
        *(_OPERATION, "gen_ai.tool.type", "gen_ai.output.type", "gen_ai.provider.name"),
        *("gen_ai.evaluation.score.label", "greenroom.source", "greenroom.voice"),
        *("greenroom.status", "greenroom.phase", "greenroom.backend"),
    )
)
"""Attributes whose values are words of a list, which stay even if a secret is the same word."""
_CONVERSATIONS: Final = frozenset(("gen_ai.input.messages", "gen_ai.output.messages"))
"""Attributes that hold JSON of the conventions as text."""
_CONVENTIONS: Final = ("gen_ai.", "greenroom.", "error.")


class _SaidOfEvent(Struct, frozen=True):
    name: str
    attributes: Mapping[str, Any]


class _Said(Struct, frozen=True):
    name: str
    attributes: Mapping[str, Any]
    status: str | None
    events: list[_SaidOfEvent]


class FencedExporter(SpanExporter):
    """Wraps another exporter: lets it through the fence of a rehearsal while it exports, without secrets.

    Without it, what an exporter sends while a case runs is refused and lost. The fence opens only for this
    exporter's own work, and only to its endpoint if it has one. Secrets in spans, including those of
    frameworks, are replaced as in all output: `[redacted:NAME]`.
    """

    def __init__(self, inner: SpanExporter) -> None:
        self.inner = inner
        self._hosts = hosts_of(inner)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export these spans."""
        with opening_for(self._hosts):
            return self.inner.export(_without_secrets(spans))

    def shutdown(self) -> None:
        """Shut the other exporter down."""
        with opening_for(self._hosts):
            self.inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have the other exporter send what it holds."""
        with opening_for(self._hosts):
            return self.inner.force_flush(timeout_millis)


class FencedMetricExporter(MetricExporter):
    """Wraps another metric exporter: lets it through the fence of a rehearsal while it exports."""

    def __init__(self, inner: MetricExporter) -> None:
        self.inner: Any = inner
        super().__init__(self.inner._preferred_temporality, self.inner._preferred_aggregation)
        self._hosts = hosts_of(inner)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        """Export these metrics."""
        with opening_for(self._hosts):
            return self.inner.export(metrics_data, timeout_millis, **kwargs)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Have the other exporter send what it holds."""
        with opening_for(self._hosts):
            return self.inner.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """Shut the other exporter down."""
        with opening_for(self._hosts):
            self.inner.shutdown(timeout_millis, **kwargs)


def _without_secrets(spans: Sequence[ReadableSpan]) -> Sequence[ReadableSpan]:
    """The spans without secrets; a span that holds none is passed on as it is."""
    said = [_said(span) for span in spans]
    by, readable = redactor(), _encodable(said)
    if readable is said and by.value(said) is said:
        return spans
    clean = [_clean(one, by) for one in readable]
    return [
        span if new == old else _saying(span, new)
        for span, old, new in zip(spans, said, clean, strict=True)
    ]


def _clean(said: _Said, by: Redactor) -> _Said:
    operation = said.attributes.get(_OPERATION)
    own = operation if isinstance(operation, str) and said.name.startswith(operation) else ""
    return _Said(
        own + by.text(said.name[len(own) :]),
        _clean_attributes(said.attributes, by),
        by.value(said.status),
        [
            _SaidOfEvent(
                one.name if one.name.startswith(_CONVENTIONS) else by.text(one.name),
                _clean_attributes(one.attributes, by),
            )
            for one in said.events
        ],
    )


def _clean_attributes(
    given: Mapping[str, AttributeValue], by: Redactor
) -> Mapping[str, AttributeValue]:
    """The attributes without secrets; names of the conventions and words of their lists stay."""
    clean = dict(by.value({n: v for n, v in given.items() if not n.startswith(_CONVENTIONS)}))
    for name, value in given.items():
        if name.startswith(_CONVENTIONS):
            clean[name] = value if name in _LISTED else _clean_value(name, value, by)
    return clean


def _clean_value(name: str, value: AttributeValue, by: Redactor) -> AttributeValue:
    if name in _CONVERSATIONS and isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):  # it was shortened
            return by.text(value)
        clean = by.document(read)
        return value if clean is read else json.dumps(clean, ensure_ascii=False)
    return next(iter(by.value({name: value}).values()))


def _encodable(said: list[_Said]) -> list[_Said]:
    """The words without unpaired surrogates: a model may write one, and the whole batch would be lost."""
    text = json.dumps(msgspec.to_builtins(said), ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return msgspec.json.decode(text.encode(errors="replace"), type=list[_Said])
    return said


def _said(span: ReadableSpan) -> _Said:
    """All parts of a span that may hold text."""
    return _Said(
        span.name,
        dict(span.attributes or {}),
        span.status.description,
        [_SaidOfEvent(one.name, dict(one.attributes or {})) for one in span.events],
    )


def _saying(span: ReadableSpan, said: _Said) -> ReadableSpan:
    """A copy of the span with other text."""
    return ReadableSpan(
        said.name,
        span.context,
        span.parent,
        span.resource,
        said.attributes,
        [
            Event(new.name, new.attributes, one.timestamp)
            for one, new in zip(span.events, said.events, strict=True)
        ],
        span.links,
        span.kind,
        status=Status(span.status.status_code, said.status),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def hosts_of(exporter: object) -> tuple[str, ...] | None:
    """Where an exporter sends to, as `host:port`; None if it does not say."""
    endpoint = getattr(exporter, "_endpoint", None)
    if not isinstance(endpoint, str):
        return None
    found = [place for place in map(_place, (endpoint, *getproxies().values())) if place]
    return tuple(found) if _place(endpoint) else None


def _place(address: str) -> str:
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    if not parts.hostname or port is None:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"
