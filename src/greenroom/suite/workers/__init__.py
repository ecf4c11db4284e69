"""Trials played in worker processes, for agents that block or compute.

The parent hands out trials and writes down what happens; each worker imports agent, cases and
metrics by itself and plays. What goes between them is JSON on two pipes: first a briefing, then
trials one way, and events and verdicts the other. Nothing is pickled.
"""

from greenroom.suite.workers.pool import Pool
from greenroom.suite.workers.references import Workers

__all__ = ["Pool", "Workers"]
