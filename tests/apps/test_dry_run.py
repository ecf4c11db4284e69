"""`greenroom eval run --dry-run` says what a run would take, and takes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

SHOP = """
from pathlib import Path

from greenroom import Expect, SimulatedUser
from greenroom.ledger import Usage
from greenroom.metrics import judge
from greenroom.models import ModelReply

def asked(who, cost, text="Done."):
    def reply(request):
        with open("asked.txt", "a") as file:
            file.write(who)
        return ModelReply(text, usage=Usage(100, 10), cost=cost, prices="test", model=who)
    return Scripted(then=reply, name=who)

clerk = Agent("clerk", model=asked("m-agent", 0.5))
cheap = asked("m-other", 5.0)
other = Agent("clerk", model=cheap)
agent = clerk
person = SimulatedUser("Ann", model=asked("m-user", 0.25, "Thanks. </finished>"))
kind = judge("kind", "Is it kind?", model=asked("m-judge", 1.0, '{"verdict": true, "reasoning": "x"}'), samples=3)
cases = [
    Case("one", says="Hi", user=person, metrics=[kind]),
    Case("two", says="Hi", expect=Expect(contains="Done")),
]
"""

Run = Any


@pytest.fixture
def shop(author: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    author(SHOP)
    monkeypatch.setenv("GREENROOM_STORE", "kept")
    return tmp_path


def forecast(greenroom: Run, *words: str) -> dict[str, Any]:
    result = greenroom("eval", "run", "shop.py:agent", *words, "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    [found] = json.loads(result.stdout)["forecasts"]
    return found


def played(greenroom: Run, *words: str) -> str:
    """The id of a run that really ran."""
    result = greenroom("eval", "run", "shop.py:agent", "-q", *words)
    assert result.exit_code == 0, result.output
    return json.loads(greenroom("runs", "list", "--json").stdout)[0]["id"]


def test_a_dry_run_asks_no_model_and_writes_nothing(shop: Path, greenroom: Run) -> None:
    before = {path.name for path in shop.iterdir()}
    found = forecast(greenroom)
    assert {path.name for path in shop.iterdir()} - {"__pycache__"} == before - {"__pycache__"}
    assert (found["cases"], found["trials"]) == (2, 2)
    # The canary: a real run does both.
    played(greenroom)
    assert (shop / "asked.txt").exists()
    assert (shop / "kept").exists()


def test_without_an_earlier_run_only_the_least_is_known(shop: Path, greenroom: Run) -> None:
    found = forecast(greenroom, "--trials", "4")
    assert (found["trials"], found["learnt_from"]) == (8, [])
    roles = found["roles"]
    assert (roles["agent"]["calls_at_least"], roles["judges"]["calls_at_least"]) == (8, 12)
    for role in (*roles.values(), found["together"]):
        assert (role["calls"], role["tokens_in"]) == (None, None)
    result = greenroom("eval", "run", "shop.py:agent", "--dry-run")
    assert "at least 3" in result.stdout
    assert "unknown" in result.stdout


def test_a_price_that_is_not_free_is_unknown_without_tokens(shop: Path, greenroom: Run) -> None:
    (shop / "pyproject.toml").write_text(
        '[tool.greenroom.prices]\n"m-judge" = { input = 1.0, output = 2.0, per = "million" }\n'
    )
    found = forecast(greenroom)
    assert (found["roles"]["judges"]["usd"], found["together"]["usd"]) == (None, None)
    assert found["together"]["unknown"] == ["the tokens of the judges"]


def test_it_is_learnt_from_the_latest_run_like_it(shop: Path, greenroom: Run) -> None:
    run = played(greenroom)
    found = forecast(greenroom, "--trials", "3", "--no-cache")
    assert (found["learnt_from"], found["trials_seen"]) == ([run], 2)
    assert found["trials"] == 6
    roles = found["roles"]
    assert (roles["agent"]["calls"], roles["agent"]["usd"]) == (6, pytest.approx(3.0))
    assert (roles["users"]["calls"], roles["users"]["usd"]) == (3, pytest.approx(0.75))
    assert (roles["judges"]["calls"], roles["judges"]["tokens_in"]) == (9, 900)
    assert found["together"]["usd"] == pytest.approx(3.0 + 0.75 + 9.0)


def test_the_forecast_is_what_the_run_then_takes(shop: Path, greenroom: Run) -> None:
    played(greenroom)
    found = forecast(greenroom, "--trials", "2", "--no-cache")
    run = played(greenroom, "--trials", "2", "--no-cache")
    [cost] = [
        one["cost"]
        for one in json.loads(greenroom("runs", "list", "--json").stdout)
        if one["id"] == run
    ]
    assert found["together"]["usd"] == pytest.approx(cost)


def test_only_the_cases_that_are_asked_for_are_counted(shop: Path, greenroom: Run) -> None:
    run = played(greenroom)
    assert forecast(greenroom, "--filter", "two", "--from", run)["together"]["usd"] == 0.5
    assert forecast(greenroom, "--limit", "1")["cases"] == 1
    assert forecast(greenroom, "--sample", "1")["trials"] == 1


def test_another_model_is_priced_anew(shop: Path, greenroom: Run) -> None:
    (shop / "pyproject.toml").write_text(
        '[tool.greenroom.prices]\n"m-other" = { input = 1.0, output = 2.0, per = "million" }\n'
    )
    played(greenroom)
    found = forecast(greenroom, "--model", "shop.py:cheap")
    assert found["roles"]["agent"]["usd"] == pytest.approx(2 * 120e-6)
    words = ("eval", "run", "shop.py:agent", "--agent", "shop.py:other", "--dry-run", "--json")
    first, second = json.loads(greenroom(*words).stdout)["forecasts"]
    assert (first["agent"], second["agent"]) == ("shop.py:agent", "shop.py:other")
    assert first["together"]["usd"] - second["together"]["usd"] == pytest.approx(1.0 - 2 * 120e-6)
    assert [note for note in second["notes"] if "before it was changed" in note]


def test_trials_that_decide_themselves_are_a_range(shop: Path, greenroom: Run) -> None:
    found = forecast(greenroom, "--trials", "auto", "--min-pass-rate", "0.8")
    assert (found["fewest_trials"], found["trials"]) == (2, 40)
    assert "as soon as it is clear" in found["notes"][0]


def test_a_resumed_run_takes_what_is_left(shop: Path, greenroom: Run) -> None:
    run = played(greenroom, "--trials", "2")
    found = forecast(greenroom, "--trials", "5", "--resume", run, "--accept-changes")
    assert found["trials"] == 6
    assert found["notes"][0] == f"run {run} is resumed: 4 of 10 trials are done"
    assert json.loads(greenroom("runs", "list", "--json").stdout)[0]["total"] == 4


@pytest.mark.parametrize(
    "budget, words",
    [("100", "would be enough"), ("0.01", "would not be enough")],
)
def test_a_budget_is_compared(shop: Path, greenroom: Run, budget: str, words: str) -> None:
    played(greenroom)
    result = greenroom("eval", "run", "shop.py:agent", "--budget", budget, "--dry-run")
    assert words in result.stdout


def test_what_may_end_or_lengthen_a_run_is_said(shop: Path, greenroom: Run) -> None:
    run = played(greenroom)
    found = forecast(greenroom, "--fail-fast")
    assert found["notes"] == ["the run ends at the first case that does not pass"]
    found = forecast(greenroom, "--baseline", run)
    assert "run up to 30 times more" in found["notes"][0]


@pytest.mark.parametrize(
    "words, said",
    [
        (("--from", "2020"), "--from is for --dry-run"),
        (("--dry-run", "-f", "json"), "write no report"),
        (("--dry-run", "-o", "report.json"), "write no report"),
        (("--suggest-mocks", "--save-failures", "f.json"), "write no report"),
        (("--dry-run", "--suggest-mocks"), "give one of them"),
        (("--dry-run", "--from", "2020"), "there is no run '2020'"),
        (("--dry-run", "--config", "none.json"), "none.json"),
        (("--dry-run", "--trials", "0"), "0"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    shop: Path, greenroom: Run, words: tuple[str, ...], said: str
) -> None:
    result = greenroom("eval", "run", "shop.py:agent", *words)
    assert result.exit_code == 3
    assert said in result.stderr


def test_little_is_one_line(shop: Path, greenroom: Run) -> None:
    played(greenroom)
    result = greenroom("eval", "run", "shop.py:agent", "--dry-run", "-q", "--no-cache")
    assert result.stdout == "shop.py:agent: 6 calls, $4.25\n"
