"""Models as judges: one engine, and the criteria that use it.

The names below load their files when first used, so that a run without judges loads none.
"""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy

if TYPE_CHECKING:
    from greenroom.metrics.judges.bench import Bench, Breaker, Hearing, NoVerdict, Question
    from greenroom.metrics.judges.claims import hallucinations_v1
    from greenroom.metrics.judges.correctness import factual_accuracy, response_evaluation_score
    from greenroom.metrics.judges.evidence import gathered
    from greenroom.metrics.judges.forms import (
        Better,
        Boolean,
        Claims,
        Form,
        Grade,
        Labels,
        NotAnAnswer,
        Sheet,
        Verdict,
    )
    from greenroom.metrics.judges.judged import Judged
    from greenroom.metrics.judges.juries import jury
    from greenroom.metrics.judges.options import bench_from
    from greenroom.metrics.judges.poll import Item, Poll, Votes
    from greenroom.metrics.judges.prompted import judge, llm_judge
    from greenroom.metrics.judges.rubrics import (
        Rubric,
        rubric_based_final_response_quality_v1,
        rubric_based_tool_use_quality_v1,
        rubric_template,
    )
    from greenroom.metrics.judges.safety import Category, safety_v1
    from greenroom.metrics.judges.same_answer import final_response_match_v2


__all__ = [
    "Bench",
    "Better",
    "Boolean",
    "Breaker",
    "Category",
    "Claims",
    "Form",
    "Grade",
    "Hearing",
    "Item",
    "Judged",
    "Labels",
    "NoVerdict",
    "NotAnAnswer",
    "Poll",
    "Question",
    "Rubric",
    "Sheet",
    "Verdict",
    "Votes",
    "bench_from",
    "factual_accuracy",
    "final_response_match_v2",
    "gathered",
    "hallucinations_v1",
    "judge",
    "jury",
    "llm_judge",
    "response_evaluation_score",
    "rubric_based_final_response_quality_v1",
    "rubric_based_tool_use_quality_v1",
    "rubric_template",
    "safety_v1",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "bench": "Bench Breaker Hearing NoVerdict Question",
        "claims": "hallucinations_v1",
        "correctness": "factual_accuracy response_evaluation_score",
        "evidence": "gathered",
        "forms": "Better Boolean Claims Form Grade Labels NotAnAnswer Sheet Verdict",
        "judged": "Judged",
        "juries": "jury",
        "options": "bench_from",
        "poll": "Item Poll Votes",
        "prompted": "judge llm_judge",
        "rubrics": "Rubric rubric_based_final_response_quality_v1 rubric_based_tool_use_quality_v1 rubric_template",
        "safety": "Category safety_v1",
        "same_answer": "final_response_match_v2",
    },
)
