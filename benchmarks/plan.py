"""How much a bench run measures, and how often."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes and rounds of every part."""

    sizes: Sequence[int]
    rounds: int
    latency_cases: int
    agent_cases: int
    flow_cases: int
    starts: int
    pairs: int
    gated: int
    stored: int
    """Cases of a run with a store."""
    stored_slow: int
    finished: int
    """Trials that an interrupted run had behind it."""
    large: int
    """Ledgers of `large_bytes` each."""
    large_bytes: int = 1_000_000
    heavy: Sequence[str] = ()
    """Peers with large environments that take part."""

    @property
    def usual(self) -> int:
        """The number of cases that the goals speak of."""
        return usual(self.sizes)


def usual(sizes: Sequence[int]) -> int:
    """Which of these sizes the goals speak of."""
    return 1000 if 1000 in sizes else sizes[-1]


FULL = Plan(
    sizes=(100, 1000, 5000),
    rounds=5,
    latency_cases=1000,
    agent_cases=200,
    flow_cases=300,
    starts=7,
    pairs=200,
    gated=60,
    stored=1000,
    stored_slow=1000,
    finished=10_000,
    large=1000,
)
QUICK = Plan(
    sizes=(100,),
    rounds=1,
    latency_cases=128,
    agent_cases=50,
    flow_cases=50,
    starts=2,
    pairs=50,
    gated=5,
    stored=100,
    stored_slow=128,
    finished=500,
    large=50,
)
