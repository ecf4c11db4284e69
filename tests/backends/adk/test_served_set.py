"""Sets played in google-adk's own service, on our copy of the agent and by our rule of verdicts."""

import json
from pathlib import Path
from typing import Any

import pytest

from backends.adk.eval_environment import environment, run

pytestmark = pytest.mark.heavy

SCRIPT = Path(__file__).with_name("served_set.py")
MILD = [["weather", {"city": "Oslo"}, "mild", "mock"]]


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What came of every set; all are played in one go, as the service takes seconds to open."""
    return json.loads(run(str(environment()), str(SCRIPT)).splitlines()[-1])


def test_a_set_is_played_by_their_service_and_answered_by_our_mocks(answers: dict[str, Any]):
    found = answers["passed"]
    assert (found["status"], found["turns"], found["calls"]) == ("passed", 2, MILD), found
    assert found["said"] == ["mild in Oslo", "welcome"]


def test_their_metrics_judge_beside_the_cases_own(answers: dict[str, Any]):
    assert answers["passed"]["scores"] == {
        "called('weather')": [1.0, True],
        "tool_trajectory_avg_score": [1.0, True],
        "response_match_score": [1.0, True],
    }
    assert answers["failed"]["status"] == "failed"
    assert answers["failed"]["scores"]["tool_trajectory_avg_score"] == [0.0, False]


def test_what_they_have_no_field_for_is_measured_beside_what_they_judge(answers: dict[str, Any]):
    found = answers["expecting_more"]
    assert found["status"] == "failed", found
    assert found["scores"] == {
        "expected_response": [1.0, True],
        "expected_contains": [0.0, False],
        "expected_state": [0.0, False],
        "tool_trajectory_avg_score": [1.0, True],
        "response_match_score": [1.0, True],
    }


def test_a_query_is_none_for_them_to_compare(answers: dict[str, Any]):
    judged, ours = answers["unwritten"]
    unmeasured = {"tool_trajectory_avg_score": "Unmeasured"}
    assert (judged["status"], judged["scores"], judged["calls"]) == ("error", unmeasured, [])
    assert "BadInput: case 'one' expects" in judged["error"]
    assert ours["scores"] == {"expected_tools": [1.0, True], "safe_to_ignore": "Unmeasured"}


def test_a_case_whose_metric_is_named_like_a_criterion_is_not_played(answers: dict[str, Any]):
    named, other = answers["clashing"]
    assert (named["status"], named["turns"]) == ("error", 0)
    assert "'response_match_score' is both a metric and a criterion" in named["error"]
    assert other["status"] == "passed"


def test_what_they_only_count_is_told_and_decides_nothing(answers: dict[str, Any]):
    assert "google-adk counted tool_call_count_v1 = 0.5" in answers["passed"]["notes"]
    assert "tool_call_count_v1" not in answers["passed"]["scores"]


def test_a_tool_without_a_mock_ends_the_case(answers: dict[str, Any]):
    found = answers["unmocked"]
    assert (found["status"], found["calls"]) == ("error", [])
    assert found["error"].startswith("ToolRefused: tool 'weather' was called in case 'one'")


@pytest.mark.parametrize(
    "name,metric,why",
    [
        ("broken_metric", "unheard_of", "not found in registry"),
        ("judge_without_a_line", "final_response_match_v2", "google-adk did not evaluate it"),
    ],
)
def test_a_metric_that_could_not_run_is_no_pass(
    answers: dict[str, Any], name: str, metric: str, why: str
):
    found = answers[name]
    others = [one for one in found["scores"] if one != metric]
    assert {tuple(found["scores"][one]) for one in others} == {(1.0, True)}
    assert (found["status"], found["scores"][metric]) == ("error", "Unmeasured")
    assert why in found["error"]


def test_an_agent_that_breaks_is_the_agents_error(answers: dict[str, Any]):
    found = answers["broken_agent"]
    assert (found["status"], set(found["scores"].values())) == ("error", {"Unmeasured"})
    assert found["error"].startswith("AgentFailed: google-adk could not run the agent")


def test_a_pause_is_answered_by_the_cases_user(answers: dict[str, Any]):
    assert (answers["approved"]["status"], answers["approved"]["calls"]) == ("passed", MILD)
    found = answers["questioned"]
    assert found["calls"] == [["ask_boss", {"question": "?"}, "yes", "user"]], found
    assert (found["status"], found["seen"]) == ("passed", [None, "in"])


def test_a_user_who_says_more_than_was_expected_leaves_nothing_to_compare_with(
    answers: dict[str, Any],
):
    found = answers["improvised"]
    assert (found["turns"], found["said"]) == (2, ["mild in Oslo", "welcome"])
    assert (found["status"], found["scores"]) == (
        "error",
        {"expected_reference": [1.0, True], "tool_trajectory_avg_score": "Unmeasured"},
    )


def test_their_metrics_reach_nobody_but_the_hosts_that_were_named(answers: dict[str, Any]):
    (score, error, reached), named = answers["phoning"]
    assert (score, reached) == ("Unmeasured", 0)
    assert "phones: a metric tried to reach the outside: " in error
    assert "127.0.0.1" in error
    assert "judge_hosts=" in error
    assert named == [[1.0, True], "", 1]


def test_a_metric_that_swallows_its_refusal_measured_nothing(answers: dict[str, Any]):
    phoned, paid, order = answers["acting_anyway"]
    assert phoned["status"] == paid["status"] == "error"
    assert phoned["scores"]["phones_anyway"] == paid["scores"]["pays_anyway"] == "Unmeasured"
    assert "a metric tried to reach the outside" in phoned["error"]
    assert "a metric called the tool 'pay'" in paid["error"]
    assert order is None


def test_a_metric_that_blocks_is_cut(answers: dict[str, Any]):
    found = answers["blocking"]
    assert (found["status"], found["scores"]["blocks"]) == ("error", "Unmeasured")
    assert "the metrics were not done within 0.4 s" in found["error"]


def test_state_goes_in_and_comes_out(answers: dict[str, Any]):
    assert answers["state"]["state"] == {
        "session": {"a": 1, "seen": [1, 2, 3]},
        "user": {"b": 2},
    }, "what is temporary ends with its turn"


def test_the_apps_own_plugins_run(answers: dict[str, Any]):
    assert (answers["plugged"]["status"], answers["plugged"]["seen"]) == ("passed", ["weather"])


def test_cases_played_at_the_same_time_have_their_own_mocks(answers: dict[str, Any]):
    assert answers["many"] == [
        [f"case {n}" if trial == 1 else f"case {n} (trial 2)", "passed", [str(n)]]
        for n in range(6)
        for trial in (1, 2)
    ]


def test_no_way_around_the_gate_leads_anywhere(answers: dict[str, Any]):
    found: dict[str, Any] = answers["bypasses"]
    assert len(found) > 15
    assert {name: one for name, one in found.items() if one != ["error", []]} == {}


def test_an_agent_that_cannot_be_held_is_refused_before_it_runs(answers: dict[str, Any]):
    assert ["UnsafeLocalCodeExecutor" in one for one in answers["forbidden_agents"]] == [True, True]
