"""`EvalRunner`: rehearsals one call at a time, for tests written in that style."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from greenroom.apps.pytest_plugin.attempts import remember
from greenroom.cases.case import Case, Expect, Stop
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.load import read_evalset
from greenroom.cases.parts import MetricLike
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.cases.users import SimulatedUser
from greenroom.errors import GreenroomError
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.redaction import without_secrets
from greenroom.reports.failure import failure_text
from greenroom.reports.words import printable
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.simulation.user.users import with_user_model
from greenroom.suite.evaluation import rehearse
from greenroom.suite.inputs.sources import as_evalset
from greenroom.suite.options import check

MAX_TURNS = 10
_TRAJECTORY = ("tool_trajectory_avg_score", "trajectory_match", "expected_tools")


def load_test_file(path: str | Path) -> EvalSet:
    """The cases of a file, to run or to parametrize a test with."""
    return read_evalset(path)


@dataclass(frozen=True, slots=True, repr=False)
class EvalResult:
    """One case's result by the names that tests in this style use. `str(result)` shows everything."""

    result: CaseResult

    @property
    def name(self) -> str:
        """The case's name, or its id."""
        return self.result.name or self.result.case_id

    @property
    def passed(self) -> bool:
        """Whether every metric that applied passed, and at least one did."""
        return self.result.passed

    @property
    def status(self) -> str:
        """passed, failed, error, terminated or skipped."""
        return self.result.status

    @property
    def response(self) -> str:
        """The agent's last words; "" if it said nothing."""
        return next((said for said in reversed(self.result.responses) if said), "")

    @property
    def responses(self) -> Sequence[str]:
        """The agent's last words in each turn."""
        return self.result.responses

    @property
    def scores(self) -> dict[str, float]:
        """The values of all metrics that could measure."""
        return {name: score.value for name, score in self.result.measured.items()}

    @property
    def score(self) -> float | None:
        """The mean of all metrics; None if something broke, so that one of them has no score.

        An error if no metric was asked.
        """
        outcomes = self.result.scores
        values = list(self.scores.values())
        if values and not any(isinstance(found, Unmeasured) for found in outcomes.values()):
            return sum(values) / len(values)
        return self._unmeasured("score", outcomes)

    @property
    def trajectory_score(self) -> float | None:
        """How far the tool calls were the expected ones; None if something broke before that was measured.

        An error if no metric was asked.
        """
        known = self.result.scores
        outcomes = {name: known[name] for name in _TRAJECTORY if name in known}
        for found in outcomes.values():
            if isinstance(found, Score):
                return found.value
        return self._unmeasured("trajectory score", outcomes)

    def _unmeasured(self, what: str, outcomes: Mapping[str, Outcome]) -> None:
        """None if something broke; asking for a number that no metric measures is a mistake in the test."""
        has_broken = any(isinstance(found, Unmeasured) for found in outcomes.values())
        if not self.result.broke and not has_broken:
            raise GreenroomError(f"case {self._case_id!r} has no {what}:\n{self}")

    def __str__(self) -> str:
        return failure_text(self.result)

    def __repr__(self) -> str:
        # Pytest shows this if an assertion fails, and a number that is None would give no reason.
        error = self.result.error
        why = "" if error is None else printable(f", {error.phase}: {error.headline}")
        return f"<EvalResult of {self._case_id!r}: {self.result.status}{why}>"

    @property
    def _case_id(self) -> str:
        return without_secrets(self.result.case_id)


class EvalRunner:
    """Rehearses one agent; `evaluators` are metrics, functions, or objects with an `evaluate(...)` method.

    Tools answer from the cases' mocks and from `mocks`; the real body of one runs only if it is
    named in `allow_tools`. `user_model` speaks for simulated users who have no model of their own. Other
    options are those of `evaluate`.
    """

    def __init__(
        self,
        agent: Any,
        evaluators: Iterable[MetricLike] = (),
        *,
        user_model: object = None,
        **options: object,
    ) -> None:
        given: Any = {"metrics": evaluators, **options}
        check(given)
        self.agent = agent
        self.evaluators = list(evaluators)
        self.user_model = user_model
        self.options = options

    def run(
        self, cases: EvalSet | Iterable[Case | EvalSet] | Case | str | Path
    ) -> list[EvalResult]:
        """A result for every trial of every case, in their order."""
        return [EvalResult(result) for result in self.report(cases)]

    def run_single(
        self,
        query: str | Case,
        expected_tools: Sequence[ToolCall | str] | None = None,
        *,
        contains: str | Sequence[str] | None = None,
        reference: str | None = None,
    ) -> EvalResult:
        """The result of one case, or of one question with what is expected of its answer."""
        if not isinstance(query, Case):
            expect = Expect(tools=expected_tools, contains=contains, reference=reference)
            query = Case("single", query, expect=expect)
        return self.run(query)[0]

    def run_simulated(
        self,
        simulator: SimulatedUser | object,
        max_turns: int = MAX_TURNS,
        *,
        agent: Any = None,
        query: str = "Hello.",
    ) -> EvalResult:
        """The result of a conversation that begins with `query` and is improvised from there on."""
        case = Case("simulated", query, user=simulator, stop=Stop(max_turns=max_turns), agent=agent)
        return self.run(case)[0]

    def report(self, cases: EvalSet | Iterable[Case | EvalSet] | Case | str | Path) -> Report:
        """The report on these cases."""
        evalset = as_evalset(cases)
        users = [with_user_model(case, self.user_model) for case in evalset]
        evalset = replace(evalset, cases=users)
        # Tests leave nothing behind, unless a store is among the options.
        options: Any = {"store": False, **self.options}
        report = rehearse(self.agent, evalset, metrics=self.evaluators, **options)
        remember(report)
        return report
