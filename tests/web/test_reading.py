"""What the server answers about runs, trials and two runs alongside each other."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from web.serving import Server, project, rehearse, wait


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = project(tmp_path_factory.mktemp("two"), 30)
    wait(rehearse(folder))
    text = (folder / "shop.py").read_text()
    # Another length: Python takes a file of the same size and second for the one that it compiled.
    (folder / "shop.py").write_text(text.replace("number % 7 ", "number % 5 ") + "\n")
    wait(rehearse(folder))
    started = Server(folder).start()
    yield started
    started.stop()


def latest(server: Server) -> str:
    return server.get("/api/runs")["runs"][0]["id"]


def test_runs_are_listed_page_by_page(server: Server) -> None:
    first = server.get("/api/runs?limit=1")
    assert [one["evalset"] for one in first["runs"]] == ["refunds"]
    second = server.get(f"/api/runs?limit=1&before={first['next']}")
    assert second["runs"][0]["id"] != first["runs"][0]["id"]
    assert "next" not in second or not second["next"]
    assert server.get("/api/runs?set=none")["runs"] == []
    assert len(server.get("/api/trend?set=refunds")["points"]) == 2


def test_the_head_counts_what_the_list_shows(server: Server) -> None:
    run = latest(server)
    head = server.get(f"/api/runs/{run}")
    assert head["cases"] == 30
    assert head["agent"] == "shop.py:agent"
    for status, count in head["counts"].items():
        assert server.get(f"/api/runs/{run}/rows?status={status}&count=0")["total"] == count


def test_rows_are_narrowed_sorted_and_cut(server: Server) -> None:
    run = latest(server)
    all_rows = server.get(f"/api/runs/{run}/rows?sort=case")["rows"]
    assert [row["id"] for row in all_rows] == sorted(row["id"] for row in all_rows)
    back = server.get(f"/api/runs/{run}/rows?sort=-case&from=28&count=5")
    assert [row["id"] for row in back["rows"]] == ["refund-001", "refund-000"]
    smoke = server.get(f"/api/runs/{run}/rows?tag=smoke")
    assert {tag for row in smoke["rows"] for tag in row["tags"]} == {"smoke"}
    found = server.get(f"/api/runs/{run}/rows?q={quote('OVERLOADED refund-005')}")
    assert [row["id"] for row in found["rows"]] == ["refund-005"]
    near = server.get(f"/api/runs/{run}/rows?sort=case&count=5&around=refund-007")
    assert [row["id"] for row in near["rows"]] == [f"refund-00{n}" for n in range(5, 10)]
    assert (near["total"], near["first"], near["place"]) == (30, 5, 7)


@pytest.mark.parametrize("query", ["sort=up", "status=fine", "from=-1", "count=x", "min_s=nan"])
def test_what_cannot_be_meant_is_named(server: Server, query: str) -> None:
    status, said = server.request(f"/api/runs/{latest(server)}/rows?{query}")
    assert status == 400
    assert query.partition("=")[0] in said["error"]


def test_a_trial_is_told_with_its_events_and_its_state(server: Server) -> None:
    run = latest(server)
    story = server.get(f"/api/runs/{run}/story?case=refund-001&trial=1")
    said = [row["text"] for row in story["timeline"] if row["kind"] in ("user", "agent")]
    assert said == ["a refund for order 1", "refund done"]
    event = server.get(f"/api/runs/{run}/event?case=refund-001&trial=1&seq=0")
    assert event["event"]["kind"] == "run_started"
    for missing in (
        "case=nobody&trial=1&seq=0",
        "case=refund-001&trial=9&seq=0",
        "case=refund-001&seq=999",
    ):
        assert server.request(f"/api/runs/{run}/event?{missing}")[0] == 404


def test_how_much_of_a_run_is_read_can_be_asked(server: Server) -> None:
    run = latest(server)
    head = server.get(f"/api/runs/{run}")
    assert server.get(f"/api/runs/{run}/progress") == {
        "read": head["trials"],
        "trials": head["trials"],
    }
    assert server.request("/api/runs/nobody/progress")[0] == 404


def test_what_was_said_can_be_searched(server: Server) -> None:
    run = latest(server)
    assert server.get(f"/api/runs/{run}/rows?q=sorry")["total"] == 0
    status, text = server.request(f"/api/runs/{run}/find?words=sorry")
    assert status == 200
    assert '"done":1.0' in str(text).replace(" ", "") or text == {"done": 1.0}
    assert server.get(f"/api/runs/{run}/rows?q=sorry")["total"] == 5


def test_two_runs_are_compared_case_by_case(server: Server) -> None:
    b, a = (run["id"] for run in server.get("/api/runs")["runs"])
    head = server.get(f"/api/compare?a={a}&b={b}")
    assert head["compared"]["says"]
    changed = server.get(f"/api/compare/rows?a={a}&b={b}&change=flipped")
    assert "refund-010" in [row["id"] for row in changed["rows"]]
    story = server.get(f"/api/compare/story?a={a}&b={b}&case=refund-010&trial_a=1&trial_b=1")
    assert story["earlier"]["beside"]["words"] is not None


def test_the_trial_of_the_baseline_can_be_chosen(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = project(tmp_path_factory.mktemp("trials"), 3)
    for _ in range(2):
        wait(rehearse(folder, "--trials", "3"))
    server = Server(folder).start()
    try:
        b, a = (run["id"] for run in server.get("/api/runs")["runs"])
        both = f"/api/compare/story?a={a}&b={b}&case=refund-001&trial_b=2"
        for trial in (1, 2, 3):
            story = server.get(f"{both}&trial_a={trial}")
            assert story["earlier"]["n"] == trial
            assert [one["n"] for one in story["before"]] == [1, 2, 3]
        assert server.request(f"{both}&trial_a=9")[0] == 404
        assert server.get(both)["earlier"]["n"] in (1, 2, 3)
    finally:
        server.stop()


def test_downloads_are_what_the_command_line_writes(server: Server) -> None:
    run = latest(server)
    assert server.get(f"/api/runs/{run}/report.json")["kind"] == "report"
    status, page = server.request(f"/api/runs/{run}/report.html")
    assert (status, page[:15]) == (200, "<!doctype html>")
    _, ledger = server.request(f"/api/runs/{run}/ledger.jsonl?case=refund-001&trial=1")
    assert ledger.startswith('{"kind":"run_started"')


def test_pages_and_scripts_need_no_token(server: Server) -> None:
    for path in ("/", "/runs", "/runs/x", "/compare?a=1&b=2", "/sets/refunds", "/play", "/agent/0"):
        status, page = server.request(path, headers={"Authorization": ""})
        assert status == 200
        assert "<script" in page
        assert latest(server) not in page
    (style,) = re.findall(r'href="(/a/[^"]+)"', page)
    assert server.request(style, headers={"Authorization": ""})[0] == 200
    assert server.request(style.replace("page.css", "..%2fshapes.py"))[0] == 404
    assert server.request(re.sub(r"/a/\w+/", "/a/other/", style))[0] == 404
