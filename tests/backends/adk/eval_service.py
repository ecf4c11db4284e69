"""Run by the Python that has google-adk's eval extra: a set judged there by metrics of ours."""

import asyncio
import json
import sys

from google.adk.evaluation.base_eval_service import (
    EvaluateConfig,
    EvaluateRequest,
    InferenceConfig,
    InferenceRequest,
)
from google.adk.evaluation.eval_case import EvalCase, Invocation, SessionInput
from google.adk.evaluation.eval_metrics import EvalMetric
from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
from google.adk.evaluation.local_eval_service import LocalEvalService
from google.genai import types

from backends.adk.scripts import WEATHER, agent
from greenroom.metrics import called, contains, metric
from greenroom.suite.adk.metrics import register_metrics


def weather(city: str) -> str:
    """The weather."""
    return "mild"


@metric
def broken() -> bool:
    raise ValueError("no ruler")


def said(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


async def main() -> None:
    names = register_metrics([called("weather"), contains("Bergen"), broken])
    sets = InMemoryEvalSetsManager()
    sets.create_eval_set("app", "set")
    wanted = Invocation(user_content=said("weather?"), final_response=said("done"))
    session = SessionInput(app_name="app", user_id="u")
    case = EvalCase(eval_id="one", conversation=[wanted], session_input=session)
    sets.add_eval_case("app", "set", case)
    clerk = agent("clerk", WEATHER, "done", tools=[weather])
    service = LocalEvalService(root_agent=clerk, eval_sets_manager=sets)
    asked = InferenceRequest(app_name="app", eval_set_id="set", inference_config=InferenceConfig())
    played = [result async for result in service.perform_inference(asked)]
    metrics = [EvalMetric(metric_name=name, threshold=0.5) for name in names]
    judged = EvaluateRequest(
        inference_results=played, evaluate_config=EvaluateConfig(eval_metrics=metrics)
    )
    async for result in service.evaluate(judged):
        found = {
            one.metric_name: [one.score, one.eval_status.name]
            for one in result.overall_eval_metric_results
        }
        json.dump(found, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
