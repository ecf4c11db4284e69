"""Case and ledger in, score out: metrics of one's own, the built-in ones, and judges."""

from greenroom.cases.parts import Metric
from greenroom.metrics.calls import called, forbidden_calls
from greenroom.metrics.comparison import MatchType
from greenroom.metrics.counts import event_count, turns_within
from greenroom.metrics.efficiency import efficiency
from greenroom.metrics.intermediate import intermediate_responses
from greenroom.metrics.judges.prompted import judge
from greenroom.metrics.latency import first_answer_within, model_within, turn_within
from greenroom.metrics.likeness import reference_recall, response_match_score
from greenroom.metrics.limits import completed_within, cost_within, tokens_within
from greenroom.metrics.metric import as_metric, metric
from greenroom.metrics.nodes import node_sequence
from greenroom.metrics.response import contains, exact, matches
from greenroom.metrics.rouge import Rouge, rouge
from greenroom.metrics.scoring import score
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
    "efficiency",
    "event_count",
    "exact",
    "first_answer_within",
    "forbidden_calls",
    "intermediate_responses",
    "json_schema",
    "judge",
    "keywords",
    "matches",
    "metric",
    "model_within",
    "node_sequence",
    "reference_recall",
    "response_match_score",
    "rouge",
    "score",
    "state_is",
    "state_matches",
    "tokens_within",
    "tone",
    "tool_name_match",
    "tool_trajectory_avg_score",
    "turn_within",
    "turns_within",
]
