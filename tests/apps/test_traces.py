"""`greenroom traces` and `greenroom eval score`: what was recorded elsewhere, at the command line."""

import json
from pathlib import Path
from typing import Any

import pytest


def messages(*, place: str = "Lyon", order: int = 7) -> list[dict[str, Any]]:
    arguments = json.dumps({"order": order})
    return [
        {"role": "user", "content": "Where is order 7?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "track", "arguments": arguments}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": place},
        {"role": "assistant", "content": f"It is in {place}."},
    ]


@pytest.fixture
def logs(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.json").write_text(json.dumps({"id": "good", "messages": messages()}))
    (tmp_path / "bad.json").write_text(
        json.dumps({"id": "bad", "messages": messages(place="Rome")})
    )
    return tmp_path


def test_conversations_are_scored_like_rehearsals_with_the_same_exit_codes(greenroom, logs):
    done = greenroom("eval", "score", "good.json", "--metrics", "contains:Lyon,called:track")
    assert done.exit_code == 0, done.output
    done = greenroom("eval", "score", "good.json", "bad.json", "-m", "contains:Lyon")
    assert done.exit_code == 1
    assert "the pass rate of 50.0 % is below" in done.output
    done = greenroom("eval", "score", ".", "-m", "contains:Lyon", "--min-pass-rate", "0.5")
    assert done.exit_code == 0, done.output


def test_what_was_not_recorded_is_an_error_and_no_pass(greenroom, logs):
    for text in ("007", "1.", "٣"):
        done = greenroom("eval", "score", "good.json", "-m", f"contains:{text}")
        assert done.exit_code == 1, done.output
    done = greenroom("eval", "score", "good.json", "-m", "completed_within:10")
    assert done.exit_code == 2
    assert "does not say when anything happened" in done.output


def test_a_file_that_cannot_be_read_leads_to_3_and_the_others_are_scored(greenroom, logs):
    (logs / "cut.json").write_text('{"id": "cut", "messages": [')
    done = greenroom("eval", "score", ".", "-m", "contains:It", "-o", "report.json")
    assert done.exit_code == 3
    assert "cut.json, line 1, column 28: " in done.output
    assert json.loads((logs / "report.json").read_text())["summary"]["passed"] == 2


def test_options_of_metrics_can_be_typed(greenroom, logs):
    (logs / "mine.py").write_text(
        "def polite(response: str) -> bool:\n    return 'Lyon' in response\n"
    )
    typed = 'called={"tool": "track", "args": {"order": 7}}'
    done = greenroom("eval", "score", "good.json", "-m", typed, "-m", "mine.py:polite")
    assert done.exit_code == 0, done.output
    done = greenroom("eval", "score", "good.json", "-m", "called={")
    assert done.exit_code == 3
    done = greenroom("eval", "score", "good.json", "-m", "contans:x")
    assert done.exit_code == 3
    assert "Did you mean 'contains'" in done.output
    done = greenroom("eval", "score", "good.json", "-m", 'called("track", order=7)')
    assert done.exit_code == 3
    assert "after a colon, called:VALUE" in done.output
    done = greenroom("eval", "score", "good.json", "-m", "contains:It is (not")
    assert done.exit_code == 1


@pytest.mark.parametrize("twice", ["good.json", "./good.json", ".", "link.json"])
def test_a_conversation_that_is_named_twice_is_no_more_evidence(greenroom, logs, twice):
    (logs / "bad.json").unlink()
    (logs / "link.json").symlink_to("good.json")
    words = ("eval", "score", "good.json", twice, "-m", "contains:Lyon", "--json")
    assert json.loads(greenroom(*words).stdout)["summary"]["total"] == 1


def test_a_case_that_no_conversation_fits_is_named(greenroom, logs):
    (logs / "cases.yaml").write_text(
        "version: 1\ncases:\n- {id: good, says: Hi, expect: {contains: Lyon}}\n"
        "- {id: unheard, says: Bye, expect: {contains: Rome}}\n"
    )
    done = greenroom("eval", "score", "good.json", "--cases", "cases.yaml")
    assert "note: not measured, since no conversation fits: unheard" in done.stdout
    done = greenroom("eval", "score", "good.json", "--cases", "cases.yaml:good")
    assert "not measured" not in done.stdout


def test_an_option_of_a_metric_that_is_typed_twice_is_refused(greenroom, logs):
    typed = 'contains={"texts": ["Lyon", "Rome"], "threshold": 0.5, "threshold": 1}'
    done = greenroom("eval", "score", "good.json", "-m", typed)
    assert done.exit_code == 3
    assert "the key 'threshold' is given twice" in done.stderr


def test_ledgers_are_written_and_scored_like_their_source(greenroom, logs):
    done = greenroom("traces", "import", "good.json", "bad.json", "-o", "ledgers")
    assert done.exit_code == 0, done.output
    assert "not recorded: state, nodes, times" in done.output
    done = greenroom("eval", "score", "ledgers", "-m", "contains:Lyon", "--json")
    assert json.loads(done.stdout)["summary"]["passed"] == 1


def test_a_case_s_expectations_are_held_against_its_conversation(greenroom, logs):
    cases = {
        "version": 1,
        "id": "set",
        "cases": [{"id": "c", "turns": [{"says": "Where is order 7?"}]}],
    }
    cases["cases"][0]["turns"][0]["expect"] = {"tools": [{"tool": "track", "args": {"order": 7}}]}  # type: ignore[index]
    (logs / "cases.json").write_text(json.dumps(cases))
    done = greenroom("eval", "score", "good.json", "--cases", "cases.json")
    assert done.exit_code == 0, done.output
    (logs / "other.json").write_text(json.dumps([{"role": "user", "content": "Hi"}]))
    done = greenroom("eval", "score", "other.json", "--cases", "cases.json")
    assert done.exit_code == 3
    assert "none of the 1 conversations belongs to a case" in done.output


def test_ids_that_are_no_file_names_are_written_all_the_same(greenroom, logs):
    lines = [{"id": name, "messages": messages()} for name in ("../up", "a/b", "a_b", "A_B", "..")]
    (logs / "odd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = greenroom("traces", "import", "odd.jsonl", "-o", "ledgers", "--json")
    assert done.exit_code == 0, done.output
    assert len(list((logs / "ledgers").iterdir())) == 5
    assert not (logs / "up.jsonl").exists()
