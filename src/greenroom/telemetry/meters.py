"""Metrics over all runs: cost, tokens, durations, errors, refusals, broken contracts."""

from collections.abc import Mapping
from typing import Final

from opentelemetry.metrics import MeterProvider

from greenroom.ledger.events import (
    Event,
    ModelFailed,
    ModelReplied,
    RunEnded,
    ToolBlocked,
    ToolFailed,
)
from greenroom.telemetry.foreign import OURS

_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 81.92)
_TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304)
_CASES: Final = (0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)


class Meters:
    """The instruments. Their labels are few: no case, run or text is among them."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(OURS)
        self._cost = meter.create_counter("greenroom.cost", "USD", "What models cost")
        self._errors = meter.create_counter("greenroom.errors", "{error}", "What went wrong")
        self._refusals = meter.create_counter(
            "greenroom.refusals", "{call}", "Tool calls that the gate refused"
        )
        self._violations = meter.create_counter(
            "greenroom.contract.violations", "{case}", "Trials in which a contract was not kept"
        )
        self._cases = meter.create_histogram(
            "greenroom.case.duration",
            "s",
            "How long conversations took",
            explicit_bucket_boundaries_advisory=_CASES,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens of a model call",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._durations = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "How long a model call took",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )

    def happened(self, event: Event, voice: str) -> None:
        """Count what an event says about the agent, its user or a judge."""
        match event:
            case ModelReplied(paid=float() as cost) if cost > 0:
                labels = {"gen_ai.agent.name": event.agent, "gen_ai.request.model": event.model}
                self._cost.add(cost, {**labels, "greenroom.voice": voice})
            case ModelFailed():
                self._fail("model", event.error_type)
            case ToolFailed():
                self._fail("tool", event.error_type)
            case ToolBlocked():
                self._refusals.add(1, {"gen_ai.tool.name": event.tool})
            case RunEnded(reason="error"):
                self._fail(event.phase or "system", event.error_type)
            case _:
                pass

    def _fail(self, phase: str, error_type: str) -> None:
        self._errors.add(1, {"greenroom.phase": phase, "error.type": error_type or "_OTHER"})

    def conversed(self, seconds: float, backend: str) -> None:
        """Count a conversation that is over."""
        self._cases.record(seconds, {"greenroom.backend": backend})

    def violated(self, metric: str) -> None:
        """Count a trial in which a contract was not kept."""
        self._violations.add(1, {"gen_ai.evaluation.name": metric})

    def asked(self, replied: ModelReplied, labels: Mapping[str, str]) -> None:
        """Count the tokens of a model call."""
        if replied.usage is not None:
            for kind in ("input", "output"):
                count: int = getattr(replied.usage, kind)
                self._tokens.record(count, {**labels, "gen_ai.token.type": kind})

    def took(self, seconds: float, labels: Mapping[str, str]) -> None:
        """Count how long a model call took."""
        self._durations.record(seconds, labels)
