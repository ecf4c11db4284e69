"""The runner: rehearsals one call at a time, and results by the names its users know."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Scripted,
    SimulatedUser,
    call,
    metric,
    step,
    tool,
)
from greenroom.apps.pytest_plugin import EvalRunner, load_test_file
from greenroom.errors import BadFile, GreenroomError
from greenroom.ledger import Ledger
from nested_pytest import ASYNCIO, few_plugins


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    raise RuntimeError("never reached in a rehearsal")


def weather() -> Agent:
    model = Scripted(call("get_weather", city="Tokyo"), "It is sunny in Tokyo.")
    return Agent("weather", model=model, tools=[get_weather])


@pytest.fixture
def eval_runner() -> EvalRunner:
    return EvalRunner(agent=weather(), mocks={"get_weather": "sunny"})


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    data = [
        {"name": "tokyo", "query": "Tokyo?", "expected_tool_calls": ["get_weather"]},
        {"name": "none", "query": "Hello", "expected_tool_calls": []},
    ]
    path = tmp_path / "weather.test.json"
    path.write_text(json.dumps({"name": "weather_tests", "data": data}))
    return path


def test_a_file_is_run_case_by_case(eval_runner: EvalRunner, test_file: Path) -> None:
    results = eval_runner.run(load_test_file(test_file))
    assert [(r.name, r.passed, r.trajectory_score) for r in results] == [
        ("tokyo", True, 1.0),
        ("none", False, 0.0),
    ]


def test_a_file_may_parametrize_a_test(test_file: Path) -> None:
    assert [case.id for case in load_test_file(test_file)] == ["tokyo", "none"]


def test_a_single_question_is_judged_by_what_is_expected_of_it(eval_runner: EvalRunner) -> None:
    result = eval_runner.run_single("Tokyo?", expected_tools=["get_weather"])
    assert result.passed, result
    assert "Tokyo" in result.response
    assert (result.trajectory_score, result.score, result.scores) == (
        1.0,
        1.0,
        {"expected_tools": 1.0},
    )


def test_the_guides_words_may_be_given_by_name(eval_runner: EvalRunner) -> None:
    result = eval_runner.run_single(query="Tokyo?", expected_tools=["get_news"])
    assert (result.passed, result.status, result.trajectory_score) == (False, "failed", 0.0)
    assert "missing get_news" in str(result)
    assert repr(result) == "<EvalResult of 'single': failed>"


def test_a_case_may_be_run_alone(eval_runner: EvalRunner) -> None:
    case = Case("c", "Tokyo?", expect=Expect(contains="sunny"), name="Says it is sunny")
    assert eval_runner.run_single(case).name == "Says it is sunny"


def test_a_tool_without_a_mock_does_not_run(test_file: Path) -> None:
    result = EvalRunner(weather()).run_single("Tokyo?", expected_tools=["get_weather"])
    assert (result.passed, result.status) == (False, "error")
    assert "'get_weather' was called" in str(result)


def test_a_score_that_nobody_measured_is_no_number(eval_runner: EvalRunner) -> None:
    result = eval_runner.run_single("Tokyo?")
    assert (result.passed, result.status) == (False, "error")
    with pytest.raises(GreenroomError, match="has no score"):
        _ = result.score
    result = eval_runner.run_single("Tokyo?", contains="sunny")
    with pytest.raises(GreenroomError, match="has no trajectory score"):
        _ = result.trajectory_score


def down() -> Agent:
    model = Scripted(then=ConnectionError("no route to the provider"))
    return Agent("weather", model=model, tools=[get_weather])


SILENT = SimulatedUser("Terse", model=Scripted(then=ValueError("the line is dead")))


@pytest.mark.parametrize(
    "runner, case, why",
    [
        (EvalRunner(down()), Case("a", "Tokyo?"), "no route to the provider"),
        (EvalRunner(weather()), Case("a", "Tokyo?"), "'get_weather' was called"),
        (
            EvalRunner(weather(), mocks={"get_weather": "sunny"}),
            Case("a", "Tokyo?", user=SILENT),
            "the line is dead",
        ),
        (EvalRunner(weather()), Case("a", "Tokyo?", user=object()), "has the user <object"),
    ],
    ids=["agent", "system", "user_agent", "not played"],
)
def test_a_trial_that_broke_has_no_score_and_says_why(
    runner: EvalRunner, case: Case, why: str
) -> None:
    result = runner.run_single(replace(case, expect=Expect(tools=[])))
    assert (result.passed, result.status) == (False, "error"), result
    assert (result.trajectory_score, result.score, result.scores) == (None, None, {})
    assert why in repr(result)


def test_a_test_that_asserts_on_a_broken_trial_shows_what_broke(pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(
        """
        from greenroom import Agent, Scripted
        from greenroom.apps.pytest_plugin import EvalRunner

        def ask():
            model = Scripted(then=ConnectionError("no route to the provider"))
            return EvalRunner(Agent("a", model=model)).run_single("Hi", expected_tools=[])

        def test_passed():
            assert ask().passed

        def test_equal():
            assert ask().trajectory_score == 1.0

        def test_greater():
            assert ask().trajectory_score >= 0.8

        def test_mean():
            assert ask().score > 0.5
        """
    )
    with few_plugins():
        result = pytester.runpytest("-q", "--tb=short", "-p", ASYNCIO)
    result.assert_outcomes(failed=4)
    assert result.stdout.str().count("agent: ") >= 4
    result.stdout.fnmatch_lines(["*assert None == 1.0*", "*where None = <EvalResult of 'single'*"])
    told = result.stdout.str().split("short test summary")[0]
    parts = told.split("____ test_")[1:]
    assert len(parts) == 4
    assert all("no route to the provider" in part for part in parts)


class ToneEvaluator:
    def evaluate(self, response: str, context: dict[str, object]) -> float:
        return 0.0 if "sorry" in response else 1.0


class EfficiencyEvaluator:
    def evaluate(self, trajectory: list[object], expected: list[object]) -> float:
        return 1.0 if len(trajectory) <= len(expected) else 0.0


def test_evaluators_of_ones_own_judge_too() -> None:
    runner = EvalRunner(
        agent=weather(),
        evaluators=[ToneEvaluator(), EfficiencyEvaluator()],
        mocks={"get_weather": "sunny"},
    )
    result = runner.run_single("Tokyo?", expected_tools=["get_weather"])
    assert result.scores == {
        "expected_tools": 1.0,
        "ToneEvaluator": 1.0,
        "EfficiencyEvaluator": 1.0,
    }


def test_a_simulated_user_talks_to_the_agent() -> None:
    agent = step(lambda ctx: f"You said {ctx.input}", name="echo")
    simulator = SimulatedUser("Impatient", goal="Book a flight to Hawaii")
    runner = EvalRunner(
        agent, [ToneEvaluator()], user_model=Scripted("Book it!", "Now!", "</finished>")
    )
    result = runner.run_simulated(simulator, max_turns=10)
    assert result.passed, result
    assert result.responses == ["You said Hello.", "You said Book it!", "You said Now!"]


def test_a_simulated_conversation_has_its_limit() -> None:
    agent = step(lambda: "Hm.", name="hm")
    user = SimulatedUser(model=Scripted("A", "B", "C"))
    result = EvalRunner(None, [ToneEvaluator()]).run_simulated(
        agent=agent, simulator=user, max_turns=2
    )
    assert (result.status, result.passed, len(result.responses)) == ("terminated", False, 2)


def test_what_is_no_test_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"criteria": {}}')
    with pytest.raises(BadFile, match="is a config"):
        load_test_file(tmp_path / "config.json")


def test_where_the_fence_refused_one_metric_the_others_stand(eval_runner: EvalRunner) -> None:
    def connecting(ledger: Ledger) -> bool:
        socket.create_connection(("127.0.0.1", 9))
        return True

    case = Case("c", "Tokyo?", expect=Expect(tools=["get_weather"]), metrics=[metric(connecting)])
    result = eval_runner.run_single(case)
    assert (result.passed, result.status) == (False, "error")
    assert (result.trajectory_score, result.score) == (1.0, None)
    assert "connecting" not in result.scores
    assert "tried to reach the outside" in str(result)


COUNTED = """
from greenroom import Agent, Case, Scripted, rehearse
from greenroom.apps.pytest_plugin import EvalRunner

def echo(name="echo"):
    return Agent(name, model=Scripted(then=lambda request: request.last))

class Alpha:
    def evaluate(self, response: str) -> float:
        return float("alpha" in response)

class Beta(Alpha):
    pass
"""


@pytest.mark.parametrize(
    "body, counted",
    [
        ("for q in ('alpha', 'beta'): EvalRunner(echo(), [Alpha()]).run_single(q)", "2 cases"),
        ("for q in ('alpha', 'alpha'): EvalRunner(echo(), [Alpha()]).run_single(q)", "2 trials of 1"),
        ("for a in ('one', 'two'): EvalRunner(echo(a), [Alpha()]).run_single('alpha')", "2 cases"),
        ("for m in (Alpha(), Beta()): EvalRunner(echo(), [m]).run_single('alpha')", "2 cases"),
        ("for q in ('alpha', 'beta', 'alpha'): EvalRunner(echo(), [Alpha()], trials=2).run(Case('c', q))",
         "6 trials of 2"),
    ],
)  # fmt: skip
def test_the_summary_counts_what_differs_as_different_cases(pytester, body, counted) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(f"{COUNTED}\ndef test_it():\n    {body}\n")
    with few_plugins():
        shown = pytester.runpytest("-p", ASYNCIO).stdout.str()
    assert f"tests: {counted}" in shown
    assert "flaky" not in shown
