"""The HTML report in a real browser: usable, reachable, and deaf to everything hostile."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from browser.chromium import chromium, opened, until
from browser.hostile import PAYLOADS, SOME_PAYLOADS, hostile_report
from browser.sample_reports import earlier_report, many_cases, rich_report
from greenroom import Case, Expect, Report, Score, Unmeasured, rehearse, step
from greenroom.ledger import AgentSaid, Ledger
from greenroom.reports.html import render_html
from greenroom.results import CaseResult, Problem
from greenroom.world import Scopes
from marks import heavy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def rich(folder: Path) -> Path:
    return written(folder / "rich.html", render_html(rich_report()))


@pytest.fixture(scope="module")
def compared(folder: Path) -> Path:
    return written(folder / "compared.html", render_html(rich_report(), baseline=earlier_report()))


def written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def listed(page) -> list[str]:
    return page.eval_on_selector_all(
        ".rows .row .case-id", "found => found.map(one => one.textContent)"
    )


def opened_title(page) -> str:
    return until(page, "document.querySelector('#opened:not([hidden]) .case-title')?.textContent")


def until_opened(page, title: str) -> None:
    until(page, f"document.querySelector('#opened .case-title')?.textContent === {title!r}")


def until_count(page, words: str) -> None:
    until(page, f"document.querySelector('.count').textContent.startsWith({words!r})")


# Looking through cases


def test_the_cases_that_need_a_look_come_first_and_nothing_is_loaded(browser, rich):
    with opened(browser, rich) as (page, heard):
        assert listed(page)[:2] == ["cancel-flight", "refund-broken-parcel"]
        assert listed(page)[-1] == "no-ledger"
        endless = page.locator(".rows .row", has_text="endless-chat").inner_text()
        assert "1 m 15 s" in endless
        assert "$" not in endless
        assert heard.nothing, heard


def test_filters_search_and_sorting_narrow_and_order_the_list(browser, rich):
    with opened(browser, rich) as (page, heard):
        page.get_by_role("group", name="Status").get_by_role("button", name="failed").click()
        assert listed(page) == ["refund-broken-parcel"]
        page.get_by_role("group", name="Status").get_by_role("button", name="flaky").click()
        assert listed(page) == ["refund-broken-parcel", "flaky-greeting"]
        page.get_by_role("group", name="Missed metric").get_by_role(
            "button", name="trajectory"
        ).click()
        assert listed(page) == ["refund-broken-parcel"]
        page.get_by_role("button", name="Clear filters").click()
        page.get_by_role("group", name="Tag", exact=True).get_by_role("button", name="chat").click()
        assert listed(page) == ["endless-chat", "later"]
        page.get_by_role("button", name="Clear filters").click()
        page.get_by_role("columnheader", name="Time").get_by_role("button").click()
        assert listed(page)[0] == "endless-chat"
        page.get_by_role("columnheader", name="Case").get_by_role("button").click()
        assert listed(page) == sorted(listed(page))
        assert heard.nothing, heard


def test_searching_looks_into_conversations_too(browser, rich):
    with opened(browser, rich) as (page, _):
        page.fill("#search", "cancel my FLIGHT")
        until_count(page, "1 of 7")
        assert listed(page) == ["cancel-flight"]
        page.fill("#search", "nobody ever said this")
        until_count(page, "0 of 7")
        assert page.get_by_text("No case matches these filters.").is_visible()


def test_names_in_the_charts_are_filters(browser, rich):
    with opened(browser, rich) as (page, _):
        page.locator(".tag-rows").get_by_role("button", name="travel").click()
        assert listed(page) == ["cancel-flight", "no-ledger"]


def test_an_opened_case_tells_its_whole_story(browser, rich):
    with opened(browser, rich) as (page, heard):
        page.get_by_text("refund-broken-parcel").first.click()
        assert opened_title(page) == "refund-broken-parcel"
        told = page.inner_text("#opened")
        for words in (
            "Expected and actual", "wrong arguments", "2 of 3 votes pass", "No word of regret.",
            "refund(order=\"A-7\", amount=120)", "mock", "waits for the user", "Which order?",
            "I have refunded $120", "mailbox full", "1,542 tokens in", "$0.0008", "claude-haiku",
        ):  # fmt: skip
            assert words in told, words
        changed = page.locator(".changes").filter(has_text="session.orders.A-7").first.inner_text()
        assert changed == 'session.orders.A-7 "delivered" → "refunded"'
        assert page.locator("#opened .event .bar").count() > 5
        assert page.locator("#opened mark").all_inner_texts() == ["99", "120"]
        page.locator(".score", has_text="politeness").get_by_text("Evidence").click()
        assert "It never apologises for the damage." in page.inner_text("#opened")
        votes = page.locator(".score", has_text="politeness").locator("table .pill")
        assert votes.all_inner_texts() == ["✓ yes", "✗ no", "✓ yes"]
        assert heard.nothing, heard


def test_trials_of_one_case_are_one_row_and_each_can_be_opened(browser, rich):
    with opened(browser, rich, "#case=flaky-greeting") as (page, _):
        assert opened_title(page) == "flaky-greeting"
        assert page.locator("#opened .case-head .pill").first.inner_text() == "≈ flaky"
        assert "trial 2: failed" in page.inner_text("#opened .case-head")
        page.get_by_role("button", name="trial 3").click()
        until(
            page, "document.querySelector('#opened .facts').textContent.includes('trial 3: passed')"
        )
        assert "trial=3" in page.url


def test_a_run_without_its_ledger_shows_its_trajectory_and_says_so(browser, rich):
    with opened(browser, rich, "#case=no-ledger") as (page, _):
        opened_title(page)
        assert "The ledger was not kept" in page.inner_text("#opened")
        assert "lookup_order" in page.inner_text("#opened")


def test_a_link_shows_what_its_sender_saw(browser, rich):
    with opened(browser, rich, "#status=failed&q=refund&sort=-case&case=refund-broken-parcel") as (
        page,
        _,
    ):
        assert opened_title(page) == "refund-broken-parcel"
        assert page.input_value("#search") == "refund"
        assert (
            page.get_by_role("button", name="✗ failed 1", exact=True).get_attribute("aria-pressed")
            == "true"
        )
        page.evaluate("location.hash = '#case=<img src=x onerror=alert(1)>'")
        until(page, "document.getElementById('opened').hidden")


def test_the_back_button_closes_the_case(browser, rich):
    with opened(browser, rich) as (page, _):
        page.get_by_text("endless-chat").first.click()
        opened_title(page)
        page.evaluate("history.back()")
        until(page, "document.getElementById('opened').hidden")


# The baseline


def test_a_baseline_shows_what_changed_and_by_how_much(browser, compared):
    with opened(browser, compared) as (page, heard):
        told = page.inner_text(".compared")
        assert "Flipped, one trial each 2" in told
        assert "expected_tools 1.00 → 0.67 (−0.33)" in told
        for words in (
            "New 1",
            "Removed 1",
            "Unclear 2",
            "no significant change",
            "1 flip is not proof",
        ):
            assert words in told
        page.locator(".compared a", has_text="refund-broken-parcel").click()
        assert opened_title(page) == "refund-broken-parcel"
        assert "−0.33 since 1.00" in page.inner_text("#opened")
        page.keyboard.press("Escape")
        page.get_by_role("group", name="Since baseline").get_by_role(
            "button", name="flipped"
        ).click()
        assert set(listed(page)) == {"refund-happy", "refund-broken-parcel"}
        assert heard.nothing, heard


# Keys


def test_everything_can_be_done_with_the_keyboard(browser, rich):
    with opened(browser, rich) as (page, _):
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        until_opened(page, "refund-broken-parcel")
        assert page.evaluate("document.activeElement.id") == "opened-title"
        page.keyboard.press("j")
        until_opened(page, "flaky-greeting")
        page.keyboard.press("[")
        until(page, "location.hash.includes('trial=1')")
        page.keyboard.press("k")
        until_opened(page, "refund-broken-parcel")
        page.keyboard.press("Escape")
        until(page, "document.getElementById('opened').hidden")
        assert "refund-broken-parcel" in page.evaluate("document.activeElement.textContent")
        page.keyboard.press("/")
        page.keyboard.type("later")
        until_count(page, "1 of 7")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert opened_title(page) == "later"
        page.keyboard.press("?")
        assert page.get_by_role("dialog", name="Keys").is_visible()
        page.keyboard.press("Escape")
        assert page.get_by_role("dialog", name="Keys").is_hidden()
        assert opened_title(page) == "later"


def test_tabbing_follows_the_page_and_can_skip_to_the_cases(browser, rich):
    with opened(browser, rich, "#case=later") as (page, _):
        opened_title(page)
        assert page.locator("[tabindex]:not([tabindex='0']):not([tabindex='-1'])").count() == 0
    with opened(browser, rich) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the cases"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "list"


# What a case and a run show


def test_header_and_filters_count_the_same_cases(browser, rich):
    with opened(browser, rich) as (page, _):
        header = dict(line.rsplit(" ", 1) for line in page.locator(".key li").all_inner_texts())
        chips = page.get_by_role("group", name="Status").get_by_role("button").all_inner_texts()
        assert header == dict(line.rsplit(" ", 1) for line in chips)
        assert sum(map(int, header.values())) == 7
        page.locator(".key").get_by_role("button", name="flaky").click()
        assert listed(page) == ["flaky-greeting"]
        assert "status=flaky" in page.url


def test_a_case_that_broke_shows_no_score_even_if_a_metric_measured_it(browser, folder):
    scores = {"good": Score(1.0), "bad": Unmeasured("the judge fell silent")}
    broken = CaseResult(
        case_id="broken", status="error", ended="completed", scores=scores,
        error=Problem("metric", "the judge fell silent", "Silence"),
    )  # fmt: skip
    file = written(folder / "broken.html", render_html(Report([broken])))
    with opened(browser, file) as (page, _):
        assert page.locator(".rows .c-score").inner_text() == ""


def test_figures_say_on_the_spot_what_they_are(browser, folder):
    trials = [
        CaseResult(case_id="a", trial=n, status="passed" if n < 3 else "failed", ended="completed",
                   scores={"m": Score(float(n < 3))}, models={"m": 1}, user_models={"u": 1},
                   cost=0.5, user_cost=0.25, judge_cost=0.0)
        for n in (1, 2, 3)
    ]  # fmt: skip
    file = written(folder / "figures.html", render_html(Report(trials)))
    with opened(browser, file) as (page, _):
        told = page.inner_text(".tiles")
        assert "the chance that all 3 trials of a case pass" in told
        assert "total cost" in told
        assert "agent $1.50 · users $0.7500" in told
        cost = page.get_by_role("columnheader", name="Cost").get_by_role("button")
        assert cost.get_attribute("title").startswith("Agent, user and judges")


def test_a_reason_is_told_once_and_then_the_conversation(browser, rich):
    with opened(browser, rich, "#case=cancel-flight") as (page, _):
        opened_title(page)
        told = page.inner_text("#opened")
        assert told.count("tool 'cancel_flight' has no mock.") == 1
        assert "the error above" in told
    with opened(browser, rich, "#case=refund-broken-parcel") as (page, _):
        opened_title(page)
        page.get_by_text("Conversation", exact=True)
        told = page.inner_text("#opened")
        assert "said 'I have refunded $120" not in told
        assert told.index("Why it fell short") < told.index("Conversation")
        assert told.index("Conversation") < told.index("What was met")


def test_a_score_that_a_hook_replaced_is_marked_where_it_is_shown(browser, folder):
    scores = {"exact": Score(1.0), "polite": Unmeasured("the judge was off"), "short": Score(1.0)}
    replaced = {
        "exact": "by the hook 'mild'; it was 0.00",
        "polite": "by the hook 'mild'; it was 1.00",
    }
    result = CaseResult(
        case_id="a", status="passed", ended="completed", scores=scores, replaced=replaced
    )
    page_file = written(folder / "replaced.html", render_html(Report([result])))
    with opened(browser, page_file) as (page, _):
        page.locator(".rows .row").click()
        until_opened(page, "a")
        marks = {
            name: page.locator(".score", has_text=name).locator(".replaced").all_inner_texts()
            for name in scores
        }
    assert marks == {
        "exact": ["replaced by the hook 'mild'; it was 0.00"],
        "polite": ["replaced by the hook 'mild'; it was 1.00"],
        "short": [],
    }


def test_metrics_with_other_arguments_are_one_row(browser, folder):
    scores = {"called('a')": Score(1.0), "called('b', times=2)": Score(0.0, reason="never")}
    result = CaseResult(case_id="a", status="failed", ended="completed", scores=scores)
    file = written(folder / "families.html", render_html(Report([result])))
    with opened(browser, file) as (page, _):
        assert page.locator(".metric-rows tbody > tr").count() == 1
        page.get_by_text("2 with other arguments").click()
        assert "called('b', times=2)" in page.inner_text(".metric-rows")
        page.get_by_role("group", name="Missed metric").get_by_role("button", name="called").click()
        assert "metric=called" in page.url


def test_a_reason_that_several_share_lists_the_cases_that_have_it(browser, folder):
    def case(name: str, metric: str, reason: str) -> CaseResult:
        scores = {metric: Score(0.0, reason=reason)}
        return CaseResult(case_id=name, status="failed", ended="completed", scores=scores)

    alike = [case(name, f"called('{name}')", "it was never called") for name in ("one", "two")]
    report = Report([*alike, case("three", "exact", "something else")])
    file = written(folder / "reasons.html", render_html(report))
    with opened(browser, file) as (page, _):
        page.get_by_role("button", name="called: it was never called").click()
        page.get_by_text("2 of 3 cases").wait_for(timeout=600_000)


def test_the_agents_graph_shows_the_way_the_trial_took(browser, rich):
    with opened(browser, rich, "#case=refund-broken-parcel") as (page, _):
        opened_title(page)
        assert page.locator(".part.node.visited b").all_inner_texts() == ["clerk"]
        told = page.inner_text(".picture")
        assert "route on intent" in told
        assert "refund × 1" in told or "refund" in told
        assert "agency" in told


def test_a_comparison_opens_at_the_first_difference(browser, compared):
    with opened(browser, compared) as (page, heard):
        page.locator(".compared a", has_text="refund-broken-parcel").click()
        opened_title(page)
        assert "beside=1" in page.url
        first = page.locator(".pair.first.act")
        assert "amount=99" in first.inner_text()
        assert "amount=120" in first.inner_text()
        box = first.bounding_box()
        assert box is not None
        assert 0 < box["y"] < 900
        assert "first different words" in page.inner_text(".beside-view")
        page.keyboard.press("n")
        page.keyboard.press("n")
        assert "3 days" in page.evaluate("document.activeElement.textContent")
        page.keyboard.press("c")
        until(page, "!location.hash.includes('beside')")
        assert page.locator(".timeline").count() == 1
        assert heard.nothing, heard


def test_the_state_at_an_event_is_in_the_address(browser, rich):
    with opened(browser, rich, "#case=refund-broken-parcel") as (page, _):
        opened_title(page)
        call = page.locator(".event.tool", has_text="refund(")
        call.get_by_role("button").click()
        until(page, "location.hash.includes('event=')")
        shown = page.inner_text(".at-event")
        assert '"refunded"' in shown
        assert "changed here" in shown
        address = page.url
        page.get_by_role("button", name="Only what was said and done").click()
        assert "brief=1" in page.url
        page.keyboard.press("E")
        until(page, f"location.href !== {address!r}")
    with opened(browser, rich, address[address.index("#") :]) as (page, _):
        opened_title(page)
        assert "changed here" in page.inner_text(".at-event")


def test_only_what_a_text_lacks_and_what_a_step_changed_is_marked(browser, folder):
    @step
    def note(state: Scopes) -> str:
        state.session["order"] = "A-7"
        return "Order A-7 is on its way."

    case = Case("late", says="Where is it?", expect=Expect(contains=["A-7", "tomorrow"]))
    report = rehearse(note >> note, case, store=False)
    ended = max(event.seq for event in report["late"].ledger if event.kind == "node_ended")
    file = written(folder / "lacking.html", render_html(report))
    with opened(browser, file, f"#case=late&event={ended}") as (page, _):
        opened_title(page)
        missed = page.locator(".sides .mark")
        assert missed.all_inner_texts() == ["tomorrow"]
        changes = page.locator(".changes li").all_inner_texts()
        assert changes == ['session.order "A-7"', "session.order written again, unchanged"]
        assert "session.order" in page.inner_text(".at-event")  # of the row that stands for its end


def test_a_phone_shows_whole_ids_and_folds_the_filters(browser, rich):
    with opened(browser, rich) as (page, _):
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_timeout(150)
        assert not page.get_by_role("group", name="Status").is_visible()
        page.locator(".folds summary").click()
        assert page.get_by_role("group", name="Status").is_visible()
        cut = page.eval_on_selector_all(
            ".rows .case-id",
            "found => found.filter(one => one.scrollHeight > one.clientHeight + 1).length",
        )
        assert cut == 0


GOLDEN = Path(__file__).parent / "golden"
VIEWS = {
    "run": "",
    "case": "#case=refund-broken-parcel",
    "beside": "#case=refund-broken-parcel&beside=1",
    "error": "#case=cancel-flight&status=error",
}


@pytest.mark.parametrize("view", VIEWS)
def test_what_a_screen_reader_hears_is_as_it_was(browser, compared, view):
    """After a deliberate change: delete the file, run this, look at the difference, commit it."""
    with opened(browser, compared, VIEWS[view], timezone_id="UTC") as (page, _):
        if VIEWS[view]:
            opened_title(page)
        heard = page.locator("body").aria_snapshot() + "\n"
    golden = GOLDEN / f"{view}.yaml"
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(heard, encoding="utf-8")
    assert heard == golden.read_text(encoding="utf-8")


# Seen by everybody


def colours(page) -> tuple[str, str]:
    style = "getComputedStyle(document.body)"
    return page.evaluate(f"[{style}.backgroundColor, {style}.color]")


def test_light_and_dark_follow_the_system_and_the_readers_choice(browser, rich):
    with opened(browser, rich, color_scheme="light") as (page, _):
        light = colours(page)
    with opened(browser, rich, color_scheme="dark") as (page, _):
        assert colours(page) != light
        page.keyboard.press("t")
        assert colours(page) == light
        assert "theme=light" in page.url


def flaws(page) -> list[Any]:
    """What axe objects to. Its source is evaluated from outside: the page itself would refuse it."""
    source = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    page.evaluate(source)
    found = page.evaluate("axe.run(document)")
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found["violations"]
    ]


@pytest.mark.parametrize("scheme", [heavy("light"), "dark"])
@pytest.mark.parametrize(
    "hash",
    [heavy(""), "#case=refund-broken-parcel", heavy("#case=cancel-flight&status=error")],
)
def test_axe_finds_nothing_to_object_to(browser, compared, scheme, hash):
    pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    with opened(browser, compared, hash, color_scheme=scheme) as (page, _):
        if "case" in hash:
            opened_title(page)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert flaws(page) == []


def test_a_narrow_screen_needs_no_scrolling_sideways(browser, compared):
    for place in ("", "#case=refund-broken-parcel"):
        with opened(browser, compared, place) as (page, _):
            page.set_viewport_size({"width": 390, "height": 800})
            page.wait_for_timeout(100)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_scripts_the_summary_and_the_fallen_cases_are_there(browser, rich):
    with opened(browser, rich, java_script_enabled=False) as (page, _):
        told = page.inner_text("main")
        assert "53 %" in told
        assert "Scripts are switched off" in told
        assert "refund-broken-parcel" in told
        assert "refund-happy" not in told


def test_paper_gets_the_summary_and_the_fallen_cases_in_full(browser, rich):
    with opened(browser, rich) as (page, _):
        page.wait_for_timeout(500)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        told = page.inner_text("body")
        assert "53 %" in told
        assert "I have refunded $120" in told
        assert "No word of regret." in told
        assert "Search" not in told
        assert not page.locator("#cases").is_visible()
        assert page.locator(".printed").count() == 4


def test_paper_unfolds_what_is_folded_and_folds_it_again(browser, compared):
    with opened(browser, compared) as (page, _):
        folded = page.locator(".compared details:not([open])")
        before = folded.count()
        assert before
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert folded.count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert folded.count() == before


# Very many, and very large


@pytest.mark.heavy
def test_thousands_of_cases_are_listed_without_thousands_of_nodes(browser, folder):
    file = written(folder / "many.html", render_html(many_cases(1200)))
    with opened(browser, file) as (page, heard):
        assert page.inner_text(".count") == "1,200 cases"
        assert page.locator("*").count() < 2500
        page.evaluate("scrollTo(0, 60000)")
        until(page, "document.querySelector('.rows .row').getAttribute('aria-rowindex') > 1000")
        page.fill("#search", "A-1118")
        until_count(page, "1 of 1,200")
        assert listed(page) == ["case-01118"]
        assert heard.nothing, heard


def test_a_case_takes_so_little_room_that_ten_thousand_fit_into_sixty_megabytes():
    assert len(render_html(many_cases(300)).encode()) < 1_800_000


def test_what_was_cut_is_said_and_where_the_rest_is(browser, folder):
    ledger = Ledger()
    ledger.append(AgentSaid(text="word " * 10_000), at=0.0)
    result = CaseResult(
        case_id="long", status="failed", ended="completed", scores={"m": Score(0.0)}, kept=ledger
    )
    file = written(folder / "long.html", render_html(Report([result])))
    with opened(browser, file, "#case=long") as (page, _):
        opened_title(page)
        told = page.inner_text("#opened")
        assert "38000 more characters" in told
        assert "1 long value of this case was shortened" in told
        assert "ledger.save" in told


def test_a_run_that_found_no_room_says_where_it_is(browser, folder):
    page_text = render_html(
        Report([CaseResult(case_id="a", status="failed", scores={"m": Score(0.0)})])
    )
    file = written(folder / "full.html", page_text.replace('"pack":[0,0]', '"pack":null'))
    with opened(browser, file, "#case=a") as (page, heard):
        opened_title(page)
        assert "Its ledger and the JSON report have it." in page.inner_text("#opened")
        assert "below its threshold" in page.inner_text("#opened")
        assert heard.nothing, heard


# Hostile


def test_the_canary_sings_where_nothing_is_escaped(browser, folder):
    file = written(folder / "naive.html", f"<!doctype html><body>{PAYLOADS[12]}</body>")
    with opened(browser, file) as (page, _):
        assert until(page, "window.__pwned") == 1


def test_the_policy_refuses_scripts_and_styles_that_are_not_the_pages_own(browser, rich):
    with opened(browser, rich) as (page, heard):
        refused = page.evaluate("""() => {
            try { document.body.innerHTML += "<img src=x onerror='window.__pwned=1'>"; return false }
            catch (error) { return true }
        }""")
        assert refused
        page.evaluate(
            "() => { const one = document.createElement('a'); one.setAttribute('style', 'color: red'); document.body.append(one) }"
        )
        assert page.evaluate("window.__pwned") is None
        assert any(
            "Content Security Policy" in error or "TrustedHTML" in error for error in heard.errors
        )


_ACTIVE = "iframe, object, embed, img, link, base, form, video, audio, source, math, body style"

# Goes through all cases inside the page, with everything unfolded, as fast as it shows them.
_WALK = """async ([active, count]) => {
    const title = () => document.querySelector("#opened .case-title")?.textContent;
    const seen = new Set();
    for (let last = null; title() !== last; ) {
        last = title();
        seen.add(last);
        for (const one of document.querySelectorAll("#opened details")) one.open = true;
        if (document.querySelector(active)) return `${last}: ${document.querySelector(active).outerHTML}`;
        if (seen.size === count) break;
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
        for (let tries = 0; tries < 400 && title() === last; tries += 1) await new Promise((on) => setTimeout(on, 5));
    }
    return [...seen];
}"""


@pytest.mark.parametrize(
    "payloads",
    [SOME_PAYLOADS, pytest.param(PAYLOADS, marks=pytest.mark.heavy)],
    ids=["some", "all"],
)
def test_no_hostile_text_acts_whatever_is_opened(browser, folder, payloads):
    report = hostile_report(payloads)
    page_text = render_html(report, baseline=report, title=PAYLOADS[0])
    file = written(folder / "hostile.html", page_text)
    with opened(browser, file) as (page, heard):
        scripts = page.locator("script").count()
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        opened_title(page)
        found = page.evaluate(_WALK, [_ACTIVE, len(payloads)])
        assert len(found) == len(payloads), found
        assert any("<script>" in title for title in found)
        page.keyboard.press("Escape")
        page.fill("#search", PAYLOADS[0])
        page.wait_for_timeout(300)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("script").count() == scripts
        assert page.locator(_ACTIVE).count() == 0
        assert page.evaluate("window.__pwned") is None
        assert heard.nothing, heard
