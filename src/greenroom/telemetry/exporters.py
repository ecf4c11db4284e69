"""Exporters that reach their endpoint while a rehearsal is open, and nothing else does."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from greenroom.simulation.fence import opening_for

_PORTS = {"http": 80, "https": 443}


class FencedExporter(SpanExporter):
    """Another exporter, let through the fence of a rehearsal while it exports.

    Without it, what an exporter sends while a case runs is refused and lost. The fence opens for this
    exporter's own work only, and only to its endpoint if it has one.
    """

    def __init__(self, inner: SpanExporter) -> None:
        self.inner = inner
        self._hosts = hosts_of(inner)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export these spans."""
        with opening_for(self._hosts):
            return self.inner.export(spans)

    def shutdown(self) -> None:
        """Shut the other exporter down."""
        with opening_for(self._hosts):
            self.inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have the other exporter send what it holds."""
        with opening_for(self._hosts):
            return self.inner.force_flush(timeout_millis)


class FencedMetricExporter(MetricExporter):
    """The same for metrics."""

    def __init__(self, inner: MetricExporter) -> None:
        self.inner: Any = inner
        super().__init__(self.inner._preferred_temporality, self.inner._preferred_aggregation)
        self._hosts = hosts_of(inner)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Export these metrics."""
        with opening_for(self._hosts):
            return self.inner.export(metrics_data, timeout_millis, **kwargs)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Have the other exporter send what it holds."""
        with opening_for(self._hosts):
            return self.inner.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Shut the other exporter down."""
        with opening_for(self._hosts):
            self.inner.shutdown(timeout_millis, **kwargs)


def hosts_of(exporter: Any) -> tuple[str, ...] | None:
    """Where an exporter sends to, as `host:port`; None where it does not say."""
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
