"""What was concluded about one case."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import gmtime, strftime
from typing import Any, Literal, Protocol

from greenroom.cases.case import Case
from greenroom.cases.data import case_data
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadLedger, GreenroomError, Phase
from greenroom.ledger import questions
from greenroom.ledger.events import EndReason, ModelReplied, RunEnded, RunStarted, Unseen
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Usage
from greenroom.ledger.origin import place_of, words_of
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.questions import Spending, Step
from greenroom.ledger.safe_text import on_one_line
from greenroom.results.blame import Blame, blame
from greenroom.results.breakage import LEFT_OUT, Problem, breakage, unscored

Status = Literal["passed", "failed", "error", "terminated", "skipped"]
"""How a trial ended."""
EVALUATED: tuple[Status, ...] = ("passed", "failed", "terminated")
"""How a trial ends that shows something of the agent; errors and skipped trials do not."""
_LIMITS = ("max_turns", "max_seconds")
_UNMEASURED = "Unmeasured"
UNSEEN: Mapping[Unseen, str] = {
    "models": "the agent's model calls were not seen: tokens and cost are unknown",
    "tools": "the agent's tool calls were not intercepted: no mock reached them, and none was seen",
}
"""The note on a result whose agent made calls that Greenroom could not see."""
_NOT_RECORDED: Mapping[Unseen, str] = {
    "args": "the arguments of calls",
    "results": "what tools returned",
    "words": "what the agent said",
    "user": "what the user said",
    "state": "the state",
    "nodes": "which part of the agent was at work",
    "times": "when anything happened",
}
REPLAYED = "replayed"
"""How the note begins on a result that rests on answers which were recorded before."""
UNKNOWN_CODE = ':unknown"'
"""How the identity of code that could not be read ends in JSON: whether it changed is unknown."""
_NOTHING_SPENT = questions.Spending(Usage(), 0.0, {})


class LedgerSource(Protocol):
    """A ledger that is kept elsewhere."""

    @property
    def size(self) -> int:
        """About how many bytes it takes as a text."""
        ...

    def load(self) -> Ledger:
        """The ledger, read anew each time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case's verdict and what it rests on."""

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
    """The trace that it was written as, if it was; see `greenroom.telemetry`."""
    trace_link: str = ""
    """Where that trace can be looked at."""
    fixed: bool = False
    """Whether nothing in the run was left to chance, so that it would end the same way again."""
    replaced: Mapping[str, str] = field(default_factory=dict[str, str])
    """The metrics whose outcomes a hook replaced: by which hook, and what the metric had found."""
    recorded_at: float | None = None
    """Of a replay: when the answers of its models were recorded, in seconds since the epoch."""
    kept: Ledger | LedgerSource | None = field(default=None, compare=False, repr=False)
    """The ledger of the run, or where it is."""
    asked: Case | Mapping[str, Json] | None = field(default=None, compare=False, repr=False)
    """The case itself, or its data if it was read from a file."""
    steps: Sequence[Step] = field(default=(), compare=False, repr=False)
    """The trajectory of a case that did not pass, where no ledger was kept."""
    blamed: Blame | None = field(default=None, compare=False, repr=False)
    """Whose failure it is, where no ledger was kept."""
    asks: str = field(default="", compare=False, repr=False)
    """A digest of the case with all its code, where a store kept one; equal digests ask for the same."""

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
    def broke(self) -> bool:
        """Whether the trial itself broke: none of its metrics has a score then."""
        if self.ended == "error":
            return True
        # An error without a phase may have happened anywhere.
        return self.status == "error" if self.error is None else self.error.phase != "metric"

    @property
    def label(self) -> str:
        """The case's id, and which trial of it this is from the second on."""
        return label(self.case_id, self.trial)

    @property
    def prices(self) -> tuple[float | None, ...]:
        """What the agent, the user and the judges cost in USD; None where a price is unknown."""
        return self.cost, self.user_cost, self.judge_cost

    @property
    def spent(self) -> float | None:
        """What all of them cost; None when the case ran and a price is unknown."""
        known = [price for price in self.prices if price is not None]
        is_known = self.ended is None or len(known) == len(self.prices)
        return sum(known, 0.0) if is_known else None

    @property
    def passed(self) -> bool:
        """Whether the case counts as passed."""
        return self.status == "passed"

    @property
    def fell_short(self) -> bool:
        """Whether the case ran and did not pass."""
        return self.status in ("failed", "error", "terminated")

    @property
    def ledger(self) -> Ledger:
        """All that happened; one from a store is read anew each time."""
        found = self.ledger_or_none
        if found is None:
            raise BadLedger(
                f"the ledger of case {self.case_id!r} was not kept with its result. Read the result "
                f"from the run that made it, or run the case again; `ledger_or_none` is None here."
            )
        return found

    @property
    def ledger_or_none(self) -> Ledger | None:
        """All that happened, or None where no ledger was kept: reports in files have none."""
        kept = self.kept
        return kept if kept is None or isinstance(kept, Ledger) else kept.load()

    @property
    def case(self) -> Mapping[str, Json] | None:
        """The case's data, if it is known."""
        if isinstance(self.asked, Case):
            return case_data(self.asked)
        if self.asked is not None or self.kept is None:
            return self.asked
        ledger = self.ledger_or_none
        first = questions.started(ledger) if ledger else None
        return first.case if first is not None and is_object(first.case) else None

    @property
    def trajectory(self) -> list[Step]:
        """Nodes, tools, messages and decisions in order, as far as they were kept."""
        ledger = self.ledger_or_none
        return list(self.steps) if ledger is None else questions.trajectory(ledger)

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
        """Whose failure it is that the case did not pass; None if it did not, or that is unknown."""
        if not isinstance(self.kept, Ledger) or not isinstance(self.asked, Case):
            return self.blamed
        return blame(self.asked, self.kept, self.scores)


def label(case_id: str, trial: int) -> str:
    """A case's id, and which trial of it is meant from the second on."""
    shown = on_one_line(case_id)
    return shown if trial == 1 else f"{shown} (trial {trial})"


def responses_in(trajectory: Sequence[Step]) -> list[str]:
    """The agent's last words in each turn of a trajectory."""
    found: list[str] = []
    for step in trajectory:
        if step.type == "message" and step.name == "user":
            found.append("")
        elif step.type == "message":
            found[-1:] = [str(step.args)]
    return found


def concluded(
    case: Case,
    ledger: Ledger,
    scores: Mapping[str, Outcome],
    *,
    error: Problem | None = None,
    judging: Ledger | None = None,
    keep_ledger: bool = True,
) -> CaseResult:
    """The verdict on a finished run.

    `error` is what kept the metrics from measuring it, `judging` the ledger of what they asked models.
    """
    index, end = ledger.indexes["agent"], ledger.last
    recorded_at = _recorded_at(ledger)
    reason = end.reason if isinstance(end, RunEnded) else None
    unseen = questions.unseen_in(ledger.first, index)
    # What broke the trial comes first: nothing else follows from it.
    status, error = _verdict(reason, breakage(ledger) or error, scores)
    made = CaseResult(
        case_id=case.id,
        name=case.name,
        tags=tuple(case.tags),
        status=status,
        scores={**scores},
        ended=reason,
        error=error,
        notes=(*_not_seen(unseen), *_replayed(recorded_at, ledger, judging)),
        recorded_at=recorded_at,
        turns=len(index.rounds),
        seconds=questions.seconds(ledger),
        **_spent(ledger, judging, models_seen="models" not in unseen),
        asked=case,
        kept=ledger if keep_ledger else None,
    )
    if written := questions.traces(ledger):
        made = replace(made, trace_id=written[-1].trace_id, trace_link=written[-1].link)
    if keep_ledger or status == "passed":
        return made
    # Without its ledger, a failure keeps the trajectory without the details.
    steps = tuple(questions.trajectory(ledger, brief=True))
    return replace(made, steps=steps, blamed=blame(case, ledger, made.scores))


def _not_seen(unseen: Sequence[Unseen]) -> list[str]:
    """The notes on what the record does not hold."""
    lacks = [what for name, what in _NOT_RECORDED.items() if name in unseen]
    said = [UNSEEN[name] for name in unseen if name in UNSEEN]
    return [*said, f"not recorded: {', '.join(lacks)}"] if lacks else said


def _recorded_at(ledger: Ledger) -> float | None:
    first = ledger.first
    return first.recorded_at if isinstance(first, RunStarted) else None


def _replayed(recorded_at: float | None, *ledgers: Ledger | None) -> list[str]:
    """The note on a result that rests on answers from a recording."""
    if recorded_at is None:
        return []
    replies = [r for ledger in ledgers if ledger for r in ledger.of(ModelReplied, voice=None)]
    live = sum(reply.source == "live" for reply in replies)
    on = strftime("%Y-%m-%d", gmtime(recorded_at))
    if not live:
        return [f"{REPLAYED}: what models answered was recorded on {on}"]
    return [
        f"{REPLAYED} in part: {live} of {len(replies)} answers of models are live, the rest was recorded on {on}"
    ]


def _spent(ledger: Ledger, judging: Ledger | None, *, models_seen: bool) -> dict[str, Any]:
    """Tokens, cost and models of the agent, the user and the judges, by the names of a result's fields."""
    agent = questions.spending_on(ledger.indexes["agent"], models_seen=models_seen)
    user = questions.spending(ledger, "user") if "user" in ledger.indexes else _NOTHING_SPENT
    judges = questions.spending(judging) if judging is not None and len(judging) else _NOTHING_SPENT
    found: dict[str, Any] = {"nodes": _by_node(ledger, agent, models_seen)}
    for role, spent in (("", agent), ("user_", user), ("judge_", judges)):
        found[f"{role}usage"], found[f"{role}cost"] = spent.usage, spent.cost
        found[f"{role}models"] = {**spent.models}
    return found


def _by_node(ledger: Ledger, agent: Spending, models_seen: bool) -> dict[str, Spending]:
    """What each node spent; most agents have one, which spent it all."""
    nodes = {reply.node for reply in ledger.indexes["agent"].replied}
    if models_seen and len(nodes) < 2:
        return dict.fromkeys(nodes, agent)
    return questions.spending_by_node(ledger)


def can_be_rejudged(result: CaseResult) -> bool:
    """Whether a verdict rests on what metrics found: on no error, or on one that is only theirs."""
    return not result.broke and (result.error is None or result.error.type in ("", _UNMEASURED))


def rejudged(
    result: CaseResult, scores: Mapping[str, Outcome], replaced: Mapping[str, str]
) -> CaseResult:
    """The verdict with other outcomes in the place of some; `replaced` says of each why."""
    status, error = _verdict(result.ended, None, scores)
    # What a hook decides may be decided otherwise the next time.
    return replace(
        result, status=status, error=error, scores={**scores}, replaced={**replaced}, fixed=False
    )


def unmeasured(
    case: Case,
    ledger: Ledger,
    error: BaseException,
    metrics: Iterable[str] = (),
    *,
    judging: Ledger | None = None,
    keep_ledger: bool = True,
) -> CaseResult:
    """The verdict on a finished run that could not be measured; what it took is known all the same."""
    problem = _described(error, "metric")
    scores = dict.fromkeys(metrics, Unmeasured(problem.headline, problem.phase))
    return concluded(case, ledger, scores, error=problem, judging=judging, keep_ledger=keep_ledger)


def broken(
    case: Case,
    error: BaseException,
    phase: Phase = "system",
    *,
    metrics: Iterable[str] = (),
) -> CaseResult:
    """The verdict on a case that could not even start; `metrics` would have measured it."""
    problem = _described(error, phase)
    return CaseResult(
        case_id=case.id,
        name=case.name,
        tags=tuple(case.tags),
        status="error",
        scores=dict.fromkeys(metrics, problem.unmeasured),
        error=problem,
        asked=case,
    )


def _described(error: BaseException, phase: Phase) -> Problem:
    # What we refuse says itself where to look.
    place = "" if isinstance(error, GreenroomError) else place_of(error)
    words = f"{words_of(error)} ({place})" if place else words_of(error)
    return Problem(getattr(error, "phase", phase), words, type(error).__name__)


def skipped(case: Case, why: str) -> CaseResult:
    """The verdict on a case that was left out."""
    return CaseResult(
        case_id=case.id,
        name=case.name,
        tags=tuple(case.tags),
        status="skipped",
        notes=(why,),
        asked=case,
    )


def _problem(scores: Mapping[str, Outcome]) -> Problem:
    """What broke in a run of which a metric could not measure all, or none gave a score."""
    if broken := {n: o for n, o in scores.items() if isinstance(o, Unmeasured)}:
        whys = "; ".join(f"{name}: {outcome.why}" for name, outcome in broken.items())
        # A measurement that the simulated user spoiled is not the metric's failure.
        phases: list[Phase] = [o.phase for o in broken.values() if o.phase != "metric"]
        return Problem(phases[0] if phases else "metric", whys, _UNMEASURED)
    silent = [f"{n}: {o.why}" for n, o in scores.items() if isinstance(o, NotApplicable)]
    why = f" ({'; '.join(silent)})" if silent else ""
    return Problem("metric", f"nothing was evaluated{why}. Give the case metrics or expect=.")


def _verdict(
    reason: EndReason | None, error: Problem | None, scores: Mapping[str, Outcome]
) -> tuple[Status, Problem | None]:
    """The status of a run, and what broke in it if something did."""
    is_measured, is_met = False, True
    for outcome in scores.values():
        if isinstance(outcome, Score):
            is_measured, is_met = True, is_met and outcome.passed
        elif isinstance(outcome, Unmeasured):
            is_measured = False
            break
    if error is None and not is_measured:
        error = _problem(scores)
    # A run that broke proves nothing; a run that was cut short never passed, whatever it scored.
    if error is not None and (error.phase != "metric" or reason not in _LIMITS):
        return "error", error
    if reason in _LIMITS:
        return "terminated", error
    return "passed" if is_met else "failed", error
