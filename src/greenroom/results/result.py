"""The result of one trial: its verdict and what it is based on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from greenroom.cases.case import Case
from greenroom.cases.data import case_data
from greenroom.cases.scores import Outcome, Score
from greenroom.errors import BadLedger
from greenroom.ledger import questions
from greenroom.ledger.events import EndReason
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.questions import Spending
from greenroom.ledger.trajectory import Step, trajectory
from greenroom.results.blame import Blame, blame
from greenroom.results.endings import LEFT_OUT, Ending, Problem, Status, unscored

UNKNOWN_CODE = ':unknown"'
"""How an identity ends in JSON if the source could not be read: whether the code changed is unknown."""


def case_of(
    asked: Case | Mapping[str, Json] | None, kept: "Ledger | LedgerSource | None"
) -> Mapping[str, Json] | None:
    """The case's data: its own, or from the start of its ledger; None if neither is known."""
    if isinstance(asked, Case):
        return case_data(asked)
    if asked is not None or kept is None:
        return asked
    ledger = kept if isinstance(kept, Ledger) else kept.load()
    first = questions.started(ledger)
    return first.case if first is not None and is_object(first.case) else None


class LedgerSource(Protocol):
    """A ledger that is kept elsewhere."""

    @property
    def size(self) -> int:
        """About how many bytes it takes as JSON."""
        ...

    def load(self) -> Ledger:
        """The ledger, read again each time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(Ending):
    """The verdict on one trial of a case, and what it is based on."""

    case_id: str
    status: Status
    name: str = ""
    tags: Sequence[str] = ()
    trial: int = 1
    scores: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    ended: EndReason | None = None
    error: Problem | None = None
    turns: int = 0
    seconds: float = 0.0
    usage: Usage | None = None
    cost: float | None = None
    user_usage: Usage | None = None
    user_cost: float | None = None
    judge_usage: Usage | None = None
    judge_cost: float | None = None
    models: Mapping[str, int] = field(default_factory=dict[str, int])
    user_models: Mapping[str, int] = field(default_factory=dict[str, int])
    judge_models: Mapping[str, int] = field(default_factory=dict[str, int])
    nodes: Mapping[str, Spending] | None = None
    """What the agent's models used and cost by the node that asked them; None if it was not recorded."""
    notes: Sequence[str] = ()
    trace_id: str = ""
    """The trace that it was exported to, if any; see `greenroom.telemetry`."""
    trace_link: str = ""
    """A link to view that trace."""
    fixed: bool = False
    """Whether the trial was deterministic, so that it would end the same way again."""
    replaced: Mapping[str, str] = field(default_factory=dict[str, str])
    """The metrics whose outcomes a hook replaced, each with the hook and the original outcome."""
    recorded_at: float | None = None
    """For a replay: when the answers of its models were recorded, in seconds since the epoch."""
    earlier_costs: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    """What attempts at this trial that broke, and ran again, cost in USD: of `agent`, `user` and `judge`."""
    kept: Ledger | LedgerSource | None = field(default=None, compare=False, repr=False)
    """The ledger of the trial, or where it is."""
    asked: Case | Mapping[str, Json] | None = field(default=None, compare=False, repr=False)
    """The case itself, or its data if it was read from a file."""
    steps: Sequence[Step] = field(default=(), compare=False, repr=False)
    """The trajectory of a case that did not pass, where no ledger was kept."""
    blamed: Blame | None = field(default=None, compare=False, repr=False)
    """Whose failure it is, where no ledger was kept."""
    asks: str = field(default="", compare=False, repr=False)
    """A digest of the case with all its code, where a store kept one; equal digests mean equal cases."""

    def __post_init__(self) -> None:
        # Every result is made here, whether by a run, a worker, a file, a store or rescoring.
        if not self.scores:
            return
        if self.broke:
            problem = self.error or Problem("system", "")
            object.__setattr__(self, "scores", unscored(self.scores, problem.unmeasured))
        elif self.status == "skipped":
            object.__setattr__(
                self, "scores", {**self.scores, **dict.fromkeys(self.measured, LEFT_OUT)}
            )

    @property
    def prices(self) -> tuple[float | None, ...]:
        """What the agent, the user and the judges cost in USD; None where a price is unknown."""
        return self.cost, self.user_cost, self.judge_cost

    @property
    def ledger(self) -> Ledger:
        """The trial's ledger; one from a store is read again each time."""
        found = self.ledger_or_none
        if found is None and self.ended is None:
            why = self.error.message if self.error is not None else "it was not run."
            raise BadLedger(
                f"case {self.case_id!r} has no ledger: nothing was recorded before it ended. {why}"
            )
        if found is None:
            raise BadLedger(
                f"the ledger of case {self.case_id!r} was not kept with its result. Read the result "
                f"from the run that made it, or run the case again; `ledger_or_none` is None here."
            )
        return found

    @property
    def ledger_or_none(self) -> Ledger | None:
        """The trial's ledger, or None if none was kept: reports in files have none."""
        kept = self.kept
        return kept if kept is None or isinstance(kept, Ledger) else kept.load()

    @property
    def case(self) -> Mapping[str, Json] | None:
        """The case's data, if it is known."""
        return case_of(self.asked, self.kept)

    @property
    def trajectory(self) -> list[Step]:
        """Nodes, tools, messages and decisions in order, if they were kept."""
        ledger = self.ledger_or_none
        return list(self.steps) if ledger is None else trajectory(ledger)

    @property
    def responses(self) -> list[str]:
        """The agent's last words in each turn; "" for a turn without any."""
        return responses_in(self.trajectory)

    @property
    def measured(self) -> dict[str, Score]:
        """The metrics that gave a score."""
        return {name: o for name, o in self.scores.items() if isinstance(o, Score)}

    @property
    def blame(self) -> Blame | None:
        """Who is to blame that the case did not pass; None if it passed, or that is unknown."""
        if not isinstance(self.kept, Ledger) or not isinstance(self.asked, Case):
            return self.blamed
        return blame(self.asked, self.kept, self.scores)


def responses_in(trajectory: Sequence[Step]) -> list[str]:
    """The agent's last words in each turn of a trajectory."""
    found: list[str] = []
    for step in trajectory:
        if step.type == "message" and step.name == "user":
            found.append("")
        elif step.type == "message":
            found[-1:] = [str(step.args)]
    return found
