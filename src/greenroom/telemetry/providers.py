"""Where spans and metrics go: to the given provider, that of the process, or one from the environment."""

import asyncio
import os
import sys
import warnings
from time import perf_counter
from typing import Any, Final, Literal, cast, get_args
from weakref import WeakSet

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
)
from opentelemetry.trace import TracerProvider

from greenroom.errors import BadInput, MissingExtra
from greenroom.installation import how_to_install
from greenroom.simulation.fence import opening_for
from greenroom.telemetry.exporters import FencedExporter, FencedMetricExporter
from greenroom.world.threads import in_thread

_ENDPOINTS: Final = {
    "traces": ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    "metrics": ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
}
Kind = Literal["otlp", "console", "none"]
_KINDS: Final = get_args(Kind)
_SECONDS: Final = 3.0
"""Seconds that a batch may take by default: the end of a run waits for its last one."""
_PATIENCE: Final = 0.5
_SLOW: Final = WeakSet[Any]()
"""Providers that have already delayed the end of a run."""


def tracer_provider(given: TracerProvider | None, kind: str | None = None) -> TracerProvider:
    """The provider that was given, the one of the process, or a new one as the environment says.

    A new one becomes that of the process, so that frameworks write into the same traces.
    """
    if given is not None:
        _warn_of_unfenced(given)
        return given
    known = trace.get_tracer_provider()
    if not isinstance(known, trace.ProxyTracerProvider):
        _warn_of_unfenced(known)
        return known
    kind = _wanted("traces", kind)
    if kind is None:
        raise BadInput(
            "spans() has nowhere to send spans: no provider is set, and OTEL_EXPORTER_OTLP_ENDPOINT is "
            "not either. Set it, or say --telemetry otlp or console (spans(exporter=...)), or give "
            "spans(provider=...)."
        )
    made = SdkTracerProvider()
    if kind == "otlp":
        made.add_span_processor(BatchSpanProcessor(FencedExporter(_otlp("trace"))))
    elif kind == "console":
        # Not on standard output, which other programs may read.
        exporter = FencedExporter(ConsoleSpanExporter(out=sys.stderr))
        made.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(made)
    return made


def meter_provider(given: MeterProvider | None, kind: str | None = None) -> MeterProvider:
    """The meter provider, found in the same way; without a destination, metrics are dropped."""
    known = metrics.get_meter_provider()
    if given is not None:
        return given
    kind = _wanted("metrics", kind)
    if isinstance(known, SdkMeterProvider) or kind not in ("otlp", "console"):
        return known
    exporter = (
        ConsoleMetricExporter(out=sys.stderr)
        if kind == "console"
        else FencedMetricExporter(_otlp("metric"))
    )
    made = SdkMeterProvider([PeriodicExportingMetricReader(exporter)])
    metrics.set_meter_provider(made)
    return made


async def flush(*providers: object) -> None:
    """Send what providers still have buffered.

    A provider that was slow once, for example because its collector is down, is not waited for again: it
    sends in its own thread, at the latest when the process ends.
    """

    async def send(provider: Any) -> None:
        begun = perf_counter()
        try:
            with opening_for():
                await in_thread(provider.force_flush)
        finally:
            if perf_counter() - begun > _PATIENCE:
                _SLOW.add(provider)

    waited_for = [one for one in providers if hasattr(one, "force_flush") and one not in _SLOW]
    await asyncio.gather(*map(send, waited_for))


def _wanted(signal: str, given: str | None) -> str | None:
    """The kind of exporter that the caller or the environment asks for; None if neither does."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    kind = os.environ.get(variable, "").strip().lower()
    if given is not None:
        # The environment may still switch off spans or metrics.
        variable, kind = "spans(exporter=...)", kind if kind == "none" else given
    if not kind:
        return "otlp" if any(map(os.environ.get, _ENDPOINTS[signal])) else None
    if kind not in _KINDS:
        raise BadInput(
            f"{variable}={kind!r} is not known here; set one of {', '.join(_KINDS)}, or pass "
            f"spans(provider=...) with your own exporter."
        )
    return kind


def _otlp(signal: str) -> Any:
    common = "OTEL_EXPORTER_OTLP_PROTOCOL"
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}S_PROTOCOL", common):
        protocol = os.environ.get(variable, "").strip().lower()
        if protocol:
            break
    if protocol not in ("", "http/protobuf"):
        raise BadInput(
            f"{variable}={protocol!r} is not built in. Set it to http/protobuf, which collectors accept at "
            f"port 4318, or pass spans(provider=...) with your own exporter in a FencedExporter."
        )
    variables = ("OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{signal.upper()}S_TIMEOUT")
    seconds = None if any(map(os.environ.get, variables)) else _SECONDS
    try:
        if signal == "trace":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            return OTLPSpanExporter(timeout=seconds)
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter(timeout=seconds)
    except ImportError as error:
        raise MissingExtra(
            f"the OTLP exporter cannot be imported: {error}. Install it with "
            f"{how_to_install('otel')}."
        ) from error


def _warn_of_unfenced(provider: object) -> None:
    """Warn about exporters of a provider that would be refused while a case runs."""
    processors: Any = getattr(provider, "_active_span_processor", None)
    for processor in cast("tuple[Any, ...]", getattr(processors, "_span_processors", ())):
        exporter = getattr(processor, "span_exporter", None)
        if exporter is None or not hasattr(exporter, "_endpoint"):
            continue
        warnings.warn(
            f"the fence of a rehearsal refuses what {type(exporter).__name__} sends while a case runs, "
            f"and those spans are lost. Wrap it: greenroom.telemetry.FencedExporter(...).",
            UserWarning,
            stacklevel=4,
        )
