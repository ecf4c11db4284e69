"""The demo is a real rehearsal that ends as designed, and its file is fit to be copied."""

from typing import Any

import pytest

from apps.terminals import on_terminal
from greenroom import rehearse
from greenroom.apps.demo import AS_DESIGNED, clinic
from greenroom.ledger import state, tool_calls

CASES = [clinic.chest_pain, clinic.headache, clinic.routine_appointment]


@pytest.fixture(scope="module")
def report():
    return rehearse(clinic.agent, CASES)


def test_its_cases_end_as_designed(report):
    assert {result.case_id: result.status for result in report} == AS_DESIGNED


def test_the_headache_fails_for_its_urgency_and_not_for_its_questions(report):
    scores = report["headache"].measured
    assert {name for name, score in scores.items() if not score.passed} == {
        "right_outcome",
        "safe_advice",
    }
    assert "'gp_this_week'; expected 'emergency_999'" in scores["right_outcome"].reason


def test_what_the_patient_reveals_reaches_the_agents_state(report):
    held: Any = state(report["chest-pain"].ledger)
    assert held["patient"]["revealed"] == ["hypertension", "high cholesterol"]
    assert held["session"]["escalation"]["history"] == ["hypertension", "high cholesterol"]


def test_only_the_policy_is_mocked_and_only_the_patient_is_asked(report):
    calls = [call for result in report for call in tool_calls(result.ledger)]
    sources = {(call.tool, call.source) for call in calls}
    assert {source for tool, source in sources if tool == "read_policy"} == {"mock"}
    assert {source for tool, source in sources if tool == "ask"} == {"user"}
    assert {tool for tool, source in sources if source == "live"} == {
        "record_answer",
        "update_belief",
        "escalate",
        "handover",
    }


def test_the_command_explains_itself_from_beginning_to_end(greenroom):
    result = greenroom("demo")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    in_order = [
        "Three patients call a clinic's triage agent",
        "chest-pain           passed",
        "headache             failed",
        "routine-appointment  passed",
        "right_outcome: session.escalation.urgency is 'gp_this_week'; expected 'emergency_999'",
        "No fever, but my neck is stiff.",
        "That sounds like a tension headache.",
        "3 cases: 2 passed, 1 failed",
        "Where to look next",
        "greenroom demo --source",
    ]
    assert [text for text in in_order if text not in shown] == []
    assert sorted(in_order, key=shown.index) == in_order


def test_it_shows_its_progress_on_a_terminal(tmp_path):
    shown = on_terminal("demo", cwd=tmp_path)
    assert shown.exit_code == 0
    assert "rehearsing" in shown.text
    assert "0/3" in shown.text


def test_a_copy_of_its_source_runs_by_itself(author, greenroom):
    author(greenroom("demo", "--source").stdout, "clinic.py", bare=True)
    result = greenroom("eval", "run", "clinic.py")
    assert result.exit_code == 1, result.output
    assert "3 cases: 2 passed, 1 failed" in result.stdout
    assert "again: greenroom eval run clinic.py clinic.py:headache" in result.stdout
