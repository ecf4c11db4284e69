"""`greenroom agent cost` estimates an agent, and learns from recorded runs."""

import json
from typing import Any

import pytest

DESK = """
from greenroom import Case, metric, route
from greenroom.ledger import Usage
from greenroom.models import ModelReply

def reply(request):
    return ModelReply("Done.", usage=Usage(100, 10), cost=0.25)

@metric
def answered(response): return bool(response)

first = Agent("first", model=Scripted(then=reply, name="m-1"))
agent = first >> route(lambda input: "a", a=Agent("a", model=Scripted(then=reply)), b=first)
cases = [Case(name, says="Hi", metrics=[answered]) for name in ("one", "two")]
"""
PRICES = """
[tool.greenroom.prices]
"m-1" = { input = 1.0, output = 2.0, per = "million" }
"""


@pytest.fixture
def desk(author: Any, greenroom: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run of the desk."""
    monkeypatch.setenv("GREENROOM_STORE", "kept")
    author(DESK)
    assert greenroom("eval", "run", "shop.py:agent", "-q").exit_code == 0
    [run] = json.loads(greenroom("runs", "list", "--json").stdout)
    return run["id"]


def test_an_agent_is_estimated_with_prices_of_the_project(author: Any, greenroom: Any) -> None:
    author(DESK)
    author(PRICES, "pyproject.toml", bare=True)
    words = ("--tokens-in", "500", "--tokens-out", "200", "--conversations-per-day", "1000")
    result = greenroom("agent", "cost", "shop.py:agent", *words)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["seq.0/first", "m-1", "1", "1", "500", "200", "$0.0009"]
    assert "per day (1,000 conversations): $1.35" in lines
    assert "assumed: 'seq.1/route' goes each of its 2 ways equally often (routes=)" in lines


def test_it_is_learnt_from_recorded_runs_and_shown_beside_them(desk: str, greenroom: Any) -> None:
    result = greenroom("agent", "cost", "shop.py:agent", "--from", desk[:-2], "--beside", desk)
    assert result.exit_code == 0, result.output
    assert "trials learnt from: 2" in result.stdout
    whole = next(line for line in result.stdout.splitlines() if line.startswith("one conversation"))
    assert whole.split() == ["one", "conversation", "2", "200", "20", "$0.50"]
    assert "+0.0%" in result.stdout
    assert "another agent" not in result.stderr


def test_scripts_get_json(desk: str, greenroom: Any) -> None:
    words = ("--from", desk, "--beside", desk, "--conversations-per-day", "10", "--json")
    data = json.loads(greenroom("agent", "cost", "shop.py:agent", *words).stdout)
    assert (data["per_conversation"]["usd"], data["usd_per_day"], data["trials_seen"]) == (
        0.5,
        5.0,
        2,
    )
    assert [node["node"] for node in data["nodes"]] == [
        "seq.0/first",
        "seq.1/route.a/a",
        "seq.1/route.b/first",
    ]
    assert data["beside"]["total"]["difference"] == 0


def test_another_model_has_its_own_price(desk: str, greenroom: Any, author: Any) -> None:
    author(PRICES.replace("m-1", "m-2"), "pyproject.toml", bare=True)
    author('cheap = Scripted("x", name="m-2")', "models.py")
    words = ("--model", "models.py:cheap", "--from", desk)
    data = json.loads(greenroom("agent", "cost", "shop.py:agent", *words, "--json").stdout)
    assert data["per_conversation"]["usd"] == pytest.approx(2 * 120e-6)
    assert {*data["nodes"][0]["models"]} == {"m-2"}


def test_runs_of_a_changed_agent_are_told(desk: str, greenroom: Any, author: Any) -> None:
    author(DESK.replace('Agent("first",', 'Agent("first", instructions="Be brief.",'), "other.py")
    result = greenroom("agent", "cost", "other.py:agent", "--from", desk)
    assert result.exit_code == 0, result.output
    assert (
        "2 of 2 trials are of another agent, or of an earlier version of this one" in result.stderr
    )


def test_a_function_is_known_by_its_runs_alone(greenroom: Any, author: Any) -> None:
    author("""
    from greenroom import Case
    async def agent(text: str) -> str: return "Done."
    cases = [Case("one", says="Hi", metrics=["response_match"])]
    """)
    result = greenroom("agent", "cost", "shop.py:agent")
    assert result.exit_code == 3
    assert "its model calls are known only from its runs" in result.stderr


@pytest.mark.parametrize(
    "words, said",
    [
        (("--from", "2020"), "there is no run '2020'"),
        (("--beside", "2020"), "there is no run '2020'"),
        (("--calls", "-1"), "-1"),
        (("--model", "nowhere:x"), "nowhere"),
    ],
)
def test_what_cannot_be_used_is_bad_input(
    desk: str, greenroom: Any, words: tuple[str, ...], said: str
) -> None:
    result = greenroom("agent", "cost", "shop.py:agent", *words)
    assert result.exit_code == 3
    assert said in result.stderr


def test_what_recorded_runs_have_not_exercised_is_named(desk: str, greenroom: Any) -> None:
    result = greenroom("runs", "coverage", desk)
    assert result.exit_code == 0, result.output
    assert "nodes      2 of 3   never visited: seq.1/route.b/first" in result.stdout.splitlines()
    data = json.loads(greenroom("runs", "coverage", desk, "--json").stdout)
    assert data["nodes"]["seq.0/first"] == 2
    assert greenroom("runs", "coverage", desk, desk).stdout == result.stdout
    assert greenroom("runs", "coverage", "nope").exit_code == 3
