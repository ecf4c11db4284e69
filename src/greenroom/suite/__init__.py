"""Many cases: what is due, run bounded, and reported in order.

The names load their modules when first used: `greenroom --help` and every pytest run read the table of
options in here, and need nothing else of it.
"""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy

if TYPE_CHECKING:
    from greenroom.suite.batch import Batch, simulate_all
    from greenroom.suite.cancel import Cancel
    from greenroom.suite.evaluation import evaluate, rehearse, stream
    from greenroom.suite.forecasts import Forecast, Need, forecast
    from greenroom.suite.inputs.references import load_agent
    from greenroom.suite.inputs.sources import load_cases
    from greenroom.suite.mutation.mutation_results import (
        MutantResult,
        MutationEstimate,
        MutationScore,
    )
    from greenroom.suite.mutation.score import mutation_score
    from greenroom.suite.options import Options
    from greenroom.suite.recorded.judges import run_judges
    from greenroom.suite.recorded.ledger_scores import score
    from greenroom.suite.recorded.rescores import Rescored, rescore
    from greenroom.suite.recorded.shrunk_trials import shrink_trial
    from greenroom.suite.recorded.trace_scores import score_traces
    from greenroom.suite.workers.ray.settings import Ray

__all__ = [
    "Batch",
    "Cancel",
    "Forecast",
    "MutantResult",
    "MutationEstimate",
    "MutationScore",
    "Need",
    "Options",
    "Ray",
    "Rescored",
    "evaluate",
    "forecast",
    "load_agent",
    "load_cases",
    "mutation_score",
    "rehearse",
    "rescore",
    "run_judges",
    "score",
    "score_traces",
    "shrink_trial",
    "simulate_all",
    "stream",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "batch": "Batch simulate_all",
        "cancel": "Cancel",
        "evaluation": "evaluate rehearse stream",
        "forecasts": "Forecast Need forecast",
        "inputs.references": "load_agent",
        "inputs.sources": "load_cases",
        "mutation.mutation_results": "MutantResult MutationEstimate MutationScore",
        "mutation.score": "mutation_score",
        "options": "Options",
        "recorded.judges": "run_judges",
        "recorded.ledger_scores": "score",
        "recorded.rescores": "Rescored rescore",
        "recorded.shrunk_trials": "shrink_trial",
        "recorded.trace_scores": "score_traces",
        "workers.ray.settings": "Ray",
    },
)
