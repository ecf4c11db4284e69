"""Sets played in google-adk's own service, with sessions and files in services of the author's."""

import json
from pathlib import Path
from typing import Any

import pytest

from backends.adk.eval_environment import environment, run

pytestmark = pytest.mark.heavy

SCRIPT = Path(__file__).with_name("served_services.py")
TRIALS = [f"case-{n}-{trial}" for n in range(2) for trial in (1, 2)]


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What came of every set; all are played in one go, as the service takes seconds to open."""
    return json.loads(run(str(environment()), str(SCRIPT)).splitlines()[-1])


def verdicts(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Everything but the notes."""
    return [{name: one[name] for name in one if name != "notes"} for one in results]


def about_sessions(result: dict[str, Any]) -> list[str]:
    return [note for note in result["notes"] if note.startswith("session_service")]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "database"])
def test_every_trial_played_at_the_same_time_has_its_own_whole_session(
    answers: dict[str, Any], kind: str
):
    found: dict[str, Any] = answers["copied"][kind]
    by_trial = {name.rpartition("-")[0]: events for name, events in found["sessions"].items()}
    assert sorted(by_trial) == TRIALS
    for trial, events in by_trial.items():
        assert events == [
            ["user", "weather?"],
            ["clerk", ["weather", {"city": "Oslo"}]],
            ["clerk", {"result": trial.split("-")[1]}],
            ["clerk", "mild in Oslo"],
            ["user", "thanks"],
            ["clerk", "welcome"],
        ]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "database"])
def test_a_result_tells_where_its_session_is(answers: dict[str, Any], kind: str):
    found: dict[str, Any] = answers["copied"][kind]
    told = [about_sessions(result) for result in found["results"]]
    where = "of user 'greenroom' in app 'weather'"
    expected = [f"session_service has session {name!r} {where}" for name in found["sessions"]]
    assert sorted(told) == [[note] for note in sorted(expected)]


def test_services_change_no_verdict_whole_or_broken(answers: dict[str, Any]):
    bare = verdicts(answers["bare"])
    assert [one["status"] for one in bare] == ["passed"] * 4
    for kind in ("memory", "sqlite", "database"):
        assert verdicts(answers["copied"][kind]["results"]) == bare
    for kind in ("Broken", "Remote"):
        assert verdicts(answers["broken"][kind]) == bare


def test_without_a_service_nothing_is_told_of_one(answers: dict[str, Any]):
    assert [about_sessions(one) for one in answers["bare"]] == [[]] * 4


def test_a_service_that_breaks_is_told_on_every_result(answers: dict[str, Any]):
    for result in answers["broken"]["Broken"]:
        (note,) = about_sessions(result)
        assert "OSError('disk full'). Events copied: 1;" in note
    for result in answers["broken"]["Remote"]:
        refused, failed = about_sessions(result)
        assert "127.0.0.1:9" in refused
        assert "service_hosts=[...], or keep the sessions in a local SQLite file" in refused
        assert "Events copied: 0;" in failed


def test_the_session_of_an_app_is_under_its_own_name_and_has_the_cases_state(
    answers: dict[str, Any],
):
    name, state = answers["app_named"]
    assert (name, state["a"]) == ("one-1", 1)


def test_files_are_in_the_authors_service_and_every_trial_begins_without_any(
    answers: dict[str, Any],
):
    found = answers["files"]
    assert [one["status"] for one in found["results"]] == ["passed"] * 4
    assert found["files"] == [[["new", "new"], [0], True]] * 4
    assert found["saved"] == ["bill.png"] * 4 + ["me.png"] * 4


def test_a_broken_artifact_service_is_no_verdict_though_the_agent_does_not_mind(
    answers: dict[str, Any],
):
    full, far = answers["broken_files"]
    assert full["status"] == far["status"] == "error"
    assert full["error"].startswith("RunBroke: artifact_service broke in save_artifact")
    assert "OSError('disk full')" in full["error"]
    assert far["error"].startswith("FenceBreach: ")
    assert far["error"].endswith("name its hosts: service_hosts=[...].")
