"""JUnit XML as CI servers read it."""

import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Case, EvalSet, Expect, Report, Score, Scripted, call, rehearse, tool
from greenroom.metrics import contains
from greenroom.reports.junit import JunitReport
from greenroom.results import CaseResult, Problem
from reports.payloads import PAYLOADS, SOME_PAYLOADS
from reports.strangers import report as strange

# What the schemas of Jenkins (xUnit plug-in) and Ant have in common, and what more Jenkins allows.
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase", "system-out", "system-err"},
    "properties": {"property"},
    "property": set(),
    "testcase": {"skipped", "error", "failure", "system-out", "system-err"},
    "skipped": set(),
    "error": set(),
    "failure": set(),
    "system-out": set(),
}
REQUIRED = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name"},
    "property": {"name", "value"},
}
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": REQUIRED["testsuite"] | {"time", "skipped", "timestamp", "id", "hostname"},
    "testcase": {"name", "time", "classname", "group"},
    "property": {"name", "value"},
    "skipped": {"type", "message"},
    "error": {"type", "message"},
    "failure": {"type", "message"},
}
NUMBERS = {"time": r"\d+(\.\d+)?", "tests": r"\d+", "failures": r"\d+", "errors": r"\d+"}
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
LEGAL = re.compile(r"[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


def checked(text: str) -> Xml.Element:
    """The document, if it keeps to the schema."""
    assert LEGAL.fullmatch(text)
    root = Xml.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        given = set(element.attrib)
        assert {child.tag for child in element} <= CHILDREN[element.tag]
        assert REQUIRED.get(element.tag, set()) <= given <= ALLOWED.get(element.tag, set())
        for name, shape in NUMBERS.items():
            assert re.fullmatch(shape, element.get(name, "0"))
        assert re.fullmatch(STAMP, element.get("timestamp", "2026-01-01T00:00:00"))
        if element.tag == "testcase":
            assert sum(child.tag in ("skipped", "error", "failure") for child in element) <= 1
    for suite in root:
        tags = [child.tag for case in suite.iter("testcase") for child in case]
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        assert suite.get("failures") == str(tags.count("failure"))
        assert suite.get("errors") == str(tags.count("error"))
        assert suite.get("skipped") == str(tags.count("skipped"))
        # Ant wants the properties before the cases.
        assert [child.tag for child in suite].index("properties") == 0
    return root


def rendered(report: Report, baseline: Report | None = None) -> Xml.Element:
    return checked(JunitReport().render(report, baseline=baseline))


@tool
def stock(item: str) -> int:
    """How many are left."""
    raise RuntimeError("never reached in a rehearsal")


AGENT = Agent("shop", model=Scripted(call("stock", item="cup"), "3 cups."), tools=[stock])
SHOP = EvalSet(
    "shop",
    [
        Case("good", says="Cups?", mocks={"stock": 3}, metrics=[contains("3")], tags=["smoke"]),
        Case(
            "bad", says="Cups?", mocks={"stock": 3}, expect=Expect(contains="4 cups"), name="Bad!"
        ),
        Case("unmocked", says="Cups?", metrics=[contains("3")]),
    ],
)


@pytest.fixture(scope="module")
def played() -> Report:
    return rehearse(AGENT, SHOP)


def case_of(root: Xml.Element, name: str) -> Xml.Element:
    [found] = [case for case in root.iter("testcase") if case.get("name") == name]
    return found


def test_every_case_is_a_test_case_of_its_set(played):
    root = rendered(played)
    assert [(c.get("classname"), c.get("name")) for c in root.iter("testcase")] == [
        ("shop", "good"),
        ("shop", "Bad!"),
        ("shop", "unmocked"),
    ]
    assert [child.tag for child in case_of(root, "good")] == ["system-out"]


def test_a_failure_tells_why_and_what_was_said(played):
    failure = case_of(rendered(played), "Bad!").find("failure")
    assert failure is not None
    assert failure.get("type") == "failed"
    assert failure.get("message") == "expected_contains: turn 1: missing '4 cups'"
    assert 'tool         stock(item="cup") → 3  (mock)' in (failure.text or "")


def test_an_error_names_its_type_and_its_phase(played):
    error = case_of(rendered(played), "unmocked").find("error")
    assert error is not None
    assert error.get("type") == "ToolRefused"
    assert (error.get("message") or "").startswith("system: tool 'stock' was called")


def test_what_was_measured_and_spent_stands_before_the_transcript(played):
    said = case_of(rendered(played), "good").findtext("system-out") or ""
    facts = dict(re.findall(r"\[\[PROPERTY\|([^=]+)=(.*)\]\]", said))
    assert facts == {
        "case": "good",
        "status": "passed",
        "tags": "smoke",
        "score.contains('3')": "1.00",
        "turns": "1",
        "models": "scripted",
        "tokens": "0 in, 0 out",
        "cost_usd": "0",
    }


def test_a_cost_that_is_almost_nothing_is_not_shown_as_nothing(played):
    [paid, *_] = played.results
    root = rendered(Report([replace(paid, cost=0.00000003)]))
    assert "[[PROPERTY|cost_usd=0.00000003]]" in (
        case_of(root, paid.case_id).findtext("system-out") or ""
    )


def test_the_suite_says_what_is_known_of_the_run(played):
    root = rendered(played, baseline=played)
    facts = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert facts["report"] == played.id
    assert facts["pass_rate"] == "0.5000"
    assert facts["mean.contains('3')"] == "1.0000"
    assert (facts["baseline.unchanged"], facts["baseline.regressed"]) == ("2", "0")
    assert "" not in facts.values()


def test_what_is_unknown_is_called_so_and_what_was_not_measured_is_absent():
    asked = CaseResult(case_id="a", status="passed", ended="completed", models={"m": 1})
    root = rendered(Report([asked]))
    facts = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert (facts["cost_usd"], facts["tokens"]) == ("unknown", "unknown")
    never = rendered(Report([CaseResult(case_id="a", status="skipped", notes=("not today",))]))
    assert list(never.iter("property")) == []
    skipped = case_of(never, "a").find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "not today"


def test_trials_and_cases_of_one_name_are_told_apart():
    one = CaseResult(case_id="a", name="Same", status="passed", scores={"m": Score(1.0)})
    results = [one, replace(one, trial=2), replace(one, case_id="b")]
    names = [case.get("name") for case in rendered(Report(results)).iter("testcase")]
    assert names == ["Same (a) [trial 1]", "Same (a) [trial 2]", "Same (b)"]


def test_a_run_that_was_cut_is_a_failure_and_an_error_without_a_message_is_one_too():
    cut = CaseResult(case_id="a", status="terminated", ended="max_turns", turns=3)
    broke = CaseResult(case_id="b", status="error", error=Problem("system", "", "Oops"))
    root = rendered(Report([cut, broke]))
    assert case_of(root, "a")[0].get("message") == (
        "the trial was stopped at its limit (max_turns) after 3 turns"
    )
    assert case_of(root, "b")[0].get("type") == "Oops"


def test_a_report_of_nothing_and_one_of_an_impossible_time_are_still_valid():
    assert rendered(Report([])).find("testsuite") is not None
    assert rendered(Report([], at=1e300)).find("testsuite") is not None


def test_long_texts_are_cut():
    text = JunitReport().render(strange("word " * 5_000))
    assert "… shortened here" in text
    assert len(text) < 200_000


@pytest.mark.parametrize(
    "payloads",
    [SOME_PAYLOADS, pytest.param(PAYLOADS, marks=pytest.mark.heavy)],
    ids=["some", "all"],
)
def test_no_text_of_strangers_acts_or_forges(payloads):
    fine = strange("fine")
    for payload in payloads:
        root = rendered(strange(payload), baseline=fine)
        assert [case.tag for case in root[0].findall("testcase")] == ["testcase"] * 5, payload
        for case in root.iter("testcase"):
            for order in re.findall(r"\[\[.*", "\n".join(element.text or "" for element in case)):
                assert order.startswith("[[PROPERTY|"), payload
                assert order.endswith("]]"), payload
            said = case.findtext("system-out") or ""
            assert len(re.findall(r"\[\[PROPERTY\|status=", said)) == 1, payload


@given(st.text())
def test_any_text_gives_a_document_that_keeps_to_the_schema(text):
    rendered(strange(text))
