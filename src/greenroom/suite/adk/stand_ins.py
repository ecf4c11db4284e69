"""Replacements for parts of google-adk's evaluation: set, user, registry, verdict."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import EvalCase, SessionInput
from google.adk.evaluation.eval_case import Invocation as Exchange
from google.adk.evaluation.eval_metrics import (
    BaseCriterion,
    EvalMetric,
    EvalMetricResult,
    EvalStatus,
)
from google.adk.evaluation.eval_set import EvalSet as TheirSet
from google.adk.evaluation.simulation.user_simulator import NextUserMessage, Status
from google.adk.events import Event

from greenroom.backends.adk.served import APP, SESSION, USER, Prompter
from greenroom.cases.case import Case
from greenroom.cases.files.adk_turns import turn_data
from greenroom.cases.literals import has_operators, unquoted
from greenroom.cases.parts import Metric
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import as_object, plain
from greenroom.metrics.expectations import expectations
from greenroom.metrics.scores import metrics_for

SET = "greenroom"
CLASH = "is both a metric and a criterion of google-adk; give the metric another `name=`."

# Which of their criteria compare a run with which field of `Expect`.
_TRAJECTORY = "tool_trajectory_avg_score"
_JUDGES = {
    _TRAJECTORY: "tools",
    "response_match_score": "reference",
    "final_response_match_v2": "reference",
}


@dataclass(slots=True)
class OneCase:
    """Replaces google-adk's store of sets: one set with one case."""

    case: EvalCase

    def get_eval_set(self, **_: object) -> TheirSet:
        """The set with the case."""
        return TheirSet(eval_set_id=SET, eval_cases=[self.case])

    def get_eval_case(self, **_: object) -> EvalCase:
        """The case."""
        return self.case

    def fit(self, turns: int, case: Case) -> None:
        """Mark the case as improvised if the user said more or less than its script."""
        if turns != len(self.case.conversation or ()):
            said = case.script[0].says if case.script else ""
            scenario = ConversationScenario(starting_prompt=said, conversation_plan="")
            self.case = EvalCase(
                eval_id=self.case.eval_id,
                conversation_scenario=scenario,
                session_input=self.case.session_input,
            )


def their_case(case: Case) -> EvalCase:
    """The case as google-adk's; what the user says comes from us, what is expected from here."""
    session = {"app_name": APP, "user_id": USER, "session_id": SESSION}
    known = {name: value for name, value in session.items() if name in SessionInput.model_fields}
    return EvalCase(
        eval_id=case.id,
        conversation=[Exchange.model_validate(turn_data(turn)) for turn in case.script],
        session_input=SessionInput.model_validate(known),  # older versions have no session_id
    )


def check_judged(case: Case, criteria: Mapping[str, object]) -> None:
    """Refuse a case whose argument queries these criteria would compare literally."""
    if not _compares_arguments(criteria.get(_TRAJECTORY)):
        return
    for turn in case.script:
        for wanted in (turn.expect and turn.expect.tools) or ():
            if isinstance(wanted, str) or _asks(wanted):
                raise BadInput(
                    f"case {case.id!r} expects {wanted!r}, but google-adk compares calls argument by "
                    f"argument. Write the arguments out, or leave {_TRAJECTORY} out of the "
                    f"criteria: then `expected_tools` judges the calls."
                )


def _compares_arguments(criterion: object) -> bool:
    if isinstance(criterion, BaseCriterion):
        options = criterion.model_dump(by_alias=True)
        return not (options.get("ignoreArgs") or options.get("ignore_args"))
    return criterion is not None


def ours_beside(case: Case, given: Collection[Metric], criteria: Collection[str]) -> list[Metric]:
    """The metrics for a case: those asked for, and those for expectations that no criterion judges."""
    implied, judged = expectations(case), {_JUDGES[name] for name in criteria if name in _JUDGES}
    found = metrics_for(case, given)
    for name in found.keys() & set(criteria):
        raise BadInput(f"case {case.id!r}: {name!r} {CLASH}")
    return [
        metric
        for name, metric in found.items()
        if implied.get(name) is not metric or judged.isdisjoint(getattr(metric, "covers", ()))
    ]


def _asks(wanted: ToolCall) -> bool:
    """Whether an argument is a query; a quoted one is meant literally."""
    args = as_object(plain(wanted.args))
    return any(
        has_operators(args[key]) for key, value in unquoted(args).items() if value == args[key]
    )


@dataclass(frozen=True, slots=True)
class OurUser:
    """Replaces google-adk's choice of a simulated user: ours says what the case's user says."""

    prompter: Prompter

    def provide(self, _: EvalCase) -> "OurUser":
        """The one user there is."""
        return self

    async def get_next_user_message(self, events: list[Event]) -> NextUserMessage:
        """The user's next line, as a message of google-adk."""
        line = await self.prompter.next_line(events)
        if line is None:
            return NextUserMessage(status=Status.NO_MESSAGE_GENERATED)
        return NextUserMessage(status=Status.SUCCESS, user_message=line)


@dataclass(slots=True)
class Listener:
    """google-adk's registry, which remembers why a metric could not run: the service forgets it."""

    registry: Any
    heard: dict[str, str] = field(default_factory=dict[str, str])

    def get_evaluator(self, eval_metric: EvalMetric) -> object:
        """The metric's evaluator, wrapped so that its exceptions are remembered."""
        try:
            return _Heard(self, eval_metric.metric_name, self.registry.get_evaluator(eval_metric))
        except Exception as error:
            self.heard[eval_metric.metric_name] = f"{type(error).__name__}: {error}"
            raise


@dataclass(frozen=True, slots=True)
class _Heard:
    listener: Listener
    name: str
    evaluator: Any

    async def evaluate_invocations(self, **given: object) -> object:
        """The evaluator's result; an exception is remembered and raised again."""
        try:
            result = self.evaluator.evaluate_invocations(**given)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            self.listener.heard[self.name] = f"{type(error).__name__}: {error}"
            raise


def outcome_of(one: EvalMetricResult, heard: str) -> Outcome:
    """A result of theirs by our rule: without a number there is no verdict."""
    scores = (one.details.rubric_scores if one.details else None) or []
    why = "; ".join(score.rationale for score in scores if score.rationale)
    if one.eval_status is EvalStatus.NOT_EVALUATED or one.score is None:
        return Unmeasured(heard or why or "google-adk did not evaluate it, and gives no reason")
    if not isfinite(one.score):
        return Unmeasured(
            heard or why or f"google-adk gives it {one.score!r}, which is not a measure"
        )
    bar = one.criterion.threshold if one.criterion is not None else one.threshold
    passed = one.eval_status is EvalStatus.PASSED
    in_range = 0 <= one.score <= 1
    return Score(
        one.score if in_range else float(passed),
        passed,
        threshold=bar if in_range else None,
        reason=why,
        measured=one.score,
    )
