"""What the page may do: save a set, play, start and stop runs; and nothing that was not named in the terminal."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.wire import openai, wire
from web.serving import Server, project, rehearse, until, wait

DESK = '''
from greenroom import Agent, Scripted, call, tool

@tool
def look_up(number: int) -> dict[str, str]:
    """Find an order."""
    open("acted", "w").write("yes")
    return {"state": "real"}

@tool(yields=True)
def approve(amount: float) -> bool:
    """Ask the user."""
    return True

class Clerk:
    name = "clerk"
    async def respond(self, request, on_delta=None):
        from greenroom.models.model import ModelReply
        last = request.messages[-1]
        if last.role == "user":
            return ModelReply(calls=(call("look_up", number=7),))
        if '"state"' in last.text:
            return ModelReply(calls=(call("approve", amount=9.5),))
        return ModelReply(f"Approved: {last.text}.")

agent = Agent("desk", model=Clerk(), tools=[look_up, approve])
'''


@pytest.fixture
def server(tmp_path: Path, serve: Callable[..., Server]) -> Server:
    project(tmp_path, 12)
    (tmp_path / "desk.py").write_text(DESK)
    (tmp_path / "plays.yaml").write_text(
        "# mine\nversion: 1\nid: plays\ncases:\n# all of them\n- id: a\n  says: hi\n"
    )
    return serve(tmp_path, "shop.py:agent", "desk.py:agent", "refunds.yaml", "plays.yaml")


def post(server: Server, path: str, body: object = None, wanted: int = 200) -> dict[str, Any]:
    status, found = server.request(path, "POST", body)
    assert status == wanted, found
    return found


@pytest.mark.e2e
def test_a_play_rests_forks_and_becomes_a_case_that_passes(server: Server) -> None:
    play = post(server, "/api/plays", {"agent": 1})
    place = f"/api/plays/{play['id']}"
    assert (play["tools"], play["asking"]) == (["look_up", "approve"], ["approve"])
    stuck = post(server, f"{place}/say", {"text": "a refund please"})
    assert list(stuck["missing"]) == ["look_up"]
    waits = post(server, f"{place}/mocks", {"mocks": {"look_up": {"value": {"state": "ok"}}}})[
        "waits"
    ]
    assert [wait["tool"] for wait in waits] == ["approve"]
    assert server.request(f"{place}/answer", "POST", {"answers": {"approve": [1]}})[0] == 400
    for move, lacking in (("answer", "answers"), ("say", "text")):
        status, refused = server.request(f"{place}/{move}", "POST", {})
        assert (status, f"no '{lacking}'" in str(refused)) == (400, True), refused
    assert server.request(f"/api/agents/{'9' * 5000}")[0] == 404
    server.stop()
    server.start()
    done = post(server, f"{place}/answer", {"answers": {"approve": True}})
    assert done["timeline"][-1]["text"] == "Approved: true."
    forked = post(server, f"{place}/fork", {"at": done["events"] - 1})
    assert forked["forked_from"] == play["id"]
    saved = post(server, f"{place}/case", {"id": "played", "set": "plays"})
    assert saved["text"].startswith(
        "# mine\nversion: 1\nid: plays\ncases:\n# all of them\n- id: a\n"
    )
    assert "played" in [case["id"] for case in saved["cases"]]
    assert not (server.folder / "acted").exists()
    plan = post(server, "/api/runs/plan", {"agent": 1, "set": "plays", "cases": ["played"]})
    child = post(server, "/api/runs", {"plan": plan["plan"]})
    assert child["command"] == plan["command"]
    until(lambda: server.get("/api/here")["children"][0]["state"] == "ended")
    (child,) = server.get("/api/here")["children"]
    assert child["exit_code"] == 0, child["said"]
    assert server.get("/api/runs")["runs"][0]["counts"] == {"passed": 1}
    goes_on_from_a_recorded_trial(server, server.get("/api/runs")["runs"][0]["id"])


def goes_on_from_a_recorded_trial(server: Server, run: str) -> None:
    story = server.get(f"/api/runs/{run}/story?case=played&trial=1")
    recorded = {"run": run, "case": "played", "trial": 1}
    whole = post(server, "/api/plays", {"from": recorded})
    assert "state" not in whole  # it rests
    assert [row["text"] for row in whole["timeline"] if row["kind"] == "agent"] == [
        "Approved: true."
    ]
    asked = next(row["seq"] for row in story["timeline"] if row["kind"] == "pause")
    cut = post(server, "/api/plays", {"from": {**recorded, "at": asked}})
    assert [wait["tool"] for wait in cut["waits"]] == ["approve"]
    done = post(server, f"/api/plays/{cut['id']}/answer", {"answers": {"approve": False}})
    assert done["timeline"][-1]["text"] == "Approved: false."
    assert list(done["mocks"]) == ["look_up"]
    assert not (server.folder / "acted").exists()
    for bad in ({**recorded, "at": 9_999}, {**recorded, "trial": 9}, {**recorded, "case": "../x"}):
        assert server.request("/api/plays", "POST", {"from": bad})[0] in (400, 404)
    added = post(server, "/api/sets/plays/cases", {**recorded, "id": "again"})
    assert "again" in [case["id"] for case in added["cases"]]
    assert server.request("/api/sets/plays/cases", "POST", {**recorded, "id": "again"})[0] == 400
    assert not list((server.folder / "runs" / "plays").glob("*.from.jsonl"))


def test_a_trial_of_another_agent_is_not_played(
    server: Server, serve: Callable[..., Server]
) -> None:
    plan = post(server, "/api/runs/plan", {"agent": 0, "set": "refunds", "cases": ["refund-001"]})
    post(server, "/api/runs", {"plan": plan["plan"]})
    until(lambda: server.get("/api/here")["children"][0]["state"] == "ended")
    run = server.get("/api/runs")["runs"][0]["id"]
    server.stop()
    other = serve(server.folder, "desk.py:agent")
    status, found = other.request(
        "/api/plays", "POST", {"from": {"run": run, "case": "refund-001", "trial": 1}}
    )
    assert status == 400
    assert "shop.py:agent" in found["error"]


ANSWERED = """
from greenroom import Agent, Scripted

agent = Agent("desk", model=Scripted("the agent's own words"))
own = Scripted("words of code")
"""


def test_a_trial_that_another_model_answered_is_continued_with_that_model(
    tmp_path: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, 1)
    (tmp_path / "shop.py").write_text(ANSWERED)
    with wire(lambda _: openai("words of the other model")) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
        for model in ("openai:gpt-4o-mini", "gpt-4o-mini", "shop.py:own"):
            wait(rehearse(tmp_path, "--model", model))
        server = serve(tmp_path, "shop.py:agent", "refunds.yaml")
        code, family, full = [run["id"] for run in server.get("/api/runs")["runs"]]
        assert server.get(f"/api/runs/{full}")["model"] == "openai:gpt-4o-mini"
        for run in (full, family):
            recorded = {"run": run, "case": "refund-000", "trial": 1}
            play = post(server, "/api/plays", {"from": recorded})
            server.stop()
            server.start()
            forked = post(server, f"/api/plays/{play['id']}/fork", {"at": play["events"]})
            for one in (play, forked):
                said = post(server, f"/api/plays/{one['id']}/say", {"text": "again, please"})
                assert said["timeline"][-1]["text"] == "words of the other model"
        assert len(provider.asked) == 6
    recorded = {"run": code, "case": "refund-000", "trial": 1}
    status, found = server.request("/api/plays", "POST", {"from": recorded})
    assert (status, "'shop.py:own' should be a provider's" in found["error"]) == (400, True)


def test_a_set_that_changed_meanwhile_is_not_written_over(server: Server) -> None:
    file = server.folder / "plays.yaml"
    before = server.get("/api/sets/plays")
    file.write_text(file.read_text() + "# by another editor\n")
    match = {"If-Match": before["digest"]}
    status, found = server.request("/api/sets/plays", "PUT", {"text": "mine"}, match)
    assert status == 409
    assert found["theirs"]["text"].endswith("# by another editor\n")
    assert file.read_text().endswith("# by another editor\n")
    match = {"If-Match": found["theirs"]["digest"]}
    status, found = server.request("/api/sets/plays", "PUT", {"text": "cases: [\n"}, match)
    assert status == 200
    assert found["problems"][0]["line"]
    assert file.read_text() == "cases: [\n"


def test_a_text_is_checked_as_it_is_typed(server: Server) -> None:
    text = (server.folder / "refunds.yaml").read_text()
    for length in range(0, len(text), 97):
        found = post(server, "/api/sets/refunds/check", {"text": text[:length] or " "})
        assert "problems" in found
    assert post(server, "/api/sets/refunds/check", {"text": text})["problems"] == []


@pytest.mark.parametrize(
    "body, said",
    [
        ({"agent": 9, "set": "plays"}, "agent"),
        ({"agent": "desk.py", "set": "plays"}, "agent"),
        ({"agent": 0, "set": "../plays"}, "set"),
        ({"agent": 0, "set": "plays", "model": "evil.py:model"}, "model"),
        ({"agent": 0, "set": "plays", "budget": 5}, "budget"),
        ({"agent": 0, "set": "plays", "cases": ["--allow-tool=x"]}, "case"),
        ({"agent": 0, "set": "plays", "trials": 0}, "trials"),
        ({"agent": 0, "set": "plays", "baseline": "--store"}, "run"),
    ],
)
def test_the_page_can_name_nothing_that_was_not_given(
    server: Server, body: dict[str, object], said: str
) -> None:
    status, found = server.request("/api/runs/plan", "POST", body)
    assert status in (400, 404)
    assert said in found["error"]


def test_a_plan_is_acted_on_once(server: Server) -> None:
    # Only the stop ends this run, however slow the machine is.
    (server.folder / "shop.py").write_text(
        "import asyncio\n\nasync def agent(text: str) -> str:\n    await asyncio.Event().wait()\n"
    )
    plan = post(server, "/api/runs/plan", {"agent": 0, "set": "refunds", "trials": 2})
    assert shlex.split(plan["command"])[:4] == ["greenroom", "eval", "run", "shop.py:agent"]
    assert plan["trials"] == 2 * plan["cases"]
    child = post(server, "/api/runs", {"plan": plan["plan"]})
    assert server.request("/api/runs", "POST", {"plan": plan["plan"]})[0] == 400
    assert server.request("/api/runs", "POST", {"plan": "made up"})[0] == 400
    until(lambda: bool(server.get("/api/here")["children"][0].get("run")))
    run = server.get("/api/here")["children"][0]["run"]
    assert server.get(f"/api/runs/{run}/stop")["command"].startswith("kill -INT ")
    server.request(f"/api/runs/{run}/stop", "POST")
    until(lambda: server.get("/api/children/1")["state"] == "ended")
    assert child["id"] == "1"
    assert server.request("/api/children/2")[0] == 404
    assert server.request(f"/api/runs/{run}/stop")[0] == 404
    status, _ = server.request(f"/api/runs/{run}", "DELETE")
    assert status == 200
    assert server.get("/api/runs")["runs"] == []


def test_read_only_has_no_route_that_acts(tmp_path: Path, serve: Callable[..., Server]) -> None:
    project(tmp_path, 2)
    server = serve(tmp_path, "shop.py:agent", "refunds.yaml", "--read-only")
    for path in ("/api/runs/plan", "/api/runs", "/api/plays", "/api/sets/refunds/cases"):
        assert server.request(path, "POST", {})[0] in (404, 405)
    assert server.request("/api/sets/refunds", "PUT", {"text": "x"})[0] == 405
    assert server.request("/api/runs/x", "DELETE")[0] == 405
    assert server.get("/api/here")["read_only"] is True


def test_an_agent_is_described_by_a_child(server: Server) -> None:
    desk = server.get("/api/agents/1")
    assert (desk["name"], desk["ref"]) == ("desk", "desk.py:agent")
    assert [tool for tool, _ in desk["graph"]["tools"]] == ["look_up", "approve"]
    assert "desk" in desk["mermaid"]
    assert "one conversation" in desk["estimate"]
    plain = server.get("/api/agents/0")
    assert plain["why"]
    assert plain["name"]
    assert server.request("/api/agents/7")[0] == 404


def test_a_play_that_broke_can_still_be_looked_at(server: Server) -> None:
    play = post(server, "/api/plays", {"agent": 0})
    place = f"/api/plays/{play['id']}"
    assert "overloaded" in post(server, f"{place}/say", {"text": "order 5"})["error"]
    server.stop()
    server.start()
    assert server.get(place)["state"] == "broken"
    assert server.request(f"{place}/say", "POST", {"text": "order 6"})[0] == 400
    (listed,) = server.get("/api/plays")["plays"]
    assert (listed["id"], listed["name"], listed["says"]) == (
        play["id"],
        "shop.py:agent",
        "order 5",
    )
    assert listed["events"] > 2


def test_a_play_belongs_to_its_agent_whatever_its_number(
    server: Server, serve: Callable[..., Server]
) -> None:
    play = post(server, "/api/plays", {"agent": 1})
    server.stop()
    again = serve(server.folder, "desk.py:agent", "shop.py:agent")
    assert again.get(f"/api/plays/{play['id']}")["name"] == "desk.py:agent"
    again.stop()
    other = serve(server.folder, "shop.py:agent")
    assert other.request(f"/api/plays/{play['id']}")[0] == 404
    assert other.get("/api/plays")["plays"] == []


def test_what_is_refused_is_no_crash_of_the_server(server: Server) -> None:
    assert server.request("/api/runs/nothing")[0] == 404
    assert server.request("/api/nowhere")[0] == 404
    assert server.request("/api/runs/plan", "POST", {"agent": 9})[0] == 400
    assert server.request("/api/sets/refunds/check", "POST", {"text": "x" * 21_000_000})[0] == 413
    server.stop()
    assert "Traceback" not in (server.folder / "web.log").read_text()


def test_a_played_user_can_name_no_code(server: Server) -> None:
    (server.folder / "evil.py").write_text("open('imported', 'w').close()\nmodel = None\n")
    user = {"goals": ["x"], "model": "evil.py:model"}
    assert server.request("/api/plays", "POST", {"agent": 1, "user": user})[0] == 400
    assert not (server.folder / "imported").exists()
