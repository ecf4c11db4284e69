"""Trials run in worker processes, for agents that block or compute.

The parent distributes trials and records what happens; each worker imports agent, cases and
metrics by itself and runs them. They exchange JSON on two pipes: first a briefing, then trials one
way, and events and verdicts the other. Nothing is pickled.
"""

from greenroom.suite.workers.pool import Pool
from greenroom.suite.workers.references import Workers

__all__ = ["Pool", "Workers"]
