"""What spans and metrics arrive at: in memory, or over HTTP as a collector gets them."""

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from greenroom.telemetry import spans
from local_servers import LocalServer


class Seen:
    """Spans and metrics of runs, kept in memory."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = provider or TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self._meters = MeterProvider([self._reader])

    def middleware(self, **options: Any) -> Any:
        return spans(provider=self.provider, meters=self._meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        found = self._exporter.get_finished_spans()
        return sorted(found, key=lambda span: (span.start_time or 0, -(span.end_time or 0)))

    def tree(self) -> list[str]:
        """Each span by name, as deep as it stands."""
        known = {span.context.span_id: span for span in self.spans if span.context}

        def depth(span: ReadableSpan) -> int:
            parent = known.get(span.parent.span_id) if span.parent else None
            return 0 if parent is None else depth(parent) + 1

        return [f"{'  ' * depth(span)}{span.name}" for span in self.spans]

    def named(self, start: str) -> list[dict[str, Any]]:
        """The attributes of all spans whose names begin so."""
        return [dict(span.attributes or {}) for span in self.spans if span.name.startswith(start)]

    def clear(self) -> None:
        self._exporter.clear()

    def stop(self) -> None:
        """Keep no more spans."""
        self._exporter.shutdown()
        self._exporter.clear()

    def text(self) -> str:
        """All that was written, as text."""
        metrics = self._reader.get_metrics_data()
        told = "" if metrics is None else metrics.to_json()
        return "\n".join([*(span.to_json() for span in self.spans), told])

    def metrics(self) -> dict[str, list[Any]]:
        """The points of each metric by its name."""
        data = self._reader.get_metrics_data()
        resources = [] if data is None else data.resource_metrics
        return {
            metric.name: list(metric.data.data_points)
            for resource in resources
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


class Collector:
    """A collector on loopback that takes OTLP over HTTP."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def names(self) -> list[str]:
        """The names of all spans that arrived."""
        return [
            span.name
            for request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metric_names(self) -> set[str]:
        return {
            metric.name
            for request in self.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@contextmanager
def collecting() -> Generator[Collector]:
    """A collector that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces":
                collector.traces.append(ExportTraceServiceRequest.FromString(body))
            elif self.path == "/v1/metrics":
                collector.metrics.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = LocalServer(("127.0.0.1", 0), Handler)
    collector = Collector(server.server_port)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
