"""The pages of the web in a real browser, with a server whose answers are written down."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from threading import Event
from typing import Any

import pytest

from browser.chromium import Heard, chromium, opened, until
from browser.hostile import PAYLOADS, SOME_PAYLOADS
from browser.sample_reports import rich_report
from browser.served_pages import HERE, OTHER, PLAY, RUN, RUNS, TEXT, TOKEN, Answers, served_pages
from greenroom.reports.html import render_html
from marks import heavy

pytestmark = pytest.mark.slow

PAGES = {
    "runs": "/runs",
    "run": f"/runs/{RUN}",
    "case": f"/runs/{RUN}#case=refund-broken-parcel&event=10",
    "compare": f"/compare?a={OTHER}&b={RUN}#case=refund-broken-parcel&beside=1",
    "sets": "/sets",
    "set": "/sets/desk",
    "plays": "/play",
    "play": "/play/p1",
    "agent": "/agent/0",
    "labels": "/label",
    "label": "/label/polite",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def server() -> Iterator[tuple[str, Answers]]:
    with served_pages() as found:
        yield found


@contextmanager
def looked_at(browser: Any, address: str, token: str = TOKEN, **options: Any):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, **options)
    try:
        if token:
            context.add_init_script(f"localStorage.setItem('greenroom-token', '{token}')")
            context.add_init_script("localStorage.setItem('greenroom-rater', 'ana')")
        page = context.new_page()
        heard = Heard()
        heard.listen_to(page)
        page.goto(address)
        yield page, heard
    finally:
        context.close()


def ready(page: Any) -> None:
    until(page, "performance.getEntriesByName('greenroom-ready').length > 0")


def flaws(page: Any) -> list[Any]:
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document)")
    return [(one["id"], [n["html"][:120] for n in one["nodes"]]) for one in found["violations"]]


def trial(position: int, case: str) -> str:
    data = json.dumps({"run": RUN, "case": case, "trial": 1, "status": "failed"})
    return f"id: {position}\nevent: trial\ndata: {data}\n\n"


# One code


@pytest.mark.parametrize(
    "hash",
    [heavy(""), "#case=refund-broken-parcel", heavy("#case=cancel-flight&status=error")],
)
def test_the_file_and_the_page_show_the_same(browser, server, tmp_path, hash):
    file = tmp_path / "rich.html"
    file.write_text(render_html(rich_report()), encoding="utf-8")
    with opened(browser, file, hash) as (page, _):
        ready(page)
        in_file = [page.locator(part).aria_snapshot() for part in ("#main", "#opened")]
    with looked_at(browser, f"{server[0]}/runs/{RUN}{hash}") as (page, heard):
        ready(page)
        page.evaluate("document.querySelector('#above .page-bar')?.remove()")
        for name in ("Add to set…", "Play on", "Rerun…", "Ledger ⬇"):
            page.evaluate(
                f"[...document.querySelectorAll('#opened button')].find(b => b.textContent === {name!r})?.remove()"
            )
        assert [page.locator(part).aria_snapshot() for part in ("#main", "#opened")] == in_file
        assert heard.errors == []


# The key to the page


def test_the_token_is_taken_out_of_the_address_and_serves_later_pages(browser, server):
    with looked_at(browser, f"{server[0]}/runs#t={TOKEN}", token="") as (page, heard):
        ready(page)
        assert TOKEN not in page.url
        page.goto(f"{server[0]}/sets")
        ready(page)
        assert "desk.yaml" in page.inner_text("main")
        assert heard.errors == []


def test_without_the_token_the_page_says_where_it_is(browser, server):
    with looked_at(browser, f"{server[0]}/runs", token="") as (page, _):
        until(page, "document.body.textContent.includes('Open the address that')")


def test_the_printed_address_works_in_a_tab_that_is_open_already(browser, server):
    with looked_at(browser, f"{server[0]}/sets", token="") as (page, _):
        until(page, "document.body.textContent.includes('Open the address that')")
        page.goto(f"{server[0]}/sets#t={TOKEN}")
        page.get_by_role("link", name="desk.yaml").wait_for(timeout=600_000)
        assert TOKEN not in page.url


# Live


def test_a_change_is_shown_once_and_the_stream_goes_on_where_it_was_cut(browser, server):
    address, answers = server
    # While a case is open the list does not move: what is new is counted.
    with looked_at(browser, f"{address}/runs/{RUN}#case=later") as (page, _):
        ready(page)
        answers.stream += [trial(8, "a"), trial(8, "a"), trial(9, "b"), ": cut\n\n"]
        until(
            page, "document.querySelector('.fresh-cases').textContent.startsWith('2 new results')"
        )
        del answers.stream[:]
        answers.stream += [trial(9, "b"), trial(10, "c")]
        until(
            page, "document.querySelector('.fresh-cases').textContent.startsWith('3 new results')"
        )
    assert answers.streams[0]["since"] == ["7"]
    assert answers.streams[-1]["since"] == ["9"]


def test_a_hidden_tab_lets_go_of_its_stream_and_takes_it_up_again(browser, server):
    address, answers = server
    with looked_at(browser, f"{address}/runs/{RUN}") as (page, _):
        ready(page)
        until(page, "document.querySelector('.live').textContent === '● live'")
        hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))"
        page.evaluate(hide % "true")
        until(page, "document.querySelector('.live').textContent === '○ resting'")
        before = len(answers.streams)
        page.evaluate(hide % "false")
        until(page, "document.querySelector('.live').textContent === '● live'")
        assert len(answers.streams) == before + 1


@pytest.mark.heavy
def test_eight_tabs_load_and_all_of_them_catch_up(browser, server):
    """A browser opens six lines to a host: without care the seventh tab would never load."""
    address, answers = server
    context = browser.new_context()
    try:
        context.add_init_script(f"localStorage.setItem('greenroom-token', '{TOKEN}')")
        tabs = [context.new_page() for _ in range(8)]
        for tab in tabs:
            tab.goto(f"{address}/runs/{RUN}#case=later", timeout=600_000)
            ready(tab)
        answers.stream += [trial(8, "a"), trial(9, "b")]
        for tab in tabs:
            until(
                tab,
                "document.querySelector('.fresh-cases').textContent.startsWith('2 new results')",
            )
        marks = [tab.inner_text(".live") for tab in tabs]
        assert sum(mark == "● live" for mark in marks) == 4
        for tab in tabs[:4]:
            tab.close()
        for tab in tabs[4:]:  # a line that is let go of is taken by another tab
            until(tab, "document.querySelector('.live').textContent === '● live'")
    finally:
        context.close()


# Doing


def test_two_runs_are_chosen_and_compared(browser, server):
    with looked_at(browser, f"{server[0]}/runs") as (page, _):
        ready(page)
        assert "so far" in page.inner_text(".run-rows")
        for box in (0, 1):
            page.get_by_role("checkbox").nth(box).check()
        page.get_by_role("link", name="Compare the two").click()
        until(page, f"location.search === '?a={OTHER}&b={RUN}'")
        ready(page)
        assert "Compared with the baseline" in page.inner_text("main")


def test_a_line_joins_runs_of_the_same_cases_past_one_of_others(browser, server):
    with looked_at(browser, f"{server[0]}/runs") as (page, _):
        ready(page)
        points = page.locator(".trend a")
        told = [points.nth(n).get_attribute("aria-label") for n in range(points.count())]
        assert [("other cases" in one) for one in told] == [n in (3, 6) for n in range(8)]
        assert page.locator(".trend-line").count() == 5
        assert "▲ other cases than before" in page.inner_text("main")


def test_what_a_run_will_cost_is_shown_before_it_begins_with_its_command(browser, server):
    address, answers = server
    with looked_at(browser, f"{address}/runs") as (page, _):
        ready(page)
        page.get_by_role("button", name="Rehearse…").click()
        page.get_by_label("trials").fill("5")
        page.get_by_label("trials").press("Tab")
        until(page, "document.querySelector('.plan').textContent.includes('--trials 5')")
        assert "about $0.1800, up to $0.2500" in page.inner_text(".plan")
        assert not any(path == "/api/runs" for _, path, _ in answers.acts)
        page.get_by_role("button", name="Begin").click()
        page.wait_for_url(f"**/runs/{RUN}", timeout=600_000)
    assert ("POST", "/api/runs", {"plan": "q1"}) in answers.acts


def test_every_action_shows_its_command_before_it_is_done(browser, server, monkeypatch):
    address, answers = server
    monkeypatch.setitem(RUNS[1], "state", "interrupted")
    with looked_at(browser, f"{address}/runs") as (page, heard):
        ready(page)
        command, confirm = page.locator("dialog .command code"), page.get_by_role("dialog")
        page.get_by_role("button", name="Stop…").click()
        assert command.inner_text() == "$ kill -INT 4711"
        confirm.get_by_role("button", name="Stop").click()
        confirm.wait_for(state="detached")
        page.get_by_role("button", name="Resume…").click()
        assert command.inner_text() == f"$ greenroom eval run agent.py:desk --resume {RUN}"
        assert confirm.get_by_role("button", name="Resume").is_disabled()  # it would import code
        page.get_by_label("I know this code").check()
        confirm.get_by_role("button", name="Resume").click()
        confirm.wait_for(state="detached")
        page.get_by_role("button", name="Delete…").last.click()
        assert command.inner_text() == f"$ greenroom runs delete {OTHER} --store .greenroom"
        confirm.get_by_role("button", name="Delete").click()
        confirm.wait_for(state="detached")
        page.goto(f"{address}/sets/desk")
        ready(page)
        edited = "$ $EDITOR desk.yaml && greenroom eval-set validate desk.yaml"
        assert page.locator(".command code").inner_text() == edited
        assert heard.errors == []
    assert answers.acts == [
        ("POST", f"/api/runs/{RUN}/stop", {}),
        ("POST", f"/api/runs/{OTHER}/resume", {"code": ["judges.py:polite"]}),
        ("DELETE", f"/api/runs/{OTHER}", {}),
    ]


def test_a_command_that_begins_no_run_says_why(browser, server, monkeypatch):
    address, answers = server
    usual = answers.get
    ended = {"id": "1", "command": "x", "state": "ended", "exit_code": 3, "said": "no such case"}
    monkeypatch.setattr(
        answers, "get", lambda path, query: ended if "children" in path else usual(path, query)
    )
    with looked_at(browser, f"{address}/runs") as (page, _):
        ready(page)
        page.get_by_role("button", name="Rehearse…").click()
        page.get_by_role("button", name="Begin").click()
        page.get_by_text("No run was started.").wait_for()
        assert page.locator("dialog pre").inner_text() == "no such case"


def test_another_trial_of_the_baseline_is_put_beside(browser, server):
    address, answers = server
    usual, wanted = answers.get, []

    def get(path: str, query: dict[str, list[str]]) -> Any:
        found = usual(path, query)
        if path == "/api/compare/story":
            wanted.append(query.get("trial_a"))
            first = found["before"][0]
            found["before"] = [{**first, "n": 1}, {**first, "n": 2}]
            found["earlier"]["n"] = int((query.get("trial_a") or ["1"])[0])
        return found

    answers.get = get
    with looked_at(browser, address + PAGES["compare"]) as (page, heard):
        ready(page)
        page.get_by_role("button", name="trial 2", exact=False).last.click()
        until(page, "document.querySelector('.two-heads').textContent.includes('trial 2')")
        assert "with=2" in page.url
        assert heard.errors == []
    assert wanted == [None, ["2"]]


def test_a_recorded_case_is_added_to_a_set_and_played_from_an_event(browser, server):
    address, answers = server
    with looked_at(browser, address + PAGES["case"]) as (page, _):
        ready(page)
        page.get_by_role("button", name="Add to set…").click()
        page.get_by_label("id of the case").fill("kept's")
        says = page.locator("dialog .command code").inner_text()
        assert says.startswith(f"$ greenroom eval-set add desk.yaml --from-run {RUN} ")
        assert """ --id 'kept'"'"'s' """ in says
        page.get_by_label("id of the case").fill("kept")
        page.get_by_role("button", name="Save").click()
        page.wait_for_url("**/sets/desk#case=kept")
        page.goto(address + PAGES["case"])
        ready(page)
        page.get_by_role("button", name="Play from event 10").click()
        page.wait_for_url("**/play/p1")
    recorded = {"run": RUN, "case": "refund-broken-parcel", "trial": 1}
    assert ("POST", "/api/sets/desk/cases", {**recorded, "id": "kept"}) in answers.acts
    assert ("POST", "/api/plays", {"from": {**recorded, "at": 10}}) in answers.acts


def test_an_edit_is_checked_as_it_is_typed_and_a_problem_leads_to_its_line(browser, server):
    with looked_at(browser, f"{server[0]}/sets/desk") as (page, _):
        ready(page)
        page.get_by_label("The text of desk.yaml").fill(f"{TEXT}    expct: 1\n")
        until(page, "document.querySelector('.problems').textContent.includes('Did you mean')")
        page.locator(".problems").get_by_role("button").click()
        start = page.evaluate("document.activeElement.selectionStart")
        assert TEXT[:start].count("\n") == 3


def test_a_conflict_shows_both_texts_and_loses_neither(browser, server):
    address, answers = server
    theirs = {
        "id": "desk",
        "name": "desk.yaml",
        "text": "cases: [theirs]\n",
        "digest": "d9",
        "shape": "yaml",
    }
    answers.refused["/api/sets/desk"] = (409, {"error": "changed", "theirs": theirs})
    with looked_at(browser, f"{address}/sets/desk") as (page, _):
        ready(page)
        page.get_by_label("The text of desk.yaml").fill("cases: [mine]\n")
        page.get_by_role("button", name="Save").click()
        assert page.get_by_label("Yours").input_value() == "cases: [mine]\n"
        assert page.get_by_label("On disk").input_value() == "cases: [theirs]\n"
        assert "first differ in line 1." in page.get_by_role("dialog").inner_text()
        page.get_by_role("button", name="Save yours").click()
        until(page, "document.querySelector('.page-bar').textContent.includes('· saved')")
    saved = [act for act in answers.acts if act[0] == "PUT"]  # what is typed is checked meanwhile
    assert saved[-1] == ("PUT", "/api/sets/desk", {"text": "cases: [mine]\n"})


def test_a_play_answers_questions_fills_in_mocks_and_forks(browser, server):
    address, answers = server
    with looked_at(browser, f"{address}/play/p1") as (page, heard):
        ready(page)
        page.get_by_label("say something").fill("hello")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('.say textarea').value === ''")
        page.get_by_role("button", name="Yes").click()
        page.get_by_role("button", name="Use this and continue").click()
        until(page, "!document.querySelector('.waits').textContent.includes('has no mock')")
        page.get_by_role("button", name="Fork before event 8").click()
        page.get_by_role("dialog").get_by_role("button", name="Fork").click()
        page.wait_for_timeout(200)
        assert heard.errors == []
    acts = [(path.rpartition("/")[2], body) for _, path, body in answers.acts]
    assert acts[0] == ("say", {"text": "hello"})
    assert acts[1] == ("answer", {"answers": {"y1": True}})
    assert acts[2] == ("mocks", {"mocks": {**PLAY["mocks"], "refund": {"value": "ok"}}})
    assert acts[3] == ("fork", {"at": 8})


def test_a_mock_that_is_refused_stays_to_be_corrected(browser, server):
    address, answers = server
    answers.refused["/api/plays/p1/mocks"] = (400, {"error": "that is no mock"})
    with looked_at(browser, f"{address}/play/p1") as (page, _):
        ready(page)
        typed = page.get_by_label("what refund answers")
        typed.fill('{"amount": 7}')
        page.get_by_role("button", name="Use this and continue").click()
        page.get_by_role("alert").wait_for()
        assert typed.input_value() == '{"amount": 7}'
        assert page.get_by_role("button", name="Save as a case…").is_disabled()
        page.get_by_role("button", name="Use this and continue").click()
        until(page, "!document.querySelector('.waits').textContent.includes('has no mock')")
        typed = page.get_by_role("textbox", name="lookup_order")
        typed.fill('{"fault": {"error": "sold out"}}')
        page.get_by_role("button", name="Apply the mock of lookup_order").click()
        until(page, "!document.querySelector('.page-bar').textContent.includes('working')")
    first, second = (body["mocks"] for _, path, body in answers.acts if path.endswith("/mocks"))
    assert first["refund"] == {"value": {"amount": 7}}
    assert second["lookup_order"] == {"fault": {"error": "sold out"}}


def test_a_conversation_is_graded_by_keys_alone(browser, server):
    address, answers = server
    with looked_at(browser, f"{address}/label/polite") as (page, heard):
        ready(page)
        page.keyboard.press("n")
        page.keyboard.type("it said 1")
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        until(page, "document.body.textContent.includes('13 of 50 graded')")
        page.keyboard.press("u")
        until(page, "!document.querySelector('[aria-label=note]').value")
        page.wait_for_timeout(200)
        assert heard.errors == []
    path, mine = "/api/labels/polite/grades", {"item": "i1", "rater": "ana"}
    assert answers.acts == [
        ("POST", path, {**mine, "value": "no", "note": "it said 1"}),
        ("POST", path, {**mine, "value": None, "note": ""}),
    ]


def test_two_people_grade_in_two_tabs_of_one_browser(browser, server):
    address, answers = server
    context = browser.new_context()
    try:
        context.add_init_script(f"localStorage.setItem('greenroom-token', '{TOKEN}')")
        ana, ben = context.new_page(), context.new_page()
        for tab, name in ((ana, "ana"), (ben, "ben")):
            tab.goto(f"{address}/label/polite")
            ready(tab)
            tab.get_by_label("your name").fill(name)
            tab.keyboard.press("Enter")
            until(tab, "document.querySelector('#ask-title') !== null")
        ana.reload()
        ready(ana)
        for tab in (ana, ben):
            tab.keyboard.press("1")
            until(tab, "document.body.textContent.includes('13 of 50 graded')")
    finally:
        context.close()
    assert [body["rater"] for _, _, body in answers.acts] == ["ana", "ben"]


def test_a_key_that_is_held_grades_once(browser, server):
    address, answers = server
    with looked_at(browser, f"{address}/label/polite") as (page, _):
        ready(page)
        for _ in range(5):
            page.keyboard.down("1")
        page.wait_for_timeout(400)
    assert len(answers.acts) == 1


def test_a_page_that_is_only_read_offers_nothing_to_do(browser, server, monkeypatch):
    monkeypatch.setitem(HERE, "read_only", True)
    with looked_at(browser, f"{server[0]}/runs") as (page, _):
        ready(page)
        assert page.get_by_role("button", name="Rehearse…").count() == 0
        assert page.get_by_role("button", name="Stop").count() == 0
        assert page.get_by_role("link", name="Play").count() == 0
        assert page.get_by_text("read-only", exact=True).is_visible()


def test_a_page_that_is_not_there_leads_to_the_others(browser, server):
    with looked_at(browser, f"{server[0]}/elsewhere") as (page, _):
        page.route("**/api/runs/gone", lambda route: route.fulfill(status=404, json={"error": "x"}))
        page.goto(f"{server[0]}/runs/gone")
        page.get_by_role("alert").wait_for()
        page.get_by_role("link", name="Sets").click()
        ready(page)
        assert page.url.endswith("/sets")


def test_how_far_a_large_run_is_read_is_shown(browser, server, monkeypatch):
    address, answers = server
    usual, is_read = answers.get, Event()

    def slow(path, query):
        if path == f"/api/runs/{RUN}":
            is_read.wait()
        return usual(path, query)

    monkeypatch.setattr(answers, "get", slow)
    with looked_at(browser, f"{address}/runs/{RUN}") as (page, heard):
        page.get_by_text("Reading 3 of 12 trials…").wait_for()
        is_read.set()
        ready(page)
        assert heard.errors == []


def test_a_store_without_runs_says_how_one_begins(browser, server, monkeypatch):
    address, answers = server
    usual = answers.get
    monkeypatch.setattr(
        answers, "get", lambda path, query: {"runs": []} if path == "/api/runs" else usual(path, query)
    )  # fmt: skip
    with looked_at(browser, f"{address}/runs") as (page, heard):
        ready(page)
        shown = page.inner_text("main")
        assert "greenroom eval run agent.py:desk desk.yaml" in shown
        assert "compare" not in shown
        page.goto(f"{address}/runs#set=other")
        page.get_by_text("No run of this set and agent.").wait_for()
        assert page.get_by_role("combobox", name="set").is_visible()
        assert heard.errors == []


# Seen by everybody


@pytest.mark.parametrize("scheme", ["light", heavy("dark")])
@pytest.mark.parametrize("name", [heavy(name) if name != "case" else name for name in PAGES])
def test_axe_finds_nothing_to_object_to(browser, server, name, scheme):
    pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    width = 1280 if scheme == "light" else 390
    with looked_at(browser, server[0] + PAGES[name], color_scheme=scheme) as (page, heard):
        page.set_viewport_size({"width": width, "height": 800})
        ready(page)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert flaws(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert heard.errors == []


def test_keys_lead_from_page_to_page(browser, server):
    with looked_at(browser, f"{server[0]}/runs") as (page, _):
        ready(page)
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.wait_for_url("**/sets")
        ready(page)
        page.keyboard.press("?")
        assert page.get_by_role("dialog", name="Keys").is_visible()


_REACHED = """
() => {
  const held = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
  const shown = held.filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }) && !one.closest("details:not([open]) > :not(summary)"));
  return shown.filter((one) => !one.wasReached).map((one) => one.outerHTML.slice(0, 120));
}
"""
_FOCUSED = """
() => {
  const now = document.activeElement;
  now.wasReached = true;
  const style = getComputedStyle(now);
  return now === document.body || style.outlineStyle !== "none" || style.boxShadow !== "none" ? "" : now.outerHTML.slice(0, 120);
}
"""


@pytest.mark.parametrize(
    "name", [heavy(name) if name not in ("label", "play") else name for name in PAGES]
)
def test_everything_is_reached_by_the_keyboard_and_seen_to_be(browser, server, name):
    with looked_at(browser, server[0] + PAGES[name]) as (page, _):
        ready(page)
        page.wait_for_timeout(200)
        unseen: set[str] = set()
        for _ in range(160):
            page.keyboard.press("Tab")
            unseen.add(page.evaluate(_FOCUSED))
            if not page.evaluate(_REACHED):
                break
        assert page.evaluate(_REACHED) == []
        assert unseen - {""} == set()


@pytest.mark.parametrize(
    "name", [heavy(name) if name not in ("compare", "label") else name for name in PAGES]
)
def test_what_is_printed_is_not_cut(browser, server, name):
    with looked_at(browser, server[0] + PAGES[name]) as (page, heard):
        ready(page)
        page.set_viewport_size({"width": 720, "height": 1000})
        page.emulate_media(media="print")
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 721
        cut = page.evaluate(
            """() => [...document.querySelectorAll("main *, #opened *, #print *")].filter((one) =>
              one.checkVisibility() && !one.matches("textarea, .unseen") && one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 &&
              ["hidden", "auto", "scroll"].includes(getComputedStyle(one).overflowX)).map((one) => one.outerHTML.slice(0, 160))"""
        )
        assert cut == []
        assert page.locator("nav[aria-label=Pages]").is_hidden()
        assert heard.errors == []


def test_a_flaky_case_says_where_its_trials_part(browser, server):
    with looked_at(browser, f"{server[0]}/runs/{RUN}#case=flaky-greeting") as (page, _):
        ready(page)
        assert "trial 1 passed and trial 2 did not" in page.locator("#opened").inner_text()


def test_a_printed_set_is_its_whole_text_with_long_lines_wrapped(browser, server):
    long = "# " + "said again and again " * 40
    with looked_at(browser, server[0] + PAGES["set"]) as (page, _):
        ready(page)
        page.set_viewport_size({"width": 720, "height": 1000})
        page.get_by_role("textbox", name="The text of").fill(f"{long}\n" * 60)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.locator(".on-paper").inner_text() == f"{long}\n" * 60
        assert page.locator(".on-paper").evaluate("one => one.scrollWidth <= one.clientWidth")
        assert page.locator("textarea").is_hidden()


def test_an_opened_case_is_what_is_printed(browser, server):
    with looked_at(browser, server[0] + PAGES["case"]) as (page, _):
        ready(page)
        page.emulate_media(media="print")
        assert page.locator("#opened .timeline").is_visible()
        assert page.locator("#opened").get_by_role("button", name="Close").count() == 0
        assert page.locator("main").is_hidden()


def test_what_paper_needs_is_read_before_it_is_printed(browser, server):
    with looked_at(browser, server[0] + PAGES["run"]) as (page, _):
        ready(page)
        page.evaluate("() => { window.print = () => dispatchEvent(new Event('beforeprint')); }")
        page.keyboard.press("Control+p")
        until(page, "document.querySelectorAll('#print article').length > 0")


_OVERLAPPING = """() => [...document.querySelectorAll("main tbody tr")].flatMap((row) => {
  const boxes = [...row.children].map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return [cell.textContent, range.getBoundingClientRect()];
  });
  return boxes.flatMap(([text, one], place) => boxes.slice(place + 1).filter(([, other]) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1).map(([also]) => [text, also]));
})"""


@pytest.mark.parametrize("name", ["runs", "run"])
def test_a_phone_shows_charts_and_tables_whole(browser, server, name):
    with looked_at(browser, server[0] + PAGES[name]) as (page, _):
        page.set_viewport_size({"width": 390, "height": 800})
        ready(page)
        until(
            page,
            """[...document.querySelectorAll("main .scroll")].every((one) => one.scrollWidth <= one.clientWidth)""",
        )
        assert page.locator("main .scroll").count() > 0
        assert page.evaluate(_OVERLAPPING) == []


# Hostile

_ACTIVE = (
    "iframe, object, embed, link:not([rel=stylesheet]), base, form, video, audio, math, body style"
)


_KEPT = ("kind", "state", "status", "id", "run", "sort", "differs", "source", "role", "phase", "n", "verdict")  # fmt: skip
_FIRST = [
    next(n for n, one in enumerate(PAYLOADS) if one.startswith(start))
    for start in ("<script", "javascript:", "data:", "' autofocus")
]
"""Some only act where a text begins with them."""


_EVERY = [SOME_PAYLOADS, *(heavy((*PAYLOADS[n:], *PAYLOADS[:n])) for n in _FIRST)]


@pytest.mark.parametrize("payloads", _EVERY, ids=["some", *map(str, _FIRST)])
def test_no_hostile_answer_acts_on_any_page(browser, server, monkeypatch, payloads):
    """Every field of every answer holds all of these texts."""
    address, answers = server
    every = "\n".join(payloads)
    usual = answers.get

    def poisoned(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: poisoned(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [poisoned(inner, key) for inner in value]
        return every if isinstance(value, str) and key not in _KEPT else value

    monkeypatch.setattr(answers, "get", lambda path, query: poisoned(usual(path, query)))
    # One tab for all pages: a new one takes longer than a page does.
    with looked_at(browser, "about:blank") as (page, heard):
        for path in PAGES.values():
            page.goto("about:blank")
            page.goto(address + path)
            until(page, "document.body.innerText.includes('evil.example')")
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            assert page.locator(_ACTIVE).count() == 0
            assert page.evaluate("window.__pwned") is None
            assert heard.dialogs == []
            assert [one for one in heard.requests if not one.startswith(address)] == []
            assert [
                one for one in heard.errors if "Trusted" in one or "Content Security" in one
            ] == []
