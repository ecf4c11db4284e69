"""The facts that figures are computed from: how a trial ended, its scores, time and cost.

A store reads the facts of a trial in a tenth of the time of its whole result, so that a hundred
thousand of them are counted, compared and listed in seconds. Whatever works with facts works with
results as well: both have the same attributes.
"""

from typing import Any

from msgspec import Struct

from greenroom.cases.scores import NotApplicable, Outcome
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import Spending
from greenroom.results.endings import Ending, Problem, Status
from greenroom.results.result import CaseResult


class OutcomeFacts(Struct, frozen=True, gc=False, rename={"value": "score"}):
    """What a metric found; no value means no score."""

    value: float | None = None
    passed: bool | None = None
    threshold: float | None = None
    reason: str = ""
    not_applicable: str | None = None
    unmeasured: str | None = None


_UNMEASURED = OutcomeFacts(unmeasured="the trial proves nothing")


class TrialFacts(Ending, Struct, kw_only=True, rename={"asked": "case"}):
    """The facts of one trial, by the names that they have in a `CaseResult`."""

    case_id: str
    trial: int
    status: Status
    name: str
    tags: tuple[str, ...]
    scores: dict[str, OutcomeFacts]
    ended: str | None
    error: Problem | None
    turns: int
    seconds: float
    usage: Usage | None
    cost: float | None
    user_usage: Usage | None
    user_cost: float | None
    judge_usage: Usage | None
    judge_cost: float | None
    models: dict[str, int]
    user_models: dict[str, int]
    judge_models: dict[str, int]
    notes: tuple[str, ...]
    nodes: dict[str, Spending] | None = None
    fixed: bool = False
    replaced: dict[str, str] = {}
    recorded_at: float | None = None
    earlier_costs: dict[str, float | None] = {}
    asked: dict[str, Json] | None = None
    asks: str = ""
    kept: Any = None
    """Where its ledger is; None if none was kept."""

    def __post_init__(self) -> None:
        # As in results: a trial that broke or was left out has no score, whatever an earlier version stored.
        if self.status == "passed" and self.error is None and self.ended != "error":
            return  # as most do
        if self.scores and (self.status == "skipped" or self.broke):
            self.scores = {
                name: _UNMEASURED if self.status != "skipped" or found.value is not None else found
                for name, found in self.scores.items()
            }


Facts = CaseResult | TrialFacts
"""A result, or what figures need of it."""


def is_fine(outcome: Outcome | OutcomeFacts) -> bool:
    """Whether an outcome needs no attention: it passed, or does not apply."""
    return bool(outcome.passed) or not applies(outcome)


def applies(outcome: Outcome | OutcomeFacts) -> bool:
    """Whether the metric applies: the case says what it needs."""
    if isinstance(outcome, OutcomeFacts):
        return outcome.not_applicable is None
    return not isinstance(outcome, NotApplicable)
