"""Exporters that may reach their endpoint through the fence of a rehearsal, and send no secrets."""

import json
from collections.abc import Sequence
from typing import Any, TypedDict
from urllib.parse import urlsplit
from urllib.request import getproxies

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status
from opentelemetry.util.types import AttributeValue

from greenroom.ledger.redaction import redactor
from greenroom.simulation.fence import opening_for

_PORTS = {"http": 80, "https": 443}


class _SaidOfEvent(TypedDict):
    name: str
    of: dict[str, AttributeValue]


class _Said(TypedDict):
    name: str
    attributes: dict[str, AttributeValue]
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
    clean = redactor().value(_encodable(said))
    if clean is said:
        return spans
    return [
        span if new == old else _saying(span, new)
        for span, old, new in zip(spans, said, clean, strict=True)
    ]


def _encodable(said: list[_Said]) -> list[_Said]:
    """The words without unpaired surrogates: a model may write one, and the whole batch would be lost."""
    text = json.dumps(said, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode(errors="replace"))
    return said


def _said(span: ReadableSpan) -> _Said:
    """All parts of a span that may hold text."""
    return {
        "name": span.name,
        "attributes": dict(span.attributes or {}),
        "status": span.status.description,
        "events": [{"name": one.name, "of": dict(one.attributes or {})} for one in span.events],
    }


def _saying(span: ReadableSpan, said: _Said) -> ReadableSpan:
    """A copy of the span with other text."""
    return ReadableSpan(
        said["name"],
        span.context,
        span.parent,
        span.resource,
        said["attributes"],
        [
            Event(new["name"], new["of"], one.timestamp)
            for one, new in zip(span.events, said["events"], strict=True)
        ],
        span.links,
        span.kind,
        status=Status(span.status.status_code, said["status"]),
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
