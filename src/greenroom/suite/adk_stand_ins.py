"""What stands in google-adk's evaluation where its own parts would: set, user, registry, verdict."""

import inspect
from dataclasses import dataclass, field
from typing import Any

from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import EvalCase, SessionInput
from google.adk.evaluation.eval_case import Invocation as Exchange
from google.adk.evaluation.eval_metrics import EvalMetric, EvalMetricResult, EvalStatus
from google.adk.evaluation.eval_set import EvalSet as TheirSet
from google.adk.evaluation.simulation.user_simulator import NextUserMessage, Status
from google.adk.events import Event

from greenroom.backends.adk.served import APP, SESSION, USER, Prompter
from greenroom.cases.case import Case
from greenroom.cases.files.adk import turn_data
from greenroom.cases.scores import Outcome, Score, Unmeasured

SET = "greenroom"


@dataclass(slots=True)
class OneCase:
    """Stands where google-adk keeps its sets: one set with one case."""

    case: EvalCase

    def get_eval_set(self, **_: Any) -> TheirSet:
        """The set with the case."""
        return TheirSet(eval_set_id=SET, eval_cases=[self.case])

    def get_eval_case(self, **_: Any) -> EvalCase:
        """The case."""
        return self.case

    def fit(self, turns: int, case: Case) -> None:
        """A user who said more or less than was written down makes the case an improvised one."""
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
    return EvalCase(
        eval_id=case.id,
        conversation=[Exchange.model_validate(turn_data(turn)) for turn in case.script],
        session_input=SessionInput(app_name=APP, user_id=USER, session_id=SESSION),
    )


@dataclass(frozen=True, slots=True)
class OurUser:
    """Stands where google-adk chooses a simulated user: ours says what the case's user says."""

    prompter: Prompter

    def provide(self, _: EvalCase) -> "OurUser":
        """The one user there is."""
        return self

    async def get_next_user_message(self, events: list[Event]) -> NextUserMessage:
        """The next line of ours, as a message of theirs."""
        line = await self.prompter.next_line(events)
        if line is None:
            return NextUserMessage(status=Status.NO_MESSAGE_GENERATED)
        return NextUserMessage(status=Status.SUCCESS, user_message=line)


@dataclass(slots=True)
class Listener:
    """google-adk's registry, which remembers why a metric could not run: the service forgets it."""

    registry: Any
    heard: dict[str, str] = field(default_factory=dict[str, str])

    def get_evaluator(self, eval_metric: EvalMetric) -> Any:
        """The metric's evaluator, listened to."""
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

    async def evaluate_invocations(self, **given: Any) -> Any:
        """What the evaluator says; an exception is remembered on its way."""
        try:
            result = self.evaluator.evaluate_invocations(**given)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            self.listener.heard[self.name] = f"{type(error).__name__}: {error}"
            raise


def outcome_of(one: EvalMetricResult, heard: str) -> Outcome:
    """A result of theirs by our rule: without a number there is no verdict."""
    scores = (one.details.rubric_scores if one.details else None) or []
    why = "; ".join(told.rationale for told in scores if told.rationale)
    if one.eval_status is EvalStatus.NOT_EVALUATED or one.score is None:
        return Unmeasured(heard or why or "google-adk did not evaluate it and does not say why")
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
