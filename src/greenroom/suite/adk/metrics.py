"""Greenroom's metrics inside google-adk's own evaluation, for `adk eval` and its web pages.

Nothing in Greenroom imports this file. Evaluators need google-adk alone; without a `registry` of
your own, `google-adk[eval]` is needed too.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Protocol

from google.adk.evaluation.eval_case import Invocation, get_all_tool_calls_with_responses
from google.adk.evaluation.eval_metrics import EvalMetric, Interval, MetricInfo, MetricValueInfo
from google.adk.evaluation.eval_rubrics import RubricScore
from google.adk.evaluation.evaluator import (
    EvalStatus,
    EvaluationResult,
    Evaluator,
    PerInvocationResult,
)
from google.genai import types

from greenroom.cases.case import Case
from greenroom.cases.files.shapes import shape_named
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import Outcome, Score
from greenroom.errors import MissingExtra
from greenroom.ledger.events import (
    AgentSaid,
    Event,
    InvocationEnded,
    InvocationStarted,
    RunEnded,
    RunStarted,
    ToolCalled,
    ToolReturned,
    Unseen,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object
from greenroom.metrics.definition import as_metric
from greenroom.metrics.scores import measure_trial
from greenroom.suite.measurement import cut_in_time
from greenroom.suite.options import METRIC_ATTEMPTS, METRIC_SECONDS
from greenroom.world.live import LiveWorld

# Older versions of google-adk do not have this field.
_NO_THRESHOLD: dict[str, Any] = (
    {"requires_threshold": False} if "requires_threshold" in MetricInfo.model_fields else {}
)


class Registry(Protocol):
    """The part of google-adk's `MetricEvaluatorRegistry` that is used here."""

    def register_evaluator(self, metric_info: MetricInfo, evaluator: type[Evaluator]) -> None:
        """Make a metric available by its name."""
        ...


def register_metrics(metrics: Iterable[MetricLike], registry: Registry | None = None) -> list[str]:
    """Register these metrics with google-adk; returns the names to use in its config."""
    known = _default_registry() if registry is None else registry
    names: list[str] = []
    for metric in map(as_metric, metrics):
        about = MetricInfo(
            metric_name=metric.name,
            description=f"Greenroom's {metric.name}.",
            metric_value_info=MetricValueInfo(interval=Interval(min_value=0, max_value=1)),
            **_NO_THRESHOLD,
        )
        known.register_evaluator(about, evaluator_of(metric))
        names.append(metric.name)
    return names


def evaluator_of(metric: Metric) -> type[Evaluator]:
    """A google-adk evaluator class that measures with this metric."""
    return type("GreenroomEvaluator", (_Measures,), {"metric": metric})


class _Measures(Evaluator):
    """Measures what google-adk ran. What could not be measured is not evaluated, never passed."""

    metric: ClassVar[Metric]

    def __init__(self, eval_metric: EvalMetric) -> None:
        criterion = eval_metric.criterion
        self._bar = eval_metric.threshold if criterion is None else criterion.threshold

    async def evaluate_invocations(
        self,
        actual_invocations: list[Invocation],
        expected_invocations: list[Invocation] | None = None,
        conversation_scenario: object = None,  # noqa: ARG002
    ) -> EvaluationResult:
        """The metric's outcome for the whole conversation; of single turns only if there is one."""
        case = _case(expected_invocations or actual_invocations)
        ledger = ledger_of(actual_invocations)
        metrics, world = {self.metric.name: self.metric}, LiveWorld(Ledger())
        found = await measure_trial(
            ledger, case, metrics, world, cut_in_time(), METRIC_SECONDS, attempts=METRIC_ATTEMPTS
        )
        outcome = found[self.metric.name]
        value, status = self._verdict(outcome)
        pairs = zip(
            actual_invocations,
            expected_invocations or [None] * len(actual_invocations),
            strict=False,
        )
        alone = len(actual_invocations) == 1
        return EvaluationResult(
            overall_score=value,
            overall_eval_status=status,
            overall_rubric_scores=self._reasons(outcome),
            per_invocation_results=[
                PerInvocationResult(
                    actual_invocation=actual,
                    expected_invocation=expected,
                    score=value if alone else None,
                    eval_status=status if alone else EvalStatus.NOT_EVALUATED,
                )
                for actual, expected in pairs
            ],
        )

    def _verdict(self, outcome: Outcome) -> tuple[float | None, EvalStatus]:
        if not isinstance(outcome, Score):
            return None, EvalStatus.NOT_EVALUATED
        passed = outcome.passed if self._bar is None else outcome.value >= self._bar
        return outcome.value, EvalStatus.PASSED if passed else EvalStatus.FAILED

    def _reasons(self, outcome: Outcome) -> list[RubricScore] | None:
        value = outcome.value if isinstance(outcome, Score) else None
        why = outcome.reason if isinstance(outcome, Score) else outcome.why
        if not why:
            return None
        return [RubricScore(rubric_id=self.metric.name, rationale=why, score=value)]


_UNRECORDED: Final[tuple[Unseen, ...]] = ("models", "state", "nodes", "times")
"""What an invocation of google-adk does not hold."""


def ledger_of(invocations: Sequence[Invocation]) -> Ledger:
    """A conversation that google-adk ran, as a ledger."""
    ledger = Ledger()
    _write(ledger, RunStarted(run_id="google-adk", opaque=_UNRECORDED))
    for n, invocation in enumerate(invocations, 1):
        root, said = f"@{n}", _text(invocation.user_content)
        _write(ledger, UserSaid(text=said), InvocationStarted(path=root, input=said))
        for k, (call, response) in enumerate(
            get_all_tool_calls_with_responses(invocation.intermediate_data)
        ):
            call_id, tool = call.id or f"call-{n}-{k}", call.name or ""
            _write(ledger, ToolCalled(path=root, call_id=call_id, tool=tool, args=call.args or {}))
            if response is not None:
                _write(ledger, _returned(root, call_id, tool, response.response))
        answer = _text(invocation.final_response)
        if answer:
            _write(ledger, AgentSaid(path=root, text=answer))
        _write(ledger, InvocationEnded(path=root, outcome="turn_over", output=answer or None))
    _write(ledger, RunEnded(reason="completed"))
    return ledger


def _returned(root: str, call_id: str, tool: str, value: Any) -> ToolReturned:
    # The framework wraps results that are not mappings.
    result = value["result"] if is_object(value) and set(value) == {"result"} else value
    return ToolReturned(path=root, call_id=call_id, tool=tool, value=result, source="live")


def _write(ledger: Ledger, *events: Event) -> None:
    for event in events:
        ledger.append(event, 0.0)


def _case(invocations: Sequence[Invocation]) -> Case:
    """The case that google-adk ran, with what it expects."""
    turns: list[Json] = [one.model_dump(mode="json", exclude_none=True) for one in invocations]
    data: Json = {"eval_set_id": "adk", "eval_cases": [{"eval_id": "adk", "conversation": turns}]}
    return shape_named("adk").read(data, "adk").cases[0]


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _default_registry() -> Registry:
    try:
        from google.adk.evaluation import metric_evaluator_registry as theirs
    except ImportError as error:
        raise MissingExtra(
            f"google-adk's registry of metrics cannot be imported: {error}. Install it with "
            f"pip install 'google-adk[eval]'."
        ) from error
    return theirs.DEFAULT_METRIC_EVALUATOR_REGISTRY
