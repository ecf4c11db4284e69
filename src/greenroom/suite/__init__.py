"""Many cases: what is due, run bounded, and reported in order."""

from greenroom.suite.batch import Batch, simulate_all
from greenroom.suite.cancel import Cancel
from greenroom.suite.evaluation import evaluate, rehearse, stream
from greenroom.suite.ledger_scores import score
from greenroom.suite.options import Options
from greenroom.suite.references import load_agent, load_cases
from greenroom.suite.rescores import Rescored, rescore

__all__ = [
    "Batch",
    "Cancel",
    "Options",
    "Rescored",
    "evaluate",
    "load_agent",
    "load_cases",
    "rehearse",
    "rescore",
    "score",
    "simulate_all",
    "stream",
]
