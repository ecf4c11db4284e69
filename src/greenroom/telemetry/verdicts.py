"""Verdicts on trials: a span after the conversation, with an event for each metric.

A verdict comes after the conversation's own span has ended and, with workers, in another process.
"""

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, StatusCode, Tracer

from greenroom.cases.scores import NotApplicable, Outcome, Score
from greenroom.ledger.questions import traces
from greenroom.results.result import CaseResult
from greenroom.telemetry.attributes import Attributes, context_of
from greenroom.telemetry.meters import Meters

_CONTRACTS = ("kept_contract",)


class Verdicts:
    """Writes a span for each result."""

    def __init__(self, tracer: Tracer | None, meters: Meters, content: bool) -> None:
        self._tracer = tracer
        self._meters = meters
        self._content = content

    def on_case_complete(self, result: CaseResult) -> None:
        """Write the span of a verdict."""
        for name, outcome in result.scores.items():
            if name in _CONTRACTS and isinstance(outcome, Score) and not outcome.passed:
                self._meters.violated(name)
        ledger = result.ledger_or_none if self._tracer is not None else None
        known = [] if ledger is None else traces(ledger)
        if self._tracer is None or not known:
            return
        span = self._tracer.start_span(
            f"evaluate {result.case_id}",
            trace.set_span_in_context(NonRecordingSpan(context_of(known[-1]))),
            attributes={
                "greenroom.case.id": result.case_id,
                "greenroom.trial": result.trial,
                "greenroom.status": result.status,
            },
        )
        for name, outcome in result.scores.items():
            span.add_event("gen_ai.evaluation.result", self._about(name, outcome))
        if result.status == "error":
            span.set_status(StatusCode.ERROR)
        span.end()

    def _about(self, name: str, outcome: Outcome) -> Attributes:
        found: Attributes = {"gen_ai.evaluation.name": name}
        if isinstance(outcome, Score):
            found["gen_ai.evaluation.score.value"] = float(outcome.value)
            found["gen_ai.evaluation.score.label"] = "passed" if outcome.passed else "failed"
            why = outcome.reason
        else:
            is_left_out = isinstance(outcome, NotApplicable)
            label = "not applicable" if is_left_out else "unmeasured"
            found["gen_ai.evaluation.score.label"] = label
            why = outcome.why
        if why and self._content:
            found["gen_ai.evaluation.explanation"] = why
        return found
