"""`greenroom eval mutants` says whether worse agents fail the cases."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from apps.terminals import started, wait_for
from greenroom.store import Store

CASES = """
from greenroom import Expect
cases = [
    Case("pays", says="Money back for order 7", mocks={"refund": "ok"},
         expect=Expect(tools=["refund"], contains="on its way")),
    Case("weak", says="Is my money on its way?", mocks={"refund": "ok"}, expect=Expect(contains="money")),
]
"""
BROKEN = """
broken = [Case("breaks", says="Hi", mocks={"refund": "ok"}, agent=clerk(RuntimeError("no")),
               metrics=[contains("x")])]
"""


@pytest.fixture
def mutants(author: Any, greenroom: Any) -> Any:
    author(CASES + BROKEN)
    return lambda *words: greenroom("eval", "mutants", "shop.py:agent", *words)


def test_the_table_says_what_was_killed_by_which_case(mutants: Any) -> None:
    result = mutants("shop.py:cases")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["mute", "killed", "pays,", "weak"] in lines
    assert ["echo", "killed", "pays"] in lines
    assert "trivial: weak (passed by an agent that does nothing: echo)" in result.stdout
    assert lines[-1][:3] == ["mutation", "score", "1.00:"]
    assert "5 mutants, 10 trials, at no cost" in result.stderr


def test_a_score_below_the_least_is_exit_code_1(mutants: Any) -> None:
    words = ("shop.py:cases", "--filter", "weak", "--min-score")
    missed = mutants(*words, "0.9")
    assert missed.exit_code == 1
    assert "the mutation score 0.80 is below 0.9" in missed.stderr
    assert mutants(*words, "0.8").exit_code == 0


def test_a_case_that_breaks_with_the_agent_itself_is_exit_code_2(mutants: Any) -> None:
    result = mutants("shop.py:broken", "--min-score", "0.5")
    assert result.exit_code == 2
    assert "broken: breaks" in result.stdout


PAID = """
from greenroom.models import ModelReply
from greenroom.ledger import ToolCall
def paid(request):
    calls = () if any(m.calls for m in request.messages) else (ToolCall("refund", {"order": 7}),)
    return ModelReply("" if calls else "It is on its way.", calls, cost=1.0, prices="test")
dear = Agent("clerk", model=Scripted(then=paid), tools=[refund])
"""


def test_a_score_that_lacks_mutants_is_exit_code_2(author: Any, greenroom: Any) -> None:
    author(CASES + PAID)
    words = (
        "eval",
        "mutants",
        "shop.py:dear",
        "shop.py:cases",
        "--filter",
        "pays",
        "--min-score",
        "0.5",
    )
    assert greenroom(*words, "--budget", "9").exit_code == 0
    cut = greenroom(*words, "--budget", "2.5")
    assert cut.exit_code == 2, cut.output
    assert "unfinished" in cut.stdout
    assert "1 mutant left without a verdict" in cut.stderr


def test_a_set_that_the_agent_never_passes_is_not_green(author: Any, greenroom: Any) -> None:
    author('cases = [Case("no", says="Hi", mocks={"refund": "ok"}, metrics=[contains("nowhere")])]')
    result = greenroom("eval", "mutants", "shop.py:agent", "shop.py:cases", "--min-score", "0")
    assert result.exit_code == 2
    assert "no mutation score" in result.stdout


STUCK = """
import asyncio
from pathlib import Path
async def until_allowed(order):
    if Path("agent-has-run").exists():
        Path("waiting").touch()
        await asyncio.sleep(3600)
    Path("agent-has-run").touch()
    return "ok"
cases = [Case("pays", says="Money back for order 7", mocks={"refund": until_allowed}, metrics=[contains("money")])]
"""


def test_an_interrupted_command_shows_what_was_finished(author: Any, tmp_path: Path) -> None:
    author(STUCK)
    with started("eval", "mutants", "shop.py", "--store", "runs", cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0].decode()
    assert process.returncode == 130, said
    assert re.search(r"mute +killed", said), said
    assert re.search(r"without refund +unfinished +interrupted", said), said
    [own] = [run.id for run in Store(tmp_path / "runs").runs() if "--" not in run.plan.evalset_id]
    assert f"--run {own} continues" in said


@pytest.mark.parametrize(
    "words, said",
    [
        (["shop.py:cases", "--min-score", "2"], "--min-score"),
        (["shop.py:cases", "--min-score", "nan"], "--min-score"),
        (["shop.py:cases", "--trials", "auto"], "is not for mutants"),
        (["nowhere.yaml"], "nowhere.yaml"),
        (["shop.py:cases", "--run", "20200101-01"], "20200101-01"),
        (["shop.py:cases", "--store", "x", "--no-store"], "contradict"),
        (["shop.py:cases", "--unknown-prices", "allow"], "--budget"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_exit_code_3(mutants: Any, words: list[str], said: str) -> None:
    result = mutants(*words)
    assert result.exit_code == 3, result.output
    assert said in result.stderr


def test_json_has_everything(mutants: Any) -> None:
    result = mutants("shop.py:cases", "--json", "--no-tools", "--rules", "--no-store")
    data = json.loads(result.stdout)
    assert (data["score"], data["killed"], data["played"]) == (1.0, 4, 4)
    assert data["trivial"] == {"weak": ["echo"]}
    assert data["mutants"][0]["killed_by"] == ["pays", "weak"]
    assert data["notes"] == [
        "no rule was deleted: no instructions are known from the agent's own run"
    ]
    assert not result.stderr


def test_an_earlier_run_needs_no_run_of_the_agent(mutants: Any, greenroom: Any) -> None:
    ran = greenroom(
        "eval", "run", "shop.py:agent", "shop.py:cases", "--store", "kept", "-f", "json=own.json"
    )
    assert ran.exit_code == 0, ran.output
    [run] = Store("kept").runs()
    for given in (run.id, "own.json"):
        result = mutants("shop.py:cases", "--run", given, "--store", "kept", "--json")
        assert json.loads(result.stdout)["score"] == 1.0, result.output
    names = [one.plan.evalset_id for one in Store("kept").runs()]
    assert sum("--" not in name for name in names) == 1
