"""The HTML report as text: complete, self-contained, honest about what it does not know."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from browser.hostile import PAYLOADS, hostile_report
from browser.sample_reports import earlier_report, rich_report
from browser.trees import active, index, nodes, text
from greenroom import Report, Score
from greenroom.reports.html import render_html
from greenroom.results import CaseResult

GOOD = CaseResult(case_id="good", status="passed", ended="completed", scores={"m": Score(1.0)})
BAD = CaseResult(
    case_id="bad", status="failed", ended="completed", scores={"m": Score(0.0, reason="off by one")}
)


def noscript(page: str) -> str:
    return page[page.index("<noscript>") : page.index("</noscript>")]


def test_the_page_shows_its_summary_without_any_script():
    shown = text(noscript(render_html(rich_report())))
    for told in ("53 % (18–85)", "4 of 7 evaluated", "9 trials of 7 cases", "21.4 s", "flaky 1"):
        assert told in shown


def test_without_script_every_figure_is_there():
    report = replace(rich_report(), at=1_760_000_000.0)
    shown = text(noscript(render_html(report, baseline=earlier_report())))
    head = index(render_html(report, baseline=earlier_report()))["head"]
    assert "2025-10-09 08:53 UTC" in shown
    for kind, name in (("metrics", "name"), ("tags", "name"), ("nodes", "node")):
        assert head[kind]
        for line in head[kind]:
            assert line[name] in shown
    for spent in head["spent"]:
        assert all(model in shown for model in spent["models"])
        assert all(f"{number:,}" in shown for number in spent.get("tokens", []))
    twice = Report([GOOD, replace(GOOD, trial=2)])
    assert "pass^2 100.0 %" in text(noscript(render_html(twice)))


def test_without_script_the_comparison_names_its_cases_and_its_doubts():
    page = render_html(rich_report(), baseline=earlier_report())
    shown, compared = text(noscript(page)), index(page)["head"]["compared"]
    assert compared["says"] in shown
    assert compared["against"] in shown
    for line in [*compared.get("worse", []), *compared.get("remarks", [])]:
        assert line in shown
    for group in compared["verdicts"]:
        assert f"{group['verdict'].capitalize()}: {group['count']}" in shown
        assert all(case["id"] in shown for case in group["cases"])


def test_without_script_trials_that_were_run_again_are_told():
    worse = replace(BAD, case_id="good")
    again = [replace(worse, trial=n) for n in (2, 3)]
    report = Report([worse], confirmed=again, against="before")
    shown = text(noscript(render_html(report, baseline=Report([GOOD], id="before"))))
    assert "passed → failed, again 2 × failed" in shown
    assert "m 1.00 → 0.00 (−1.00)" in shown


def test_without_script_the_cases_that_did_not_pass_are_listed_with_their_reasons():
    told = text(noscript(render_html(Report([GOOD, BAD]))))
    assert "bad" in told
    assert "off by one" in told
    assert "good" not in told


def test_nothing_is_loaded_from_anywhere():
    page = render_html(rich_report(), baseline=earlier_report())
    assert list(active(page)) == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_the_policy_names_exactly_the_pages_own_script_and_style():
    page = render_html(Report([GOOD]))
    policy = next(a["content"] for _, a in nodes(page) if a.get("http-equiv"))
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert script is not None
    assert style is not None
    for kind, found in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_there_are_at_least_three_hundred_payloads_and_each_is_another():
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 300


def test_no_hostile_text_becomes_a_node():
    page = render_html(hostile_report(), baseline=hostile_report(), title=PAYLOADS[5])
    assert list(active(page)) == []
    tame = render_html(rich_report(), baseline=earlier_report())
    assert {(tag, *sorted(a)) for tag, a in nodes(page)} - {
        (tag, *sorted(a)) for tag, a in nodes(tame)
    } == set()


@pytest.mark.parametrize("payload", ["<script>x</script>", "</style><img onerror=x>"])
def test_the_check_of_nodes_sees_what_is_not_escaped(payload):
    page = render_html(Report([GOOD])).replace("<main", f"{payload}<main", 1)
    assert list(active(page))


def test_hostile_text_is_still_there_to_be_read():
    page = render_html(Report([GOOD], notes=["<img src=x onerror=alert(1)>"]))
    assert "<img src=x onerror=alert(1)>" in text(page)


def test_what_nobody_can_see_is_written_out():
    page = render_html(Report([GOOD], notes=["safe\u202eevil", "half \ud800 a character"]))
    assert "\\u202e" in text(page)
    page.encode()


def test_what_was_not_measured_is_absent():
    head = index(render_html(Report([GOOD])))["head"]
    for absent in ("compared", "spent", "steady", "tags", "nodes", "begun", "gate"):
        assert absent not in head


def test_a_price_that_is_unknown_is_said_to_be_unknown():
    priced = replace(GOOD, models={"gpt": 1}, cost=0.5)
    priced = replace(priced, user_cost=0.0, judge_cost=0.0)
    assert "$0.5000 in total" in noscript(render_html(Report([priced])))
    unknown = render_html(Report([priced, replace(priced, case_id="b", cost=None)]))
    assert "cost unknown" in noscript(unknown)
    assert "cost" not in index(unknown)["head"]


def test_a_rate_just_short_of_all_is_not_called_all():
    results = [replace(GOOD, case_id=str(n)) for n in range(2999)]
    told = text(noscript(render_html(Report([*results, BAD]))))
    assert "99.9 %" in told
    assert "100.0 %" not in told


def test_each_tag_has_its_rate_and_its_cost():
    cheap = replace(GOOD, tags=["a"], cost=0.25, models={"m": 1})
    dear = replace(BAD, tags=["a", "b"], cost=1.5)
    a, b = index(render_html(Report([cheap, dear])))["head"]["tags"]
    assert (a["passed"], a["evaluated"], a["rate"]["share"], a["cost"]) == (1, 2, 0.5, 1.75)
    assert (b["passed"], b["cost"]) == (0, 1.5)
    shown = text(noscript(render_html(Report([cheap, dear]))))
    assert "1/2" in shown
    assert "$1.75" in shown
    assert "$1.50" in shown


def test_an_empty_report_says_so():
    page = render_html(Report([]))
    assert "0 cases, nothing evaluated" in text(noscript(page))
    assert "rate" not in index(page)["head"]


def test_a_title_comes_before_the_reports_name():
    assert "<title>Mine</title>" in render_html(Report([GOOD], name="theirs"), title="Mine")
    assert "<title>theirs</title>" in render_html(Report([GOOD], name="theirs"))


def test_the_same_report_makes_the_same_page():
    assert render_html(rich_report()) == render_html(rich_report())
