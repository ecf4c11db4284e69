"""People grade trials on the page: blind, two at once, and across restarts."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from browser.chromium import chromium
from greenroom import Ledger
from greenroom.apps.web.labels_page import blind_rows
from greenroom.ledger import RunStarted, ToolCalled, ToolReturned
from greenroom.ledger.plain import Json
from greenroom.results import LabelSet
from warm_python import WarmPython
from web.serving import Server, kill, wait

_AGENT = """
from greenroom import Agent, call, tool
from greenroom.models.model import ModelReply

@tool
def look_up(number: int) -> str:
    "Look up an order."
    raise RuntimeError("the body ran")

class Hidden:
    name = "gpt-hidden"
    async def respond(self, request, on_delta=None):
        if request.messages[-1].role == "user":
            return ModelReply(calls=(call("look_up", number=7),))
        return ModelReply("Your refund is done, dear customer.")

agent = Agent("secretive", instructions="You are the hidden desk.", model=Hidden(), tools=[look_up])
"""
_CASES = """
from greenroom import Case, EvalSet, Score

def polite(case, ledger):
    good = int(case.id.split("-")[1]) % 2 == 0
    return Score(1.0 if good else 0.0, reason="WORDS OF THE JUDGE")

cases = [Case(f"order-{n:02}", says=f"a refund for order {n}", mocks={"look_up": "shipped"}) for n in range(24)]
refunds = EvalSet("refunds-expected", cases=cases, metrics=[polite])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    (folder / "desk.py").write_text(_AGENT)
    (folder / "cases.py").write_text(_CASES)
    run = greenroom(folder, "eval", "run", "desk.py:agent", "cases.py:refunds")
    wait(run)
    drawn = ("--question", "Is it polite?", "--metric", "polite", "--count", "24")
    assert greenroom(folder, "labels", "draw", "2", *drawn, "-o", "labels/tone").wait(600) == 0
    return folder


def greenroom(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    store = [] if arguments[:2] == ("labels", "agreement") else ["--store", "runs"]
    command = [sys.executable, "-m", "greenroom", *arguments, *store]
    with (folder / "said.log").open("wb") as log:
        return WarmPython(command, cwd=folder, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def started(project: Path) -> Iterator[Server]:
    found = Server(project).start()
    yield found
    found.stop()


@pytest.fixture
def server(started: Server) -> Server:
    (started.folder / "labels" / "tone" / "grades.jsonl").unlink(missing_ok=True)
    return started


def following(server: Server, rater: str) -> Any:
    return server.get(f"/api/labels/tone/next?rater={rater}")


def grade(server: Server, rater: str, item: str, value: str | None) -> Any:
    body = {"item": item, "rater": rater, "value": value, "note": ""}
    status, found = server.request("/api/labels/tone/grades", "POST", body)
    assert status == 200, found
    return found


def test_what_is_graded_shows_no_verdict_and_no_name(server: Server) -> None:
    found = following(server, "ana")
    text = str(found)
    for hidden in (
        "secretive", "gpt-hidden", "hidden desk", "WORDS OF THE JUDGE", "polite(", "passed", "failed",
        "score", "refunds-expected", "order-", server.get("/api/runs")["runs"][0]["id"],
    ):  # fmt: skip
        assert hidden not in text
    kinds = [(row["kind"], row.get("who")) for row in found["timeline"]]
    assert kinds == [("user", None), ("tool", "look_up"), ("agent", None)]
    assert found["question"] == "Is it polite?"
    item = found["item"]
    assert "WORDS OF THE JUDGE" not in str(grade(server, "ana", item, "no"))
    agreed = server.get("/api/labels/tone/agreement?rater=ana")
    assert not agreed.get("lines")
    assert not agreed.get("apart")


def test_a_hand_over_hides_the_names_of_agents() -> None:
    snapshot: Json = {
        "name": "desk",
        "kind": "team",
        "parts": {"a": {"name": "billing"}, "b": {"name": "tech"}},
    }
    events = (
        RunStarted(run_id="r", agent=snapshot),
        ToolCalled(call_id="1", tool="transfer_to_billing", args={}),
        ToolReturned(call_id="1", tool="transfer_to_billing", value="ok", source="mock"),
        ToolCalled(call_id="2", tool="transfer_to_agent", args={"agent_name": "tech", "n": 1}),
        ToolCalled(call_id="3", tool="mail_to_customer", args={"text": "billing is closed"}),
    )
    ledger = Ledger()
    for event in events:
        ledger.append(event, at=0.0)
    rows = blind_rows(ledger)
    assert [(row["who"], row["value"]["args"]) for row in rows] == [
        ("transfer_to_…", {}),
        ("transfer_to_agent", {"agent_name": "…", "n": 1}),
        ("mail_to_customer", {"text": "billing is closed"}),
    ]


def test_a_person_goes_on_after_the_server_was_killed(server: Server) -> None:
    item = following(server, "ana")
    for _ in range(3):
        item = grade(server, "ana", item["item"], "yes")
    assert server.process is not None
    kill(server.process)
    server.start()
    again = following(server, "ana")
    assert (again["item"], again["done"], again["total"]) == (item["item"], 3, 24)
    undone = grade(server, "ana", again["last"], None)
    assert (undone["item"], undone["done"]) == (again["last"], 2)


def test_two_people_at_once_lose_nothing_and_see_how_far_they_agree(server: Server) -> None:
    def grades(rater: str) -> int:
        item, count = following(server, rater), 0
        while item.get("item"):
            repeated = item["item"]
            item = grade(server, rater, repeated, "yes" if count % 2 else "no")
            grade(server, rater, repeated, "yes" if count % 2 else "no")
            count += 1
        return count

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(grades, ["ana", "ben"])) == [24, 24]
    labels = LabelSet(server.folder / "labels" / "tone")
    assert len(labels.grades()) == 48
    found = server.get("/api/labels/tone/agreement?rater=ana")
    assert [line["who"] for line in found["lines"]] in (
        [["ana", "ben"], ["ana", "the judge"]],
        [["ben", "ana"], ["ana", "the judge"]],
    )
    for line, other in zip(found["lines"], ("ben", "the judge"), strict=True):
        assert line["says"].startswith(f"You and {other} agree on ")
        assert "kappa" in line["says"]
    assert found["apart"]
    assert server.get("/api/labels")["labels"][0]["graded"] == {"ana": 24, "ben": 24}
    said = greenroom(server.folder, "labels", "agreement", "labels/tone")
    assert said.wait(600) == 0
    assert "and the judge agree on" in (server.folder / "said.log").read_text()


def test_agreement_is_shown_when_all_is_graded_and_no_grade_changes_after_it(
    server: Server,
) -> None:
    item, shown = following(server, "ana"), []
    while item.get("item"):
        assert not server.get("/api/labels/tone/agreement?rater=ana").get("lines")
        shown.append(item["item"])
        item = grade(server, "ana", shown[-1], "no")
    assert server.get("/api/labels/tone/agreement?rater=ana")["lines"]
    assert not item.get("last")
    for value in ("yes", None):
        body = {"item": shown[0], "rater": "ana", "value": value}
        status, found = server.request("/api/labels/tone/grades", "POST", body)
        assert status == 400
        assert "final" in found["error"]
    assert not server.get("/api/labels/tone/agreement?rater=ben").get("lines")
    assert set(LabelSet(server.folder / "labels" / "tone").said()["ana"].values()) == {"no"}


@pytest.mark.parametrize(
    "body, status",
    [
        ({"item": "nothing", "rater": "ana", "value": "yes"}, 404),
        ({"item": "../x", "rater": "ana", "value": "yes"}, 404),
        ({"rater": "ana", "value": "yes"}, 400),
        ({"item": "ITEM", "rater": "", "value": "yes"}, 400),
        ({"item": "ITEM", "rater": "the judge", "value": "yes"}, 400),
        ({"item": "ITEM", "rater": "ana", "value": "maybe"}, 400),
        ({"item": "ITEM", "rater": "ana", "value": 1}, 400),
        ({"item": "ITEM", "rater": "ana", "value": "yes", "note": ["x"]}, 400),
        ({"item": "ITEM", "rater": "ana", "value": "yes", "note": "x" * 2_001}, 400),
    ],
)
def test_what_is_no_grade_is_not_written(
    server: Server, body: dict[str, object], status: int
) -> None:
    if body.get("item") == "ITEM":
        body = {**body, "item": following(server, "ana")["item"]}
    assert server.request("/api/labels/tone/grades", "POST", body)[0] == status
    assert not (server.folder / "labels" / "tone" / "grades.jsonl").exists()


def test_a_set_is_only_what_lies_in_the_folder(server: Server) -> None:
    outside = server.folder / "elsewhere"
    outside.mkdir(exist_ok=True)
    (outside / "labels.json").write_text("{}")
    link = server.folder / "labels" / "linked"
    link.unlink(missing_ok=True)
    link.symlink_to(outside)
    try:
        assert [one["name"] for one in server.get("/api/labels")["labels"]] == ["tone"]
        for name in ("linked", "..", "%2e%2e", "..%2felsewhere", "none"):
            assert server.request(f"/api/labels/{name}/next?rater=ana")[0] == 404
    finally:
        link.unlink()


def test_a_page_that_is_only_read_takes_no_grade(
    project: Path, serve: Callable[..., Server]
) -> None:
    server = serve(project, "--read-only")
    item = following(server, "ana")["item"]
    body = {"item": item, "rater": "ana", "value": "yes"}
    assert server.request("/api/labels/tone/grades", "POST", body)[0] in (404, 405)


def test_behind_a_proxy_people_grade_under_their_own_name(
    project: Path, serve: Callable[..., Server]
) -> None:
    server = serve(project, "--auth-header", "X-User", "--proxy", "127.0.0.1")
    item = following(server, "eve")["item"]
    body = {"item": item, "rater": "eve", "value": "yes"}
    named = {"X-User": "carol"}
    assert server.request("/api/labels/tone/grades", "POST", body, named)[0] == 200
    raters = [one.rater for one in LabelSet(project / "labels" / "tone").grades()]
    assert "carol" in raters
    assert "eve" not in raters


@pytest.mark.heavy
def test_two_people_grade_by_keys_in_a_browser_while_the_server_is_killed(server: Server) -> None:
    def graded(tab: Any) -> str:
        return tab.locator("p[role=status]").inner_text()

    with chromium() as browser:
        context = browser.new_context()
        tabs = {name: context.new_page() for name in ("ana", "ben")}
        for name, tab in tabs.items():
            tab.goto(f"{server.origin}/label/tone#t={server.token}&rater={name}")
            tab.get_by_text("0 of 24 graded").wait_for(timeout=600_000)
            assert server.token not in tab.url
        for number in range(1, 4):
            for tab in tabs.values():
                tab.keyboard.press("1")
                tab.get_by_text(f"{number} of 24 graded").wait_for(timeout=600_000)
        assert server.process is not None
        kill(server.process)
        tabs["ana"].keyboard.press("2")
        tabs["ana"].get_by_text("The server does not answer").wait_for(timeout=600_000)
        server.start()  # at the same port, with another token
        tabs["ana"].goto(f"{server.origin}/label/tone#t={server.token}&rater=ana")
        tabs["ana"].get_by_text("3 of 24 graded").wait_for(timeout=600_000)
        for number in range(4, 25):
            tabs["ana"].keyboard.press("2")
            shown = f"{number} of 24 graded" if number < 24 else "All 24 trials are graded"
            tabs["ana"].get_by_text(shown).wait_for(timeout=600_000)
        tabs["ana"].get_by_text("You and the judge agree on").wait_for(timeout=600_000)
    by_rater = LabelSet(server.folder / "labels" / "tone").said()
    assert {name: len(said) for name, said in by_rater.items()} == {"ana": 24, "ben": 3}
