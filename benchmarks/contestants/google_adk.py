"""google-adk's LocalEvalService: an LlmAgent with a scripted model, ADK's trajectory, and a text."""

import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import stopwatch
from scenario import CONCURRENCY, Row

os.environ.setdefault("GOOGLE_API_KEY", "unused")
warnings.simplefilter("ignore")

from google.adk.agents import LlmAgent  # noqa: E402 - quiet first
from google.adk.evaluation.base_eval_service import (  # noqa: E402
    EvaluateConfig,
    EvaluateRequest,
    InferenceConfig,
    InferenceRequest,
)
from google.adk.evaluation.eval_case import EvalCase, IntermediateData, Invocation  # noqa: E402
from google.adk.evaluation.eval_metrics import (  # noqa: E402
    BaseCriterion,
    EvalMetric,
    MetricInfo,
    MetricValueInfo,
)
from google.adk.evaluation.evaluator import (  # noqa: E402
    EvalStatus,
    EvaluationResult,
    Evaluator,
    PerInvocationResult,
)
from google.adk.evaluation.in_memory_eval_sets_manager import (  # noqa: E402
    InMemoryEvalSetsManager,
)
from google.adk.evaluation.local_eval_service import LocalEvalService  # noqa: E402
from google.adk.evaluation.metric_evaluator_registry import (  # noqa: E402
    DEFAULT_METRIC_EVALUATOR_REGISTRY,
)
from google.adk.models.base_llm import BaseLlm  # noqa: E402
from google.adk.models.llm_response import LlmResponse  # noqa: E402
from google.genai import types  # noqa: E402

APP, SET = "weather", "rows"
CONTAINS = "contains"
SCRIPT: dict[str, Row] = {}
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=10, total_token_count=20
)


def get_weather(city: str) -> dict[str, object]:
    """Current weather in a city."""
    return {"city": city, "celsius": 21}


class Scripted(BaseLlm):
    """Finds its lines by what the user said."""

    latency: float = 0.0

    async def generate_content_async(
        self,
        llm_request: Any,
        stream: bool = False,  # noqa: ARG002 - ADK's own signature
    ) -> AsyncIterator[LlmResponse]:
        if self.latency:
            await asyncio.sleep(self.latency)
        says = next(p.text for c in llm_request.contents for p in c.parts if p.text)
        row = SCRIPT[says]
        if llm_request.contents[-1].parts[-1].function_response:
            part = types.Part(text=row.answer)
        else:
            part = types.Part(function_call=call(row.asked_city))
        # Without usage ADK would log a complaint for every reply.
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=USAGE)


def call(city: str) -> types.FunctionCall:
    """The one call of a row."""
    return types.FunctionCall(name="get_weather", args={"city": city})


def content(text: str, role: str) -> types.Content:
    """A text as ADK holds it."""
    return types.Content(role=role, parts=[types.Part(text=text)])


class Contains(Evaluator):
    """The expected text is part of the answer."""

    def __init__(self, eval_metric: EvalMetric) -> None:
        self.metric = eval_metric

    def evaluate_invocations(
        self,
        actual_invocations: list[Invocation],
        expected_invocations: list[Invocation] | None = None,
        conversation_scenario: object = None,  # noqa: ARG002 - ADK's own signature
    ) -> EvaluationResult:
        """One result for each invocation, as ADK's own have it."""
        pairs = zip(actual_invocations, expected_invocations or [], strict=True)
        results = [_contains(actual, expected) for actual, expected in pairs]
        lowest = min(result.score for result in results)
        return EvaluationResult(
            overall_score=lowest,
            overall_eval_status=_status(lowest),
            per_invocation_results=results,
        )


def _contains(actual: Invocation, expected: Invocation) -> PerInvocationResult:
    said, wanted = (it.final_response.parts[0].text for it in (actual, expected))
    score = float(wanted in said)
    return PerInvocationResult(
        actual_invocation=actual,
        expected_invocation=expected,
        score=score,
        eval_status=_status(score),
    )


def _status(score: float) -> EvalStatus:
    return EvalStatus.PASSED if score else EvalStatus.FAILED


def _registry() -> Any:
    """ADK's own metrics, and the text."""
    found = DEFAULT_METRIC_EVALUATOR_REGISTRY.fork()
    about = MetricInfo(metric_name=CONTAINS, metric_value_info=MetricValueInfo())
    found.register_evaluator(about, Contains)
    return found


def case(row: Row) -> EvalCase:
    """One row as a case of ADK: the text to be found, or the one to resemble, is its response."""
    invocation = Invocation(
        user_content=content(row.says, "user"),
        final_response=content(row.reference or row.expected_text, "model"),
        intermediate_data=IntermediateData(tool_uses=[call(row.expected_city)]),
    )
    return EvalCase(eval_id=row.id, conversation=[invocation])


async def evaluate(rows: Sequence[Row], latency: float, limits: Mapping[str, float]) -> int:
    """Build the eval set, let ADK infer and evaluate, count the cases that passed."""
    SCRIPT.update({row.says: row for row in rows})
    agent = LlmAgent(
        name="weather", model=Scripted(model="scripted", latency=latency), tools=[get_weather]
    )
    sets = InMemoryEvalSetsManager()
    sets.create_eval_set(APP, SET)
    for row in rows:
        sets.add_eval_case(APP, SET, case(row))
    service = LocalEvalService(agent, sets, metric_evaluator_registry=_registry())
    asked = InferenceRequest(
        app_name=APP,
        eval_set_id=SET,
        inference_config=InferenceConfig(parallelism=CONCURRENCY),
    )
    inferred = [result async for result in service.perform_inference(asked)]
    judged = EvaluateRequest(
        inference_results=inferred,
        evaluate_config=EvaluateConfig(eval_metrics=criteria(limits), parallelism=CONCURRENCY),
    )
    results = [result async for result in service.evaluate(judged)]
    return sum(result.final_eval_status == EvalStatus.PASSED for result in results)


def criteria(limits: Mapping[str, float]) -> list[EvalMetric]:
    """The criteria, each with the least that passes."""
    return [
        EvalMetric(metric_name=name, criterion=BaseCriterion(threshold=limit))
        for name, limit in limits.items()
    ]


if __name__ == "__main__":
    wanted = {"tool_trajectory_avg_score": 1.0, CONTAINS: 1.0}
    stopwatch.main(lambda rows, latency: asyncio.run(evaluate(rows, latency, wanted)))
