"""A recorded conversation becomes a case, and loses its personal data on the way."""

import json

import pytest
from click.testing import CliRunner

from greenroom import Agent, Scripted, call, rehearse, tool
from greenroom.apps.cli import main
from greenroom.cases import EvalSet
from greenroom.traces.personal import StandIns

LOG = [
    {"role": "user", "content": "Mail ann@shop.com about card 4111 1111 1111 1111."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "function": {"name": "mail", "arguments": '{"to": "ann@shop.com"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "sent to Ann@shop.com"},
    {"role": "assistant", "content": "Done, ann@shop.com has it."},
    {"role": "user", "content": "Thanks!"},
    {"role": "assistant", "content": "Bye."},
]


@tool
def mail(to: str) -> str:
    """Send a mail."""
    raise RuntimeError("never in a rehearsal")


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.json").write_text(json.dumps({"id": "c1", "messages": LOG}))
    return tmp_path


def run(*words: str) -> str:
    done = CliRunner().invoke(main, ["traces", "to-case", "log.json", "--into", "set.json", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_case_of_a_conversation_runs_with_one_stand_in_for_one_value(log):
    assert "1 × email, 1 × card" in run()
    text = (log / "set.json").read_text()
    assert "shop.com" not in text
    assert "4111" not in text
    (case,) = EvalSet.load(log / "set.json")
    same = Agent(
        "desk",
        model=Scripted(
            call("mail", to="user-1@example.com"), "Done, user-1@example.com has it.", "Bye."
        ),
        tools=[mail],
    )
    assert rehearse(same, [case], store="off").passed
    other = Agent("desk", model=Scripted("No.", "No."), tools=[mail])
    assert not rehearse(other, [case], store="off").passed


def test_a_scenario_wants_what_the_user_wanted_and_asks_for_review(log):
    run("--as", "scenario")
    run("--as", "scenario")
    first, second = EvalSet.load(log / "set.json")
    assert (first.id, second.id) == ("c1", "c1-2")
    assert "needs_review" in first.tags
    assert first.user.plan == ("Thanks!",)  # type: ignore[union-attr]


def test_personal_data_is_kept_only_if_that_is_asked_for(log):
    run("--keep-pii")
    assert "ann@shop.com" in (log / "set.json").read_text()


def test_what_cannot_be_run_again_is_refused(log):
    result = {"prompt": {}, "response": {"output": "Hi"}, "id": "x"}
    data = {"results": {"version": 3, "results": [result]}}
    (log / "log.json").write_text(json.dumps(data))
    done = CliRunner().invoke(main, ["traces", "to-case", "log.json", "--into", "set.json"])
    assert done.exit_code == 3
    assert "does not hold user" in done.output


@pytest.mark.parametrize(
    "text, left",
    [
        ("Call +49 30 1234567 now", "Call phone-1 now"),
        ("from 10.1.2.3 to 10.1.2.3", "from 192.0.2.1 to 192.0.2.1"),
        ("order 4111111111111112", "order 4111111111111112"),
        ("DE89 3704 0044 0532 0130 00", "iban-1"),
        ("ann lee and ANN LEE", "Person 1 and Person 1"),
        ("a@b.de, A@B.de, c@d.de", "user-1@example.com, user-1@example.com, user-2@example.com"),
        ("ann@example.com", "user-1@example.com"),
        ("version 1.2.3 on 2026-01-01", "version 1.2.3 on 2026-01-01"),
    ],
)
def test_stand_ins_are_stable(text, left):
    assert StandIns(["Ann Lee"]).text(text) == left
