"""Which step of a recorded trial decided how it ended: found by forks from either side of each step."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.errors import BadInput
from greenroom.ledger.events import (
    Answered,
    Event,
    ModelReplied,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.results.statistics.exact import fisher, holm
from greenroom.simulation.outside_trials import judging
from greenroom.simulation.recorded.fork import case_of, fork, places
from greenroom.simulation.trial_context import backend_of

_STEPS = (ModelReplied, ToolReturned, ToolFailed, UserSaid, Answered)
_ALPHA = 0.05


class StepRates(Struct, frozen=True):
    """A step of a trial, and how many of the forks before and after it passed."""

    event: Event
    before: int
    after: int
    p: float
    """How likely they differ this much if the step decides nothing; for all steps that were looked at."""


class Deciding(Struct, frozen=True):
    """Which step of a trial decided how it ended, as far as forks show."""

    steps: tuple[StepRates, ...]
    n: int

    @property
    def event(self) -> Event | None:
        """The first event with which the pass rate changes significantly; None: cannot tell."""
        return next((step.event for step in self.steps if step.p < _ALPHA), None)

    def __str__(self) -> str:
        found = next((step for step in self.steps if step.p < _ALPHA), None)
        if found is None:
            return f"cannot tell which of {len(self.steps)} steps decided, from {self.n} forks each"
        return (
            f"event {found.event.seq} ({found.event.kind}) decided: of {self.n} forks {found.before} "
            f"pass before it, {found.after} after it"
        )


async def deciding_step(
    ledger: Ledger,
    agent: Any,
    passes: Callable[[Ledger], bool],
    *,
    case: Case | None = None,
    n: int = 8,
) -> Deciding:
    """Fork a recorded trial `n` times before and after every step, and say which step decided.

    A step is an answer: of a model, of a tool, or of the user. `passes` says whether a trial is good.
    This asks models about `n` times as often as the trial did, for each of its steps. Agents of other
    frameworks continue between turns only: the answers they got in one turn count as one step, its first.
    """
    steps = [event for event in ledger.of(*_STEPS) if event.seq > 0]
    if not steps:
        raise BadInput("nothing was answered in this trial, so no step of it can have decided.")
    backend = backend_of(case or case_of(ledger), agent)
    known, sides = places(ledger, backend), dict[tuple[int, int], Event]()
    for event in steps:
        before = [at for at in known if at <= event.seq]
        after = [at for at in known if at > event.seq]
        if before and after:
            sides.setdefault((before[-1], after[0]), event)
    rates: dict[int, int] = {}
    for at in sorted({place for pair in sides for place in pair}):
        forks = await fork(ledger, agent, at=at, case=case, n=n)
        with judging("passes"):
            rates[at] = sum(1 for one in forks if passes(one))
    pairs = [(rates[before], rates[after]) for before, after in sides]
    chances = holm([fisher(before, n, after, n) for before, after in pairs])
    found = zip(sides.values(), pairs, chances, strict=True)
    return Deciding(tuple(StepRates(event, *pair, p) for event, pair, p in found), n)
