"""Metrics: a case and its ledger in, a score out. Built-in ones, judges, and your own.

The names below load their files when first used, so that a run loads only the metrics it uses.
"""

from typing import TYPE_CHECKING

from greenroom.cases.parts import Metric
from greenroom.lazy import lazy
from greenroom.metrics.definition import as_metric, metric

# Loaded now: a module that has the same name as its function would hide the function if loaded later.
from greenroom.metrics.efficiency import efficiency
from greenroom.metrics.rouge import Rouge, rouge

if TYPE_CHECKING:
    from greenroom.metrics.calls import called, forbidden_calls
    from greenroom.metrics.comparison import MatchType
    from greenroom.metrics.contracts import kept_contract
    from greenroom.metrics.counts import event_count, turns_within
    from greenroom.metrics.goals import goals_achieved
    from greenroom.metrics.handovers import handed_over
    from greenroom.metrics.intermediate import intermediate_responses
    from greenroom.metrics.judges import (
        factual_accuracy,
        final_response_match_v2,
        hallucinations_v1,
        judge,
        jury,
        llm_judge,
        response_evaluation_score,
        rubric_based_final_response_quality_v1,
        rubric_based_tool_use_quality_v1,
        safety_v1,
    )
    from greenroom.metrics.latency import (
        first_answer_within,
        first_words_within,
        model_within,
        turn_within,
    )
    from greenroom.metrics.likeness import reference_recall, response_match_score
    from greenroom.metrics.limits import completed_within, cost_within, tokens_within
    from greenroom.metrics.nodes import node_sequence
    from greenroom.metrics.recorded import recorded_verdict
    from greenroom.metrics.registry import criterion_names
    from greenroom.metrics.response import contains, exact, matches
    from greenroom.metrics.simulator import simulator_quality
    from greenroom.metrics.state import state_is, state_matches
    from greenroom.metrics.structured import json_schema
    from greenroom.metrics.trajectory import tool_name_match, tool_trajectory_avg_score
    from greenroom.metrics.vocabulary import keywords, tone


__all__ = [
    "MatchType",
    "Metric",
    "Rouge",
    "as_metric",
    "called",
    "completed_within",
    "contains",
    "cost_within",
    "criterion_names",
    "efficiency",
    "event_count",
    "exact",
    "factual_accuracy",
    "final_response_match_v2",
    "first_answer_within",
    "first_words_within",
    "forbidden_calls",
    "goals_achieved",
    "hallucinations_v1",
    "handed_over",
    "intermediate_responses",
    "json_schema",
    "judge",
    "jury",
    "kept_contract",
    "keywords",
    "llm_judge",
    "matches",
    "metric",
    "model_within",
    "node_sequence",
    "recorded_verdict",
    "reference_recall",
    "response_evaluation_score",
    "response_match_score",
    "rouge",
    "rubric_based_final_response_quality_v1",
    "rubric_based_tool_use_quality_v1",
    "safety_v1",
    "simulator_quality",
    "state_is",
    "state_matches",
    "tokens_within",
    "tone",
    "tool_name_match",
    "tool_trajectory_avg_score",
    "turn_within",
    "turns_within",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "calls": "called forbidden_calls",
        "comparison": "MatchType",
        "contracts": "kept_contract",
        "counts": "event_count turns_within",
        "goals": "goals_achieved",
        "handovers": "handed_over",
        "intermediate": "intermediate_responses",
        "judges": "factual_accuracy final_response_match_v2 hallucinations_v1 judge jury llm_judge "
        "response_evaluation_score rubric_based_final_response_quality_v1 "
        "rubric_based_tool_use_quality_v1 safety_v1",
        "latency": "first_answer_within first_words_within model_within turn_within",
        "likeness": "reference_recall response_match_score",
        "limits": "completed_within cost_within tokens_within",
        "nodes": "node_sequence",
        "recorded": "recorded_verdict",
        "registry": "criterion_names",
        "response": "contains exact matches",
        "simulator": "simulator_quality",
        "state": "state_is state_matches",
        "structured": "json_schema",
        "trajectory": "tool_name_match tool_trajectory_avg_score",
        "vocabulary": "keywords tone",
    },
)
