"""A secret that is a common word is replaced in what was said, and nowhere in the formats that say it too."""

from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import msgspec
import pytest

from greenroom import Agent, Case, Expect, Lines, Scripted, call, rehearse, tool
from greenroom.ledger import Ledger
from greenroom.ledger.events import AgentSaid, ToolReturned
from greenroom.ledger.redaction import Redactor
from greenroom.results import Report
from greenroom.results.files import read_report
from greenroom.results.reporters import render_report
from greenroom.store import Store
from greenroom.store.cut_trials import AGENT, TRIAL, last_trial
from greenroom.store.redaction import LineCleaner

WORDS = [
    *("user", "agent", "tool", "assistant", "session", "live", "mock", "reply", "kind", "value"),
    *("completed", "passed", "failed", "status", "score", "threshold", "case_id", "trial", "says"),
    *("expect", "state", "lines", "cost", "notes", "model_replied", "result"),
    *("name", "metrics", "args", "tools"),
]


@tool
def refund(order: int) -> dict[str, object]:
    """Pay an order back."""
    raise AssertionError("mocked")


@pytest.fixture(params=WORDS)
def word(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    (tmp_path / "pyproject.toml").write_text('[tool.greenroom]\nredact_env = ["CRM_LOGIN"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRM_LOGIN", request.param)
    return request.param


def report_on(word: str, store: Any) -> Report:
    script = Scripted("Which one?", call("refund", order=7), f"Log in as {word}.")
    agent = Agent("clerk", model=script, tools=[refund])
    mocks = {"refund": {word: {"ok": word}}}
    said, state = "Money back!", {"user": {"name": "Ann"}}
    cases = [
        Case("a", said, user=Lines("7."), mocks=mocks, state=state, expect=Expect(contains="?")),
        Case("b", said, user=Lines("7."), mocks=mocks, expect=Expect(contains="Sorry")),
    ]
    return rehearse(agent, cases, store=store)


def outcomes(report: Report) -> list[Any]:
    return [(r.case_id, r.status, r.ended, r.cost, r.turns, len(r.scores)) for r in report]


def events(ledger: Ledger) -> list[Any]:
    return [(event.kind, event.voice, event.seq) for event in ledger]


def test_what_is_stored_is_read_back(word: str, tmp_path: Path) -> None:
    report = report_on(word, tmp_path / "runs")
    stored = Store(tmp_path / "runs").report(report.id)
    assert outcomes(stored) == outcomes(report)
    assert stored.summary == report.summary
    for before, now in zip(report, stored, strict=True):
        assert events(now.ledger) == events(before.ledger)
        assert now.case is not None
        assert now.case["says"] == "Money back!"
        assert now.ledger.of(AgentSaid)[-1].text == "Log in as [redacted:CRM_LOGIN]."
        [returned] = now.ledger.of(ToolReturned)
        assert returned.value == {"[redacted:CRM_LOGIN]": {"ok": "[redacted:CRM_LOGIN]"}}


def test_a_report_is_rendered_and_read_back(word: str, tmp_path: Path) -> None:
    report = report_on(word, False)
    report.save(tmp_path / "report.json")
    read = read_report(tmp_path / "report.json")
    assert outcomes(read) == outcomes(report)
    assert read["b"].responses[-1] == "Log in as [redacted:CRM_LOGIN]."
    suites = ElementTree.fromstring(render_report("junit", report))
    assert [len(suites.findall(f".//{kind}")) for kind in ("testcase", "failure")] == [2, 1]
    assert f"Log in as {word}" not in render_report("html", report)
    report["a"].ledger.save(tmp_path / "a.jsonl", redact=True)
    assert events(Ledger.load(tmp_path / "a.jsonl")) == events(report["a"].ledger)


def test_lines_of_a_journal_that_others_may_read_stay_readable(word: str, tmp_path: Path) -> None:
    ledger = report_on(word, tmp_path)["a"].ledger
    title = TRIAL + b'{"case_id":"a","trial":1,"digest":"d"}\n'
    lines = title + b"".join(AGENT + line + b"\n" for line in ledger.dumps().encode().splitlines())
    clean = LineCleaner(lambda: Redactor([("CRM_LOGIN", word)])).lines(lines)
    found = last_trial(clean, "here")
    assert found is not None
    assert not found.damage
    assert events(found.ledger) == events(ledger)
    assert f"Log in as {word}".encode() not in clean


def test_a_document_keeps_its_own_words_and_no_others() -> None:
    hand = Redactor([("LOGIN", "user"), ("SORT", "status"), ("FLAG", "passed")])
    document = {"role": "user", "status": "passed", "args": {"user": 1}, "text": "user"}
    assert hand.document(document) == {
        "role": "user",
        "status": "passed",
        "args": {"[redacted:LOGIN]": 1},
        "text": "[redacted:LOGIN]",
    }
    plain = {"says": "hello"}
    assert hand.document(plain) is plain


class Spoken(msgspec.Struct, frozen=True):
    """A record of somebody's own."""

    by: Literal["user", "clerk"] | None
    kind: str
    text: str


def test_the_type_of_a_field_says_what_is_a_word_of_a_list() -> None:
    hand = Redactor([("LOGIN", "user")])
    found = hand.value(Spoken("user", "user", "user"))
    assert found == Spoken("user", "[redacted:LOGIN]", "[redacted:LOGIN]")


@pytest.mark.parametrize("field", ["kind", "status", "source", "type", "role"])
def test_a_password_is_no_word_of_a_list_wherever_it_stands(field: str) -> None:
    clean = Redactor([("DB_PASSWORD", "swordfish")])
    assert clean.document({"case": {field: "swordfish"}}) == {
        "case": {field: "[redacted:DB_PASSWORD]"}
    }
