"""Many cases: what is due, run bounded, and reported in order."""

from greenroom.suite.batch import Batch, simulate_all
from greenroom.suite.cancelling import Cancel
from greenroom.suite.evaluation import evaluate, rehearse, stream
from greenroom.suite.options import Options
from greenroom.suite.references import load_agent, load_cases
from greenroom.suite.scoring import score

__all__ = [
    "Batch",
    "Cancel",
    "Options",
    "evaluate",
    "load_agent",
    "load_cases",
    "rehearse",
    "score",
    "simulate_all",
    "stream",
]
