"""Canaries in every place where a secret may get to: found in nothing that leaves the house."""

import io
import json
import zlib
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    NotApplicable,
    Report,
    Score,
    Scripted,
    Unmeasured,
    call,
    metric,
    rehearse,
    tool,
)
from greenroom.errors import NotFound
from greenroom.ledger.redaction import Redactor
from greenroom.reports.console import ConsoleReport
from greenroom.reports.failure import failure_text
from greenroom.reports.reporters import write_reports
from greenroom.reports.terminal import Terminal
from greenroom.reports.variants import variants_table
from greenroom.results import CaseResult, failed_cases, redacted
from greenroom.results.report import CasePlace
from greenroom.results.reporters import load_reporter, render_report, reporter_names
from reports.strangers import report as strange

# None of these ever opened anything.
CANARIES = {
    "key": "sk-ant-api03-0Canary1" + "aB3" * 8,
    "bearer": "Bearer cAn4ry.t0ken-of-somebody",
    "url": "postgres://bob:c4nary-in-a-url@db.example/x",
    "github": "ghp_" + "C4nary" * 6,
    "environment": "c4nary & <its> \"quotes\" + 'more' / äöü",
    "named": "c4nary-named-by-the-project",
}
SECRETS = {
    **CANARIES,
    "bearer": "cAn4ry.t0ken-of-somebody",
    "url": "c4nary-in-a-url",
}


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.greenroom]\nredact_env = ["CRM_LOGIN"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRM_PASSWORD", CANARIES["environment"])
    monkeypatch.setenv("CRM_LOGIN", CANARIES["named"])


def traces(secret: str) -> list[str]:
    """What would give a secret away."""
    coded = [b64encode(b"xyz"[:n] + secret.encode()).decode()[4:-4] for n in range(3)]
    return [secret, quote(secret, safe=""), json.dumps(secret)[1:-1], *coded]


def assert_clean(text: str) -> None:
    for name, secret in SECRETS.items():
        for trace in traces(secret):
            assert trace not in text, f"{name} as {trace!r}"


def everything_in(page: str) -> str:
    """A page of HTML with what it packs."""
    packed = [part.split("<")[0] for part in page.split(">") if len(part) > 200]
    return "\n".join([page, *map(unpacked, packed)])


def unpacked(data: str) -> str:
    for window in (15, -15, 31):
        try:
            return zlib.decompress(b64decode(data, validate=True), window).decode()
        except (ValueError, zlib.error):
            continue
    return ""


def test_a_page_is_searched_in_what_it_packs_too():
    page = render_report("html", strange("nobody's secret"))
    assert everything_in(page).count("nobody's secret") > page.count("nobody's secret")


@tool
def login(password: str, url: str) -> str:
    """Log in."""
    raise RuntimeError("never reached in a rehearsal")


@metric
def leaky(response: str) -> Score:
    key = CANARIES["key"]
    return Score(0.0, reason=f"{key} in {response!r}", evidence=[key], details={"seen": key})


@metric
def broken(response: str) -> float:
    raise ValueError(f"refused {CANARIES['github']}: {response!r}")


class Odd:
    def __repr__(self) -> str:
        return f"Odd({CANARIES['key']!r})"


@metric
def odd(response: str) -> Score:
    return Score(0.0, details={"what": Odd()})


def played(**options: Any) -> Report:
    """Secrets in 20 places and more: said, asked, mocked, called, returned, judged, broken, noted."""
    c = CANARIES
    script = [call("login", password=c["environment"], url=c["url"]), f"Done with {c['key']}"]
    agent = Agent("clerk", model=Scripted(*script), tools=[login], instructions=c["key"])
    mock = {"token": c["bearer"], "headers": {"Authorization": c["bearer"]}, "log": [c["github"]]}
    case = Case(
        f"case {c['named']}",
        says=f"I am {c['key']}, {c['environment']}, {b64encode(c['github'].encode()).decode()}",
        name=f"name {c['github']}",
        description=c["key"],
        tags=[c["key"], c["named"]],
        metadata={"owner": c["url"], "password": "c4nary-named-by-the-project"},
        state={"session": {"key": c["key"], c["named"]: 1}},
        mocks={"login": mock},
        metrics=[leaky, odd],
        expect=Expect(contains=c["environment"]),
    )
    cases = [
        case,
        Case("broken", says=quote(c["environment"]), mocks={"login": 1}, metrics=[broken]),
        Case("unmocked", says=c["url"], metrics=[leaky]),
        Case("odd mock", says="x", mocks={"login": lambda **_: 1 / 0}, metrics=[leaky]),
    ]
    evalset = EvalSet(f"set-{c['named']}", cases, name=f"Set {c['key']}")
    return rehearse(agent, evalset, **options)


@pytest.mark.parametrize("name", reporter_names())
def test_no_reporter_tells_a_secret(name):
    report = played()
    for text in (render_report(name, report), render_report(name, report, baseline=played())):
        assert_clean(everything_in(text))
        assert "redacted:" in everything_in(text)


@pytest.mark.parametrize("canary", CANARIES.values())
@pytest.mark.parametrize("name", reporter_names())
def test_no_field_of_a_report_keeps_one(name, canary):
    assert_clean(everything_in(render_report(name, strange(canary))))


def test_no_file_that_is_written_keeps_one(tmp_path):
    report = played()
    for path in write_reports(report, reporter_names(), tmp_path / "out", baseline=played()):
        assert_clean(everything_in(path.read_text()))
    assert_clean(report.save(tmp_path / "r.json").read_text())
    assert_clean(report.compare(played()).save(tmp_path / "c.json").read_text())


def test_neither_does_what_is_printed_nor_a_ledger_that_is_handed_around(tmp_path):
    report = played()
    assert_clean(str(report))
    assert_clean(str(report.compare(played())))
    screen = io.StringIO()
    ConsoleReport(Terminal(screen), "all").show(report, baseline=played())
    assert_clean(screen.getvalue())
    for result in report.results:
        assert result.ledger is not None
        result.ledger.save(tmp_path / "l.jsonl", redact=True)
        assert_clean((tmp_path / "l.jsonl").read_text())


@pytest.mark.parametrize("name", reporter_names())
def test_a_reporter_asked_directly_tells_none_either(name):
    told = load_reporter(name).render
    assert_clean(everything_in(told(played(), baseline=played())))
    for canary in CANARIES.values():
        assert_clean(everything_in(told(strange(canary), baseline=strange(canary))))


@pytest.mark.parametrize("whole", [True, False])
def test_no_failure_that_is_told_in_plain_text_keeps_one(whole):
    for report in (played(), *map(strange, CANARIES.values())):
        for result in report:
            assert_clean(failure_text(result, again=f"play {CANARIES['key']}", whole=whole))


def test_the_store_keeps_none(tmp_path):
    place = tmp_path / "store"
    report = played(store=place)
    assert len(report) == 4
    files = [path for path in place.rglob("*") if path.is_file()]
    for path in files:
        assert_clean(path.read_bytes().decode("utf-8", "replace"))
    assert any(b"[redacted:" in path.read_bytes() for path in files)


def test_a_secret_is_gone_before_a_text_is_cut_in_the_midst_of_it():
    agent = Agent("clerk", model=Scripted(f"{'x' * 220} {CANARIES['key']}"))
    case = Case("a", "Hi", expect=Expect(contains="x" * 220 + " " + CANARIES["key"] + "!"))
    text = failure_text(rehearse(agent, case)["a"])
    assert "sk-ant" not in text
    assert text.count("[redacted:api") >= 2


def test_what_was_expected_is_shown_though_a_secret_stands_in_it():
    agent = Agent("clerk", model=Scripted("No."))
    case = Case("a", "Hi", expect=Expect(contains=f"key {CANARIES['key']}"))
    assert "- key [redacted:api_key]" in failure_text(rehearse(agent, case)["a"])


def test_no_table_of_several_agents_keeps_one():
    page = io.StringIO()
    terminal = Terminal(page, width=400)
    for canary in CANARIES.values():
        terminal.print(variants_table({f"old {canary}": strange(canary), "new": played()}))
    assert_clean(page.getvalue())
    assert "[redacted:api_key]" in page.getvalue()


def test_a_report_keeps_its_secrets_in_memory_and_in_a_file_only_if_told(tmp_path):
    report = played()
    assert SECRETS["key"] in report.results[0].responses[0]
    exact = report.save(tmp_path / "exact.json", redact=False).read_text()
    assert SECRETS["key"] in exact


def test_what_is_redacted_is_still_the_same_report():
    report = played()
    shown = redacted(report)
    assert [r.status for r in shown] == [r.status for r in report]
    assert shown.summary == report.summary
    assert [r.blame and r.blame.whom for r in shown] == [r.blame and r.blame.whom for r in report]
    assert redacted(shown) is shown


@pytest.mark.parametrize("name", ["junit", "annotations", "json"])
def test_where_a_case_is_from_tells_no_secret_and_is_still_known(name):
    key = CANARIES["key"]
    failed = CaseResult(case_id=f"case {key}", status="failed")
    place = CasePlace(evalset=f"set {key}", file=f"evals/{key}.yaml", line=7)
    report = redacted(Report([failed], sources={failed.case_id: place}))
    assert_clean(render_report(name, report))
    assert report.sources[report.results[0].case_id].line == 7


def test_a_report_without_secrets_keeps_its_cases_and_ledgers():
    agent = Agent("clerk", model=Scripted("Hello."))
    report = rehearse(agent, [Case("a", says="Hi", expect=Expect(contains="Bye"))])
    shown = redacted(report)
    assert shown.results[0].ledger is report.results[0].ledger
    assert shown.results[0].asked is report.results[0].asked
    assert failed_cases(shown).ids == ["a"]


def test_a_case_that_lost_its_secrets_is_not_played_again(tmp_path):
    agent = Agent("clerk", model=Scripted("Hello."))
    case = Case("a", says=CANARIES["key"], expect=Expect(contains="Bye"))
    saved = Report.load(rehearse(agent, [case]).save(tmp_path / "r.json"))
    with pytest.raises(NotFound, match="case 'a' lost its secrets when the report was saved"):
        failed_cases(saved)
    assert failed_cases(saved, EvalSet("s", [case])).cases == (case,)


def test_a_redactor_of_ones_own_replaces_more():
    report = Report(strange("Mrs Smith").results)
    shown = redacted(report, Redactor([("PATIENT", "Mrs Smith")]))
    assert "Smith" not in render_report("json", shown)
    assert "[redacted:PATIENT]" in render_report("markdown", shown)


def test_outcomes_without_a_score_are_redacted_too():
    report = strange(CANARIES["key"])
    found = [o for r in redacted(report) for o in r.scores.values() if not isinstance(o, Score)]
    assert {type(outcome) for outcome in found} == {NotApplicable, Unmeasured}
    whys = {outcome.why.removeprefix("the trial broke: ") for outcome in found}
    assert whys == {"[redacted:api_key]", "the trial was left out"}
