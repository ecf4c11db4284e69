"""Several trials of a case: what differed, which of them fell short alike, and where two of them part."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from greenroom import Agent, Case, Expect, Report, Score, Unmeasured, call, rehearse, tool
from greenroom.metrics import called
from greenroom.models import ModelReply
from greenroom.results import CaseResult, Problem, Status
from greenroom.results.comparisons.families import families, family, shown_names
from greenroom.results.trials import alike, parting, passes, status_of, varied, varied_calls


@tool
def refund(order: int) -> str:
    """Refund an order."""
    raise AssertionError("a real refund")


class Moody:
    """Calls the tool in the first `good` answers, and talks after that."""

    name = "moody"

    def __init__(self, *moods: bool) -> None:
        self.moods = list(moods)

    async def respond(self, request, on_delta=None):
        if request.messages[-1].role == "tool":
            return ModelReply("Done.")
        if self.moods.pop(0):
            return ModelReply(calls=(call("refund", order=7),))
        return ModelReply("Which order?")


CASE = Case(
    "refund",
    says="Money back!",
    mocks={"refund": "ok"},
    expect=Expect(tools=[call("refund", order=7)]),
)


def trials(*moods: bool) -> list[CaseResult]:
    agent = Agent("clerk", model=Moody(*moods), tools=[refund])
    report = rehearse(agent, CASE, trials=len(moods), concurrency=1, store=False)
    return list(report.results)


def result(status: Status = "passed", trial: int = 1, **facts) -> CaseResult:
    return CaseResult(case_id="a", status=status, trial=trial, ended="completed", **facts)


def test_a_passing_and_a_failing_trial_part_at_the_first_event_that_differs():
    found = parting(trials(True, False, True))
    assert found is not None
    assert (found.passed, found.failed) == (1, 2)
    assert found.first is not None
    assert "model_replied" in found.first.says
    assert "'Which order?' in trial 2" in str(found)
    assert f"they part at event {found.first.one}" in str(found)


def test_trials_that_all_passed_or_all_failed_do_not_part():
    assert parting(trials(True, True)) is None
    assert parting(trials(False, False)) is None


def test_of_several_pairs_the_two_with_most_in_common_are_shown():
    @tool
    def look(order: int) -> str:
        """Look an order up."""
        return "real"

    class Wandering:
        name = "wandering"
        ways = ("look look refund", "refund", "look look nothing")

        def __init__(self):
            self.left = [way.split() for way in self.ways]
            self.now: Sequence[str] = ()

        async def respond(self, request, on_delta=None):
            if request.messages[-1].role == "user":
                self.now = self.left.pop(0)
            step, self.now = (self.now[0], self.now[1:]) if self.now else ("nothing", ())
            if step == "nothing":
                return ModelReply("Done.")
            return ModelReply(calls=(call(step, order=7),))

    mocks = {"refund": "ok", "look": "it is there"}
    case = Case("refund", says="Money back!", mocks=mocks, metrics=[called("refund")])
    agent = Agent("clerk", model=Wandering(), tools=[refund, look])
    found = parting(rehearse(agent, case, trials=3, concurrency=1, store=False).results)
    assert found is not None
    assert (found.passed, found.failed) == (1, 3)


def test_trials_in_which_the_same_happened_part_in_a_metric_and_not_in_the_agent():
    scores = iter([1.0, 0.0])

    def wavering(response: str) -> float:
        return next(scores)

    agent = Agent("clerk", model=Moody(False, False), tools=[refund])
    case = Case("a", says="Money back!", metrics=[wavering])
    found = parting(rehearse(agent, case, trials=2, concurrency=1, store=False).results)
    assert found is not None
    assert found.first is None
    assert "a metric measured differently" in str(found)


def test_trials_without_ledgers_are_not_compared():
    agent = Agent("clerk", model=Moody(True, False), tools=[refund])
    report = rehearse(agent, CASE, trials=2, concurrency=1, store=False, keep_ledgers=False)
    assert status_of(report.results) == "flaky"
    assert parting(report.results) is None
    assert varied_calls(report.results) == ""


def test_what_differed_is_said_by_metric_turns_end_and_tools():
    found = trials(True, False, True)
    assert varied(found) == ["expected_tools 2 of 3"]
    assert varied_calls(found) == "tools refund (2), none (1)"
    graded = [
        result(scores={"tone": Score(0.6)}, turns=1),
        result(scores={"tone": Score(0.9)}, turns=3),
        replace(result("terminated", scores={"tone": Score(0.9)}, turns=3), ended="max_turns"),
    ]
    assert varied(graded) == [
        "tone 0.60 to 0.90",
        "1 to 3 turns",
        "ended by completed (2), max_turns (1)",
    ]


def test_what_is_the_same_in_all_trials_is_no_difference():
    assert varied([result(scores={"tone": Score(0.6)}, turns=2)] * 3) == []
    assert varied([]) == []


@pytest.mark.parametrize(
    "statuses, status, words",
    [
        (["passed", "passed"], "passed", "2 of 2"),
        (["passed", "failed"], "flaky", "1 of 2"),
        (["passed", "terminated", "error"], "flaky", "1 of 2, 1 error"),
        (["passed", "error"], "error", "1 of 1, 1 error"),
        (["failed", "terminated"], "failed", "0 of 2"),
        (["error", "error"], "error", "2 error"),
        (["skipped", "skipped"], "skipped", "2 skipped"),
    ],
)
def test_a_case_is_flaky_if_some_trials_pass_and_others_do_not(statuses, status, words):
    found = [result(one, n) for n, one in enumerate(statuses, start=1)]
    assert status_of(found) == status
    assert passes(found) == words


def test_trials_fall_short_alike_if_the_same_metrics_did_and_the_same_broke():
    low, good = {"tone": Score(0.1), "length": Score(1)}, {"tone": Score(1), "length": Score(0.1)}
    broke = Problem("agent", "it fell over", "AgentFailed")
    found = [
        result("failed", 1, scores=low),
        result("failed", 2, scores=good),
        result("failed", 3, scores={**low, "tone": Score(0.3, reason="another reason")}),
        result("error", 4, error=broke),
        result("error", 5, error=broke),
        result(
            "error", 6, error=Problem("metric", "?", "Unmeasured"), scores={"x": Unmeasured("?")}
        ),
    ]
    groups = [[one.trial for one in group] for group in alike(found)]
    assert groups == [[1, 3], [2], [4, 5], [6]]


def test_a_printed_report_has_one_line_a_case():
    lines = str(Report(trials(True, False, True))).splitlines()
    assert lines[0].split() == ["flaky", "refund", "2", "of", "3", "expected_tools", "2", "of", "3"]
    assert lines[1].strip().startswith("trial 2: expected_tools: ")
    assert lines[2].startswith("3 trials of 1 case")


# Metrics without their arguments


@pytest.mark.parametrize(
    "name, short",
    [
        ("called('refund')", "called"),
        ("called('refund', {'a': (1, 2)}, at_least=…", "called"),
        ("contains('a)\n(b')", "contains"),
        ("tone", "tone"),
        ("my metric (v2)", "my metric (v2)"),
        ("(odd)", "(odd)"),
        ("2nd(try)", "2nd(try)"),
        ("", ""),
    ],
)
def test_the_family_of_a_metric_is_its_name_without_arguments(name, short):
    assert family(name) == short


def test_metrics_of_one_family_are_counted_together():
    report = Report(
        [
            result(scores={"called('a')": Score(1), "called('b')": Score(0), "tone": Score(0.5)}),
            result(scores={"called('a')": Score(1), "called('b')": Unmeasured("?")}),
        ]
    )
    found = families(report.metrics)
    assert list(found) == ["called", "tone"]
    whole = found["called"].whole
    assert (whole.passed, whole.failed, whole.unmeasured) == (2, 1, 1)
    assert whole.mean == pytest.approx(2 / 3)
    assert (whole.min, whole.max) == (0.0, 1.0)
    assert [member.name for member in found["called"].members] == ["called('a')", "called('b')"]


def test_a_family_that_measured_nothing_has_no_mean():
    report = Report([result(scores={"f(1)": Unmeasured("?"), "f(2)": Unmeasured("?")})])
    assert families(report.metrics)["f"].whole.mean is None


def test_a_metric_is_called_by_its_name_without_arguments_unless_another_is_too() -> None:
    names = ["called('refund')", "contains('a')", "contains('b')", "own"]
    assert [*shown_names(names).values()] == ["called", "contains('a')", "contains('b')", "own"]
