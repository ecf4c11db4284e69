"""What the command line says of trials that broke: no scores, and never exit code 0 on them alone."""

import json
import re
from pathlib import Path

import pytest

from apps.terminals import started
from greenroom import Agent, Case, Expect, Scripted, rehearse

AGENTS = """
from greenroom import step

@tool
def delete_all() -> str:
    '''Delete everything.'''
    raise RuntimeError("never reached in a rehearsal")

def answer(ctx):
    if "please" in ctx.input:
        return "Here you are."
    raise ConnectionError("no route to the provider")

down = step(answer, name="clerk")
reckless = Agent("clerk", model=Scripted(call("delete_all"), "Done."), tools=[delete_all])
"""
FORBIDDEN = {"criterion": "forbidden_calls", "tools": ["delete_*"]}


@pytest.fixture
def play(author, greenroom, monkeypatch, tmp_path):
    """Plays cases that begin with these words, and gives the result and the report as data."""
    author(AGENTS)
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))

    def run(agent: str, says: list[str], *words: str):
        cases = [{"id": f"c{n}", "says": said, "tags": ["all"]} for n, said in enumerate(says)]
        whole = {"version": 1, "name": "s", "cases": cases, "metrics": [FORBIDDEN]}
        Path("cases.json").write_text(json.dumps(whole))
        outputs = ["-f", "json=report.json", "-f", "junit=junit.xml"]
        result = greenroom("eval", "run", f"shop.py:{agent}", "cases.json", *outputs, *words)
        return result, json.loads(Path("report.json").read_text())

    return run


@pytest.mark.parametrize("agent", ["reckless", "down"])
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--max-errors", "1"],
        ["--max-errors", "9", "--min-pass-rate", "0"],
        ["--trials", "3", "--max-errors", "9", "--min-pass-rate", "0"],
        ["--workers", "1", "--max-errors", "9", "--min-pass-rate", "0"],
    ],
    ids=" ".join,
)
def test_a_run_in_which_nothing_was_measured_never_exits_with_0(play, agent, words):
    result, report = play(agent, ["Hi"], *words)
    assert result.exit_code in (1, 2), result.output
    for found in report["results"]:
        (outcome,) = found["scores"].values()
        assert outcome["unmeasured"].startswith("the trial broke: ")
    (metric,) = report["summary"]["metrics"].values()
    assert (metric["mean"], metric["measured"], metric["unmeasured"]) == (
        None,
        0,
        len(report["results"]),
    )
    assert "1.00" not in result.stdout
    assert "[[PROPERTY|score.forbidden_calls" in Path("junit.xml").read_text()
    assert "=unmeasured]]" in Path("junit.xml").read_text()


def test_errors_that_are_tolerated_still_count_for_nothing(play, greenroom):
    result, report = play("down", ["Hi", "Hi, please"], "--max-errors", "1")
    assert result.exit_code == 0, result.output
    (metric,) = report["summary"]["metrics"].values()
    assert (metric["mean"], metric["measured"], metric["unmeasured"]) == (1.0, 1, 1)
    summary = report["summary"]
    assert (summary["passed"], summary["evaluated"], summary["errors"]) == (1, 1, 1)


def test_the_list_of_runs_counts_errors(play, greenroom):
    play("down", ["Hi", "Hi, please", "Ho"])
    [listed] = json.loads(greenroom("runs", "list", "--json").stdout)
    assert (listed["done"], listed["errors"], listed["pass_rate"]) == (3, 2, 1.0)
    head, _, row = greenroom("runs", "list").stdout.splitlines()[:3]
    assert " errors " in head
    assert re.search(r" 3/3 +2 ", row)


def test_the_list_of_runs_has_the_rate_of_their_reports(greenroom, tmp_path):
    asked = []

    def answers(request):
        asked.append(request.last)
        if asked.count("first") > 2:
            raise RuntimeError("the provider is down")
        return "yes" if request.last == "first" else "no"

    cases = [Case(said, said, expect=Expect(contains="yes")) for said in ("second", "first")]
    desk = Agent("desk", model=Scripted(then=answers))
    report = rehearse(desk, cases, trials=3, store=tmp_path, concurrency=1)
    assert (report.pass_rate, report.summary.pass_rate) == (0.5, 0.4)
    words = ["runs", "list", "--store", str(tmp_path)]
    [listed] = json.loads(greenroom(*words, "--json").stdout)
    assert (listed["pass_rate"], listed["errors"]) == (0.5, 1)
    assert " 50.0 % " in greenroom(*words).stdout


def test_a_run_of_broken_trials_only_is_not_rescored_into_anything(play, greenroom):
    play("reckless", ["Hi"])
    [run] = json.loads(greenroom("runs", "list", "--json").stdout)
    result = greenroom("eval", "rescore", run["id"], "cases.json", "--json")
    assert result.exit_code == 2, result.output
    assert "no trial of this run can be measured" in result.stderr
    [found] = json.loads(result.stdout)["report"]["results"]
    (outcome,) = found["scores"].values()
    assert outcome["unmeasured"].startswith("the trial broke: ")


def test_the_console_says_once_why_nothing_was_measured(play):
    result, _ = play("down", ["Hi"])
    assert result.stdout.count(": the trial broke\n") == 1


LOOKS = """
import socket
from greenroom import metric

@metric
def connecting(ledger):
    socket.create_connection(("127.0.0.1", 9))
    return True

agent = Agent("clerk", model=Scripted("done"))
cases = [Case("a", "Hi", metrics=[connecting, contains("done")]), Case("b", "Hi", metrics=[contains("nope")])]
"""


@pytest.mark.parametrize("words", [[], ["--workers", "1"]], ids=" ".join)
def test_where_the_fence_refused_one_metric_the_others_stand(author, greenroom, tmp_path, words):
    author(LOOKS)
    place = ["--store", str(tmp_path / "runs"), "-f", "json=report.json"]
    result = greenroom("eval", "run", "shop.py", *place, *words)
    assert result.exit_code == 2, result.output
    report = json.loads(Path("report.json").read_text())
    assert [found["status"] for found in report["results"]] == ["error", "failed"]
    told = report["summary"]
    assert (told["evaluated"], told["pass_rate"]) == (1, 0.0)
    assert told["metrics"]["contains('done')"]["mean"] == 1.0
    assert told["metrics"]["connecting"]["mean"] is None


@pytest.mark.parametrize(
    "leaves", ["clerk = step(leave, name='clerk')", "leave(None)"], ids=["in a case", "on import"]
)
def test_code_that_ends_the_process_at_once_does_not_look_like_a_success(author, leaves):
    author(f"""
        import os
        from greenroom import step

        def leave(ctx):
            os._exit(0)

        {leaves}
        hi = Case("hi", says="Hi", metrics=[contains("x")])
    """)
    with started("eval", "run", "shop.py:clerk", "--no-store", cwd=Path.cwd()) as process:
        shown = process.communicate()[0].decode()
    assert process.returncode == 2
    assert "this process was ended by code that it ran (os._exit)" in shown
