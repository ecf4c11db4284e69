"""A set that names Python code is run from the page only after somebody has looked at that code."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm_python
from greenroom.apps.web.sets_page import code_in
from greenroom.store.web_address import served_at
from web.serving import Server, kill, project, rehearse, until

NAMED = """version: 1
id: refunds
metrics:
- criterion: llm_judge
  prompt: "Is it polite? Answer in two words: yes.py: no"
  judge_model: evil.py:judge
cases:
- {id: refund-001, says: a refund for order 1}
"""


@pytest.fixture
def server(tmp_path: Path, serve: Callable[..., Server]) -> Server:
    project(tmp_path, 2)
    (tmp_path / "evil.py").write_text("open('imported', 'w').close()\njudge = None\n")
    return serve(tmp_path, "shop.py:agent", "refunds.yaml")


def planned(server: Server) -> Any:
    status, found = server.request("/api/runs/plan", "POST", {"agent": 0, "set": "refunds"})
    assert status == 200, found
    return found


def test_the_server_imports_nothing_that_a_text_names(server: Server) -> None:
    for text in (NAMED, NAMED.replace("criterion: llm_judge", "criterion: nothing")):
        status, found = server.request("/api/sets/refunds/check", "POST", {"text": text})
        assert status == 200
        assert bool(found["problems"]) == ("nothing" in text)
    (server.folder / "refunds.yaml").write_text(NAMED)
    assert server.get("/api/here")["sets"][0]["cases"] == 1
    assert server.get("/api/sets/refunds")["cases"][0]["id"] == "refund-001"
    assert not (server.folder / "imported").exists()


def test_a_run_of_a_set_that_names_code_is_asked_about(server: Server) -> None:
    before = planned(server)
    assert "code" not in before
    digest = server.get("/api/sets/refunds")["digest"]
    status, _ = server.request("/api/sets/refunds", "PUT", {"text": NAMED}, {"If-Match": digest})
    assert status == 200
    # The estimate that was shown before the change begins nothing either.
    status, found = server.request("/api/runs", "POST", {"plan": before["plan"]})
    assert (status, found["code"]) == (400, ["evil.py:judge"])
    assert planned(server)["code"] == ["evil.py:judge"]
    for agreed in (None, True, [], ["other.py:judge"]):
        body = {"plan": planned(server)["plan"], "code": agreed}
        assert server.request("/api/runs", "POST", body)[0] == 400
    assert server.get("/api/here").get("children", []) == []
    assert not (server.folder / "imported").exists()
    body = {"plan": planned(server)["plan"], "code": ["evil.py:judge"]}
    assert server.request("/api/runs", "POST", body)[0] == 200
    until((server.folder / "imported").exists)


def test_a_run_that_is_resumed_is_asked_about_too(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    project(tmp_path, 300)
    run = rehearse(tmp_path, "--max-concurrency", "1")
    server = serve(tmp_path, "shop.py:agent", "refunds.yaml")
    until(lambda: any(one.get("counts") for one in server.get("/api/runs")["runs"]))
    kill(run)
    (interrupted,) = server.get("/api/runs")["runs"]
    file = tmp_path / "refunds.yaml"
    file.write_text(
        NAMED.partition("cases:")[0] + "cases:" + file.read_text().partition("cases:")[2]
    )
    resume = f"/api/runs/{interrupted['id']}/resume"
    shown = server.get(resume)
    assert shown["code"] == ["evil.py:judge"]
    status, found = server.request(resume, "POST", {})
    assert (status, found["code"]) == (400, ["evil.py:judge"])
    status, child = server.request(resume, "POST", {"code": found["code"]})
    assert (status, child["command"]) == (200, shown["command"])


@pytest.mark.parametrize(
    "text, found",
    [
        ("cases: [{id: a, says: hi, model: 'm.py:x'}]", ["m.py:x"]),
        ("cases: [{id: a, says: 'look into m.py:x please'}]", []),
        (
            "cases: [{id: a, says: hi, user: {persona: p, model: 'deep/m.py:x.y'}}]",
            ["deep/m.py:x.y"],
        ),
        ("judge_model: openai:gpt-4o-mini\ncases: []", []),
        ("judge_model: 'j.py:m'\ncases: [{id: a, says: hi, model: 'j.py:m'}]", ["j.py:m"]),
        ("cases: [", []),
    ],
)
def test_code_is_found_wherever_it_stands(text: str, found: list[str]) -> None:
    assert code_in(Path("set.yaml"), text) == found


def test_a_run_in_the_terminal_says_where_it_can_be_followed(server: Server) -> None:
    def said() -> str:
        command = [
            sys.executable,
            "-m",
            "greenroom",
            "eval",
            "run",
            "shop.py:agent",
            "refunds.yaml",
        ]
        run = warm_python.run(
            [*command, "--store", "runs"],
            check=False,
            cwd=server.folder,
            capture_output=True,
            text=True,
        )
        return run.stderr

    place = server.folder / "runs"
    assert served_at(place) == f"http://127.0.0.1:{server.port}"
    heard = said()
    assert f"follow it: http://127.0.0.1:{server.port}/runs" in heard
    assert server.token not in heard
    assert server.process is not None
    kill(server.process)
    assert (place / "web" / "server.json").exists()
    assert served_at(place) == ""
    for torn in ("", "[]", '{"pid": "x"}', '{"pid": 99999999999999, "port": 1, "address": "x"}'):
        (place / "web" / "server.json").write_text(torn)
        assert served_at(place) == ""
