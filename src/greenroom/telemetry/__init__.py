"""Exports runs live as OpenTelemetry spans and metrics. Needs the extra `otel`."""

from greenroom.errors import MissingExtra
from greenroom.installation import how_to_install

try:
    from greenroom.telemetry.exporters import FencedExporter
    from greenroom.telemetry.spans import console, otlp, spans
except ModuleNotFoundError as error:
    raise MissingExtra(
        f"greenroom.telemetry needs OpenTelemetry, which cannot be imported: {error}. Install it with "
        f"{how_to_install('otel')}."
    ) from error

__all__ = ["FencedExporter", "console", "otlp", "spans"]
