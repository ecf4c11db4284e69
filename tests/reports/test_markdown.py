"""Markdown for a pull request's comment."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from greenroom import Agent, Case, EvalSet, Expect, Report, Score, Scripted, call, rehearse, tool
from greenroom.ledger import Usage
from greenroom.metrics import contains
from greenroom.reports.markdown import LIMIT, MarkdownReport, render_comparison
from greenroom.reports.markdown_text import block, inline
from greenroom.results import CaseResult, Problem, Status
from reports.payloads import PAYLOADS, SOME_PAYLOADS
from reports.strangers import report as strange


def rendered(report: Report, baseline: Report | None = None) -> str:
    return MarkdownReport().render(report, baseline=baseline)


@tool
def stock(item: str) -> int:
    """How many are left."""
    raise RuntimeError("never reached in a rehearsal")


def played(left: int) -> Report:
    answer = f"{left} cups."
    agent = Agent("shop", model=Scripted(call("stock", item="cup"), answer), tools=[stock])
    asked: dict[str, Any] = {"says": "Cups?", "mocks": {"stock": 3}}
    cases = [
        Case("good", **asked, metrics=[contains("cups")], tags=["smoke"]),
        Case("flips", **asked, expect=Expect(contains="3"), tags=["smoke"]),
        Case("unmocked", says="Cups?", metrics=[contains("cups")]),
    ]
    return rehearse(agent, EvalSet("shop", cases, name="The shop"))


def test_the_verdict_comes_first():
    assert rendered(played(4)).startswith(
        "### <code>The shop</code>: 1 of 2 passed, 1 ended in an error\n"
    )
    fine = Report([CaseResult(case_id="a", status="passed", scores={"m": Score(1.0)})])
    assert rendered(fine).startswith("### 1 of 1 passed\n")
    assert rendered(Report([])).startswith("### nothing was evaluated\n")


def test_counts_and_rate_are_a_table():
    text = rendered(played(4))
    assert "| passed | failed | error | terminated | skipped | pass rate |\n" in text
    assert "| 1 | 1 | 1 | 0 | 0 | **50 % ± 41** |\n" in text
    nothing = rendered(Report([CaseResult(case_id="a", status="skipped")]))
    assert "pass rate" not in nothing


def test_its_first_line_says_alone_whether_it_is_worse_than_the_baseline():
    text = rendered(played(4), baseline=played(3))
    assert text.startswith("### ❌ Worse than the baseline: 1 case regressed\n")
    assert "| pass rate (2 cases) | 100 % | 50 % | −50 points (−100 to +56), no significant" in text
    assert "| <code>expected&#95;contains</code> | 1.00 | 0.00 | −1.00 |" in text
    assert "| **<code>flips</code>** | 1 of 1 | 0 of 1 | regressed |" in text
    assert "2 of 3 cases compare: 1 ended in an error." in text
    assert "A run without any change is called worse at most 1 time in 20.</sub>" in text


def of(*statuses: Status, **more) -> Report:
    results = [CaseResult(case_id=f"c{n}", status=s) for n, s in enumerate(statuses)]
    return Report(results, **more)


@pytest.mark.parametrize(
    "then, now, told",
    [
        (["passed"] * 9, ["failed"] * 9, "❌ Worse than <code>main</code>: pass rate 100 % → 0 %"),
        (["passed"] * 9, ["passed"] * 9, "✅ Not significantly worse than <code>main</code>"),
        (["passed"] * 2, ["passed", "failed"], "⚠️ Not decided: 1 flip"),
        (["passed"], ["error"], "⛔ Could not be compared: no case was evaluated on both sides"),
    ],
)
def test_each_end_has_a_head_of_its_own(then, now, told):
    head = rendered(of(*now), baseline=of(*then, name="main.json")).splitlines()[0]
    assert head.startswith(f"### {told}")


def test_a_comparison_can_be_rendered_alone():
    text = render_comparison(of("failed", "passed").compare(of("passed", "passed")))
    assert text.startswith("### ⚠️ Not decided: 1 flip\n")
    assert "| <code>c0</code> | 1 of 1 | 0 of 1 | flipped |" in text


def test_without_a_baseline_nothing_is_said_of_one():
    text = rendered(played(4))
    assert "baseline" not in text
    assert "| change |" not in text


def test_failing_cases_are_folded_with_their_reason_and_conversation():
    text = rendered(played(4))
    [flips, unmocked] = re.findall(r"<details><summary><b>.*?</details>", text, re.S)
    assert flips.startswith(
        "<details><summary><b>failed</b> <code>flips</code></summary>\n\n```text"
    )
    assert "expected_contains: turn 1: missing '3'" in flips
    assert 'tool         stock(item="cup") → 3  (mock)' in flips
    assert "agent        4 cups." in flips
    assert "<b>error</b> <code>unmocked</code>" in unmocked


def test_a_report_from_a_file_still_tells_what_was_said(tmp_path):
    text = rendered(Report.load(played(4).save(tmp_path / "r.json")))
    assert 'tool         stock(item="cup")\nagent        4 cups.' in text


def test_cost_and_tokens_are_told_with_unknown_as_unknown():
    one = CaseResult(
        case_id="a",
        status="passed",
        ended="completed",
        models={"gpt": 1},
        usage=Usage(1200, 34),
        cost=0.02,
    )
    assert "cost **$0.0200**; 1,200 tokens in, 34 out; answered by <code>gpt</code>" in (
        rendered(Report([one]))
    )
    unknown = replace(one, cost=None, usage=None)
    text = rendered(Report([unknown]), baseline=Report([one]))
    assert "cost **unknown** (before: $0.0200); tokens unknown" in text
    played = replace(one, user_models={"gpt": 1}, user_cost=0.5, judge_models={"o3": 4})
    text = rendered(Report([played]))
    assert "users **$0.5000**, tokens unknown, simulated by <code>gpt</code>" in text
    assert "judges **unknown**, tokens unknown, judged by <code>o3</code>" in text
    asleep = CaseResult(case_id="a", status="skipped")
    assert "cost" not in rendered(Report([asleep]))


def test_tags_are_folded_with_their_rates():
    assert "| <code>smoke</code> | 1 of 2 | 50 % ± 41 | $0.00 |" in rendered(played(4))


# The limit


def failing(n: int, message: str) -> Report:
    broke = CaseResult(case_id="c", status="error", error=Problem("agent", message))
    return Report([replace(broke, case_id=f"c{i}") for i in range(n)])


def test_a_comment_is_never_longer_than_github_takes_and_says_what_is_left_out():
    text = rendered(failing(500, "it broke " * 100))
    assert LIMIT - 2_000 < len(text.encode()) <= LIMIT
    shown = text.count("<details><summary><b>error</b>")
    assert text.endswith(
        f"_{500 - shown} more cases that did not pass: the comment would be too long._\n"
    )
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("text", ["|" * 400, "ö" * 400, "\x00" * 400, "`" * 400, "word " * 5_000])
def test_the_limit_holds_whatever_names_cases_metrics_tags_and_models_have(text):
    results = [
        replace(
            strange(f"{n}{text}").results[0],
            kept=None,
            tags=[f"{n}.{m}{text}" for m in range(3)],
            models={f"{n}{text}": 1},
        )
        for n in range(60)
    ]
    report = Report(results, name=text, notes=[text] * 50)
    whole = rendered(report, baseline=Report([replace(r, status="passed") for r in results]))
    assert len(whole.encode()) <= LIMIT
    assert "more cases are not shown" in whole
    assert_inert(whole)


# Strangers' text

TAGS = {"h3", "sub", "p", "b", "strong", "em", "code", "pre", "details", "summary"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}


class Page(HTMLParser):
    """What a browser would make of it: the elements, and the text outside of code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.outside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "code" not in self.open:
            self.outside += data


def page(markdown: str) -> Page:
    return Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def assert_inert(markdown: str) -> Page:
    found = page(markdown)
    assert set(found.tags) <= TAGS | TABLES
    assert set(found.attributes) <= {("class", "language-text")}
    assert not found.open
    for sign in ("@", "#", "http", "www", "<", "`", "[", "evil", "octocat", "\x1b"):
        assert sign not in found.outside
    return found


@pytest.mark.parametrize(
    "payloads",
    [SOME_PAYLOADS, pytest.param(PAYLOADS, marks=pytest.mark.heavy)],
    ids=["some", "all"],
)
def test_no_text_of_strangers_acts_or_leaves_its_place(payloads):
    fine = strange("fine")
    calm = page(rendered(fine, baseline=strange("calm")))
    for payload in payloads:
        found = assert_inert(rendered(strange(payload), baseline=fine))
        assert found.tags == calm.tags, payload
        assert found.outside.splitlines()[0] == calm.outside.splitlines()[0], payload


@given(st.text())
def test_any_text_keeps_the_shape_of_the_comment(text):
    assert_inert(rendered(strange(text)))


@given(st.text())
def test_an_inline_text_is_one_line_in_one_element(text):
    said = inline(text)
    assert "\n" not in said
    assert not said or re.fullmatch(r"<code>[^<>`*_\[\]|\\@:$!]*</code>", said)


@given(st.text(alphabet="`~\n abc<>|", max_size=60))
def test_a_block_ends_where_it_should(text):
    html = MarkdownIt("commonmark", {"html": True}).render(f"{block(text)}\n\nafter\n")
    assert html.endswith("</code></pre>\n<p>after</p>\n")
    assert html.count("<pre>") == 1
