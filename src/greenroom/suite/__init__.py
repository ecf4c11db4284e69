"""Many cases: what is due, run bounded, and reported in order."""

from greenroom.suite.evaluation import evaluate, rehearse
from greenroom.suite.references import load_agent, load_cases

__all__ = ["evaluate", "load_agent", "load_cases", "rehearse"]
