"""A recorded conversation becomes a case, and loses its personal data on the way."""

import json

import pytest
from click.testing import CliRunner

from greenroom import Agent, Scripted, call, rehearse, tool
from greenroom.apps.cli import main
from greenroom.cases import EvalSet
from greenroom.ledger.questions import tool_calls
from greenroom.traces import LedgerWriter
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
    run()
    first, second = EvalSet.load(log / "set.json")
    assert (first.id, second.id) == ("c1", "c1-2")
    assert "needs_review" in first.tags
    assert first.user.plan == ("Thanks!",)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["regression", "scenario"])
def test_a_conversation_that_becomes_the_same_case_again_is_not_added_twice(log, kind):
    run("--as", kind)
    assert run("--as", kind) == "already in set.json: 1 case\n"
    assert EvalSet.load(log / "set.json").ids == ["c1"]


def test_a_file_with_comments_keeps_them(log):
    mine = "# mine\nversion: 1\ncases:\n- id: c1\n  says: Hi  # first\n"
    (log / "set.yaml").write_text(mine)
    done = CliRunner().invoke(main, ["traces", "to-case", "log.json", "--into", "set.yaml"])
    assert done.exit_code == 0, done.output
    assert (log / "set.yaml").read_text().startswith(mine)
    assert EvalSet.load(log / "set.yaml").ids == ["c1", "c1-2"]


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


def test_a_conversation_that_cannot_be_run_again_takes_no_other_along(log):
    cut = [{"role": "assistant", "content": "Hello?"}]
    talks = [{"id": "good", "messages": LOG}, {"id": "mute", "messages": cut}]
    talks.append({"id": "fine", "messages": LOG})
    (log / "log.jsonl").write_text("\n".join(map(json.dumps, talks)))
    done = CliRunner().invoke(
        main, ["traces", "to-case", "log.jsonl", "--into", "set.json", "--as", "scenario"]
    )
    assert done.exit_code == 3
    assert "added 2 cases to set.json" in done.output
    assert "log.jsonl, mute: case 'mute' cannot be harvested" in done.output
    assert EvalSet.load(log / "set.json").ids == ["good", "fine"]


@pytest.mark.parametrize(
    "text",
    [
        "at 10:00 +0200, or +1 2 3",
        "2024-05-01T10:00:00+02:00, 2026-11-17 03-38-49, 01-02-2024 12:30, 05/11/2024 10:30",
        "1700000000009 ms, 1700000000000000003 ns",
        "order-2024-0001-123-4567, 0012345678, 12345678-1234-4234-8234-123456789012",
        "from 100-200 to 300-4000, [1::2], 10:00:00, std::cout",
        "refund#1@1794946398.092654",
    ],
)
def test_times_and_ids_are_no_personal_data(text):
    assert StandIns().text(text) == text


@pytest.mark.parametrize("part", ["a", "1", "12-", "a.b", "+1 ", "GB12 ", "ab:", "a@", "@a."])
def test_a_long_text_is_searched_once_and_not_from_each_of_its_letters(part):
    StandIns().text(part * 300_000)  # days, if it were


def test_content_is_searched_whatever_its_fields_are_called():
    writer = LedgerWriter("c")
    writer.user("Hi")
    sent = writer.called("mail", {"source": "ann@shop.com", "path": ["bob@shop.com"]})
    writer.returned(sent, {"model": {"tool": "ann@shop.com"}})
    writer.said("Done.")
    ledger = StandIns().ledger(writer.imported("log").ledger)
    (made,) = tool_calls(ledger)
    assert made.args == {"source": "user-1@example.com", "path": ["user-2@example.com"]}
    assert made.result == {"model": {"tool": "user-1@example.com"}}


@pytest.mark.parametrize(
    "text, left",
    [
        ("Call +49 30 1234567 now", "Call phone-1 now"),
        ("07700 900123, 030/1234567, 06 12 34 56 78", "phone-1, phone-2, phone-3"),
        ("+1 (555) 123-4567 or 1-800-555-1234", "phone-1 or phone-2"),
        ("+4915112345678", "phone-1"),
        ("ann@shop.co.uk, <bob@xn--80ak6aa92e.com>.", "user-1@example.com, <user-2@example.com>."),
        ("ann@10.0.0.7", "user-1@example.com"),
        ("card 4111 1111 1111 1111 12/27 123", "card card-1 12/27 123"),
        ("order 27 4111111111111111", "order 27 card-1"),
        ("3782 822463 10005 and 4111-1111-1111-1111", "card-1 and card-2"),
        ("from fe80::1ff:fe23:4567:890a", "from 2001:db8::1"),
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
