"""The verdict on one trial: what follows from its ledger and its scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from time import gmtime, strftime

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import GreenroomError, Phase
from greenroom.ledger import questions
from greenroom.ledger.events import LIMITS, EndReason, ModelReplied, RunEnded, RunStarted, Unseen
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Usage
from greenroom.ledger.origin import place_of, words_of
from greenroom.ledger.simulated import SIMULATED, simulated_tools
from greenroom.ledger.trajectory import trajectory
from greenroom.results.blame import blame
from greenroom.results.endings import Problem, Status, breakage
from greenroom.results.result import CaseResult

_UNMEASURED = "Unmeasured"
UNSEEN: Mapping[Unseen, str] = {
    "models": "the agent's model calls were not seen: tokens and cost are unknown",
    "tools": "the agent's tool calls were not intercepted: no mock reached them, and none was seen",
}
"""The note on a result whose agent made calls that Greenroom could not observe."""
_NOT_RECORDED: Mapping[Unseen, str] = {
    "args": "the arguments of calls",
    "results": "what tools returned",
    "words": "what the agent said",
    "user": "what the user said",
    "state": "the state",
    "nodes": "which part of the agent was active",
    "times": "when anything happened",
}
REPLAYED = "replayed"
"""The first words of the note on a result that depends on recorded answers."""
_NOTHING_SPENT = questions.Spending(Usage(), 0.0, {})


def concluded(
    case: Case,
    ledger: Ledger,
    scores: Mapping[str, Outcome],
    *,
    error: Problem | None = None,
    judging: Ledger | None = None,
    keep_ledger: bool = True,
) -> CaseResult:
    """The verdict on a finished trial.

    `error` is what kept the metrics from measuring it, `judging` the ledger of what they asked models.
    """
    index, first, end = ledger.indexes["agent"], ledger.first, ledger.last
    recorded_at = first.recorded_at if isinstance(first, RunStarted) else None
    reason = end.reason if isinstance(end, RunEnded) else None
    # What broke the trial comes first: nothing else follows from it.
    broke = breakage(ledger) if reason == "error" else None
    status, error = _verdict(reason, broke or error, scores)
    unseen = questions.unseen(ledger)
    notes = _not_seen(unseen) if unseen else []
    if recorded_at is not None:
        notes.append(_replayed(recorded_at, ledger, judging))
    nodes = questions.spending_by_node(ledger)
    # Where one node asked for everything, its spending is the whole.
    agent = next(iter(nodes.values())) if len(nodes) == 1 else questions.spending(ledger)
    user = judges = _NOTHING_SPENT
    if "user" in ledger.indexes:
        notes += _simulated(ledger)
        user = questions.spending(ledger, "user")
    if judging:
        judges = questions.spending(judging)
    traces = questions.traces(ledger)
    made = CaseResult(
        case_id=case.id,
        name=case.name,
        tags=tuple(case.tags),
        status=status,
        scores={**scores},
        ended=reason,
        error=error,
        notes=tuple(notes),
        recorded_at=recorded_at,
        turns=len(index.rounds),
        seconds=questions.seconds(ledger),
        usage=agent.usage,
        cost=agent.cost,
        models={**agent.models},
        user_usage=user.usage,
        user_cost=user.cost,
        user_models={**user.models},
        judge_usage=judges.usage,
        judge_cost=judges.cost,
        judge_models={**judges.models},
        nodes=nodes,
        trace_id=traces[-1].trace_id if traces else "",
        trace_link=traces[-1].link if traces else "",
        asked=case,
        kept=ledger if keep_ledger else None,
    )
    if keep_ledger or status == "passed":
        return made
    # Without its ledger, a failure keeps the trajectory without the details.
    steps = tuple(trajectory(ledger, brief=True))
    return replace(made, steps=steps, blamed=blame(case, ledger, made.scores))


def _not_seen(unseen: Sequence[Unseen]) -> list[str]:
    """The notes on what was not recorded."""
    lacks = [what for name, what in _NOT_RECORDED.items() if name in unseen]
    said = [UNSEEN[name] for name in unseen if name in UNSEEN]
    return [*said, f"not recorded: {', '.join(lacks)}"] if lacks else said


def _replayed(recorded_at: float, *ledgers: Ledger | None) -> str:
    """The note on a result that depends on recorded answers."""
    replies = [r for ledger in ledgers if ledger for r in ledger.of(ModelReplied, voice=None)]
    live = sum(reply.is_live for reply in replies)
    on = strftime("%Y-%m-%d", gmtime(recorded_at))
    if not live:
        return f"{REPLAYED}: what models answered was recorded on {on}"
    return f"{REPLAYED} in part: {live} of {len(replies)} answers of models are live, the rest was recorded on {on}"


def _simulated(ledger: Ledger) -> list[str]:
    """A note for each model that answered for tools, naming the tools."""
    tools: dict[str, list[str]] = {}
    for tool, models in simulated_tools(ledger).items():
        for model in models:
            tools.setdefault(model, []).append(tool)
    return [f"{SIMULATED}{model}: {', '.join(sorted(names))}" for model, names in tools.items()]


def can_be_rejudged(result: CaseResult) -> bool:
    """Whether a verdict comes from metrics: there was no error, or only one in a metric."""
    return not result.broke and (result.error is None or result.error.type in ("", _UNMEASURED))


def rejudged(
    result: CaseResult, scores: Mapping[str, Outcome], replaced: Mapping[str, str]
) -> CaseResult:
    """The verdict with some outcomes replaced; `replaced` gives the reason for each."""
    status, error = _verdict(result.ended, None, scores)
    # A hook may decide differently the next time.
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
    """The verdict on a finished trial that could not be measured; its time and cost are still known."""
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
    """The verdict on a case that could not even start; `metrics` are those that would have measured it."""
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
    # Greenroom's own refusals already say where to look.
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
    """The problem of a trial that a metric could not measure, or in which no metric gave a score."""
    if not_measured := {n: o for n, o in scores.items() if isinstance(o, Unmeasured)}:
        whys = "; ".join(f"{name}: {outcome.why}" for name, outcome in not_measured.items())
        # A measurement spoiled by the simulated user is not the metric's failure.
        phases: list[Phase] = [o.phase for o in not_measured.values() if o.phase != "metric"]
        return Problem(phases[0] if phases else "metric", whys, _UNMEASURED)
    silent = [f"{n}: {o.why}" for n, o in scores.items() if isinstance(o, NotApplicable)]
    why = f" ({'; '.join(silent)})" if silent else ""
    return Problem("metric", f"nothing was evaluated{why}. Give the case metrics or expect=.")


def _verdict(
    reason: EndReason | None, error: Problem | None, scores: Mapping[str, Outcome]
) -> tuple[Status, Problem | None]:
    """The status of a trial, and what broke in it, if anything."""
    is_measured, is_met = False, True
    for outcome in scores.values():
        if isinstance(outcome, Score):
            is_measured, is_met = True, is_met and outcome.passed
        elif isinstance(outcome, Unmeasured):
            is_measured = False
            break
    if error is None and not is_measured:
        error = _problem(scores)
    # A trial that broke proves nothing; one stopped at a limit never passes, whatever it scored.
    if error is not None and (error.phase != "metric" or reason not in LIMITS):
        return "error", error
    if reason in LIMITS:
        return "terminated", error
    return "passed" if is_met else "failed", error
