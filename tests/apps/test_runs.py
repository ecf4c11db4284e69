"""`greenroom runs`, `eval compare` and `eval rescore` on runs that were written down."""

import json
import re
import shlex
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from greenroom import Report
from greenroom.results import Gate
from greenroom.store import Store

CASES = """
from greenroom.models import ModelReply

PRICE = 0.25

def answering(text):
    reply = ModelReply(text, cost=PRICE, prices="test")
    return Agent("clerk", model=Scripted(reply), instructions=text)

agent = answering("Your money is on its way.")
worse = answering("No.")
"""
SET = {
    "version": 1,
    "name": "refunds",
    "cases": [
        {"id": "a", "says": "Hi", "expect": {"contains": "money"}},
        {"id": "b", "says": "Hi", "expect": {"contains": "way"}},
        {"id": "c", "says": "Hi", "expect": {"contains": "never"}},
    ],
}


@pytest.fixture
def shop(author, monkeypatch, tmp_path):
    """An agent, three cases of which one fails, and a store."""
    author(CASES)
    Path("cases.json").write_text(json.dumps(SET))
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))
    return Store(tmp_path / "runs")


@pytest.fixture
def played(greenroom, shop):
    """Plays the cases and says the id of the run."""

    def play(*words: str, agent: str = "shop.py") -> str:
        result = greenroom("eval", "run", agent, "cases.json", *words)
        assert result.exit_code in (0, 1), result.output
        return shop.runs()[0].id

    return play


# Where runs go


def test_a_run_is_written_down_and_the_report_says_under_which_id(greenroom, shop):
    result = greenroom("eval", "run", "shop.py", "cases.json", "-f", "json=report.json")
    [run] = shop.runs()
    assert f"run {run.id}" in result.stdout.splitlines()
    assert Report.load("report.json").id == run.id
    assert (run.plan.name, run.plan.agent, run.status, run.done) == (
        "refunds",
        "clerk",
        "finished",
        3,
    )


def test_an_option_names_another_place_and_another_switches_it_off(greenroom, shop):
    greenroom("eval", "run", "shop.py", "cases.json", "--store", "elsewhere")
    assert len(Store("elsewhere").runs()) == 1
    result = greenroom("eval", "run", "shop.py", "cases.json", "--no-store")
    assert "\nrun " not in result.output
    assert not shop.runs()


def test_the_usual_place_is_a_folder_that_git_does_not_see(greenroom, shop, monkeypatch):
    monkeypatch.delenv("GREENROOM_STORE")
    greenroom("eval", "run", "shop.py", "cases.json")
    assert len(Store(".greenroom").runs()) == 1
    assert Path(".greenroom/.gitignore").read_text() == "*\n"


def test_a_place_that_nobody_asked_for_and_cannot_be_had_is_a_note(greenroom, shop, monkeypatch):
    Path(".greenroom").write_text("no folder")
    monkeypatch.delenv("GREENROOM_STORE")
    result = greenroom("eval", "run", "shop.py", "cases.json", "--min-pass-rate", "0.5")
    assert result.exit_code == 0, result.output
    assert "note: the run is not recorded" in result.stdout


def test_a_place_that_a_variable_names_must_do(greenroom, shop, monkeypatch):
    Path("taken").write_text("no folder")
    monkeypatch.setenv("GREENROOM_STORE", "taken")
    result = greenroom("eval", "run", "shop.py", "cases.json", "--min-pass-rate", "0.5")
    assert result.exit_code == 3
    assert "cannot keep runs in" in result.stderr
    assert "passed" not in result.stdout


@pytest.mark.parametrize("words", [["list"], ["show", "2026"], ["delete", "2026", "--yes"]])
@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_a_file_where_runs_should_be_is_named(greenroom, shop, monkeypatch, place, words):
    Path("taken").write_text("no folder")
    monkeypatch.setenv("GREENROOM_STORE", place)
    result = greenroom("runs", *words)
    assert result.exit_code == 3
    assert "there is no store" in result.stderr
    assert "taken' is a file" in result.stderr


def test_a_store_that_cannot_be_read_is_bad_input(greenroom, shop):
    shop.place.mkdir()
    (shop.place / "runs.db").write_bytes(
        b"no database at all, but long enough to be taken for one" * 40
    )
    for words in (["eval", "run", "shop.py", "cases.json"], ["runs", "list"]):
        result = greenroom(*words)
        assert result.exit_code == 3, result.output
        assert "cannot be used" in result.stderr


def test_the_demo_writes_no_run(greenroom, shop):
    assert greenroom("demo").exit_code == 0
    assert not shop.runs()


@pytest.mark.parametrize(
    "words, told",
    [
        (["--store", "x", "--no-store"], "contradict"),
        (["--resume", "--no-store"], "--resume needs a store"),
        (["--resume", "--agent", "shop.py:worse"], "one agent"),
        (["--resume", "shop.py"], "not the id of a run"),
        (["--accept-changes"], "for --resume"),
        (["--unknown-prices", "allow"], "for --budget"),
        (["--fail-on", "regression"], "needs a --baseline"),
        (["--gate-tag", "smoke"], "needs a --baseline"),
        (["--threshold", "0.3"], "needs a --baseline"),
        (["--seed", "7"], "--seed draws a --sample"),
        (["--filter", "a", "--filter", "lost"], "no case that matches 'lost'"),
        (["--fail-on", "luck"], "luck"),
        (["--budget", "0"], "0"),
        (["--budget", "much"], "much"),
        (["--store", "cases.json"], "cases.json"),
        (["--resume", "nothing"], "there is no run 'nothing'"),
        (["--resume"], "no run of 'refunds'"),
        (["--baseline", "nothing"], "there is no run 'nothing'"),
    ],
)
def test_what_cannot_be_meant_is_named(greenroom, shop, words, told):
    result = greenroom("eval", "run", "shop.py", "cases.json", *words)
    assert result.exit_code == 3, result.output
    assert told in result.stderr
    assert "Traceback" not in result.output


# Going on


def test_a_changed_agent_is_named_and_may_be_accepted(greenroom, shop):
    greenroom("eval", "run", "shop.py", "cases.json", "--budget", "0.6")
    refused = greenroom("eval", "run", "shop.py:worse", "cases.json", "--resume")
    assert refused.exit_code == 3
    assert "the agent has changed" in refused.stderr
    assert "--accept-changes" in refused.stderr
    again = ["eval", "run", "shop.py:worse", "cases.json", "--resume", "--accept-changes"]
    accepted = greenroom(*again)
    assert "3 cases: 2 passed, 1 failed" in accepted.stdout


def test_a_changed_config_is_named(greenroom, shop):
    greenroom("eval", "run", "shop.py", "cases.json", "--budget", "0.6")
    Path("strict.json").write_text('{"criteria": {"contains": {"texts": ["refund"]}}}')
    result = greenroom("eval", "run", "shop.py", "cases.json", "-c", "strict.json", "--resume")
    assert result.exit_code == 3
    assert "was added" in result.stderr


def test_a_changed_case_is_named_and_played_anew(greenroom, shop):
    greenroom("eval", "run", "shop.py", "cases.json", "--budget", "0.6")
    changed = json.loads(json.dumps(SET))
    changed["cases"][0]["says"] = "Hello"
    Path("cases.json").write_text(json.dumps(changed))
    result = greenroom("eval", "run", "shop.py", "cases.json", "--resume")
    assert "note: case 'a' has changed since the run began" in result.stdout
    assert "'b' has changed" not in result.stdout


def test_a_run_of_other_cases_is_not_emptied_by_mistake(greenroom, shop, played):
    run = played()
    other = {**SET, "cases": [{"id": "z", "says": "Hi", "expect": {"contains": "money"}}]}
    Path("other.json").write_text(json.dumps(other))
    result = greenroom("eval", "run", "shop.py", "other.json", "--resume", run)
    assert result.exit_code == 3
    assert "none of its finished cases" in result.stderr
    assert shop.run(run).done == 3


def test_a_finished_run_has_nothing_left_to_play(greenroom, shop, played):
    run = played()
    words = ["eval", "run", "shop.py", "cases.json", "--min-pass-rate", "0.5"]
    result = greenroom(*words, "--resume", run)
    assert result.exit_code == 0, result.output
    assert "nothing was left to run" in result.stderr
    assert "3 cases: 2 passed, 1 failed" in result.stdout


FLAKY = """
from pathlib import Path

def steady(order):
    if not Path("well").exists():
        raise RuntimeError("not today")
    return "ok"

cases = EvalSet("errands", [
    Case("good", says="Hi", mocks={"refund": "ok"}, metrics=[contains("money")]),
    Case("shaky", says="Hi", mocks={"refund": steady}, metrics=[contains("money")]),
])
"""


def test_errors_are_played_again_by_the_command_that_is_offered(greenroom, author, shop):
    author(FLAKY)
    broke = greenroom("eval", "run", "shop.py")
    assert broke.exit_code == 2
    [run] = shop.runs()
    printed = re.search(r"to run errors again: greenroom (.*)", broke.stderr)
    assert printed, broke.output
    assert printed[1].endswith(f"--resume {run.id} --retry-errors")
    Path("well").touch()
    again = greenroom(*shlex.split(printed[1]))
    assert again.exit_code == 0, again.output
    assert "2 cases: 2 passed" in again.stdout
    assert "to play errors again" not in again.stderr


def test_errors_of_a_run_with_a_name_are_played_again_by_the_command_that_is_offered(
    greenroom, author, shop
):
    author(FLAKY)
    broke = greenroom("eval", "run", "shop.py", "--resume-or-new", "nightly")
    [run] = shop.runs()
    printed = re.search(r"to run errors again: greenroom (.*)", broke.stderr)
    assert printed, broke.output
    assert printed[1].endswith(f"--resume {run.id} --retry-errors")
    Path("well").touch()
    again = greenroom(*shlex.split(printed[1]))
    assert again.exit_code == 0, again.output
    assert shop.run(run.id).counts == {"passed": 2}


def test_a_printed_command_is_understood_whatever_a_file_or_a_case_is_called(
    greenroom, author, shop
):
    author(
        "cases = [Case(name, 'Hi', mocks={'refund': 'ok'}, metrics=[contains('never')])"
        " for name in ('a*', 'ab')]"
    )
    Path("shop.py").rename("-shop.py")
    first = greenroom(
        "eval",
        "run",
        "--filter",
        "id:a[*]",
        "--min-pass-rate",
        "0.1234567890123456",
        "--",
        "-shop.py",
    )
    printed = re.search(r"again: greenroom (.*)", first.stdout)
    assert printed, first.output
    again = greenroom(*shlex.split(printed[1]))
    assert again.exit_code == 1, again.output
    assert "1 case: 0 passed" in again.stdout


def test_errors_that_are_forgiven_are_not_offered(greenroom, author, shop):
    author(FLAKY)
    result = greenroom("eval", "run", "shop.py", "--max-errors", "1")
    assert result.exit_code == 0
    assert "to play errors again" not in result.stderr


def test_the_latest_run_with_errors_is_tried_again_without_its_id(greenroom, author, shop):
    author(FLAKY)
    greenroom("eval", "run", "shop.py")
    plain = greenroom("eval", "run", "shop.py", "--resume")
    assert plain.exit_code == 3
    assert "is unfinished." in plain.stderr
    Path("well").touch()
    again = greenroom("eval", "run", "shop.py", "--resume", "--retry-errors")
    assert again.exit_code == 0, again.output
    [run] = shop.runs()
    assert run.counts == {"passed": 2}
    none = greenroom("eval", "run", "shop.py", "--resume", "--retry-errors")
    assert none.exit_code == 3
    assert "is unfinished, or has an error that can be retried" in none.stderr


# Money


def test_a_budget_stops_before_the_money_is_spent_and_the_report_is_whole(greenroom, shop):
    words = ["--budget", "0.6", "-f", "json=report.json", "--fail-on", "skipped"]
    result = greenroom("eval", "run", "shop.py", "cases.json", "--min-pass-rate", "0", *words)
    assert result.exit_code == 1
    report = Report.load("report.json")
    assert [r.status for r in report] == ["passed", "passed", "skipped"]
    assert report.cost == 0.5
    assert "the budget of $0.6 is not enough" in result.stdout
    [run] = shop.runs()
    printed = re.search(r"1 of 3 trials is left; to resume, raise the budget: (.*)", result.stderr)
    assert printed, result.stderr
    assert "--budget USD" in printed[1]
    assert printed[1].endswith(f"--resume {run.id}")
    again = greenroom(*shlex.split(printed[1].replace("USD", "2"))[1:])
    assert "skipped" not in again.stdout
    assert shop.run(run.id).done == 3


def test_what_was_spent_before_counts_when_a_run_goes_on(greenroom, shop):
    greenroom("eval", "run", "shop.py", "cases.json", "--budget", "0.6")
    greenroom("eval", "run", "shop.py", "cases.json", "--budget", "0.6", "--resume")
    assert shop.runs()[0].done == 2
    greenroom("eval", "run", "shop.py", "cases.json", "--budget", "0.8", "--resume")
    assert shop.runs()[0].done == 3


def test_agents_that_are_played_together_share_one_budget(greenroom, shop):
    words = ["--agent", "shop.py:worse", "--budget", "1", "--json"]
    result = greenroom("eval", "run", "shop.py", "cases.json", *words)
    found = json.loads(result.stdout)
    played = {
        agent: sum(r["status"] != "skipped" for r in report["results"])
        for agent, report in found.items()
    }
    assert played == {"shop.py": 3, "shop.py:worse": 1}


def test_unknown_prices_are_refused_unless_they_are_allowed(greenroom, author, shop):
    author("""
    from greenroom.models import ModelReply
    agent = Agent("clerk", model=Scripted(ModelReply("Your money.", cost=None, model="mystery")))
    """)
    run = ["eval", "run", "shop.py", "cases.json", "--budget", "1", "--sequential"]
    refused = greenroom(*run)
    assert "3 cases: 1 passed, 2 skipped" in refused.stdout
    told = " ".join(refused.stdout.split())
    assert "the price of mystery is unknown" in told
    assert "[tool.greenroom.prices]" in told
    assert "--unknown-prices allow" in told
    printed = re.search(r"to resume without knowing all prices: greenroom (.*)", refused.stderr)
    assert printed, refused.stderr
    assert "skipped" not in greenroom(*shlex.split(printed[1])).stdout
    allowed = greenroom(*run, "--unknown-prices", "allow")
    assert "skipped" not in allowed.stdout


# The gate


def test_a_confident_gate_wants_the_interval_above_the_minimum(greenroom, shop):
    run = ["eval", "run", "shop.py", "cases.json", "--min-pass-rate", "0.5"]
    assert greenroom(*run).exit_code == 0
    unsure = greenroom(*run, "--confident")
    assert unsure.exit_code == 1
    assert "it may be as low as" in unsure.stderr


def test_what_fails_is_what_was_named(greenroom, shop, played):
    good = played()
    run = ["eval", "run", "shop.py:worse", "cases.json", "--min-pass-rate", "0", "--baseline", good]
    assert greenroom(*run).exit_code == 1
    assert greenroom(*run, "--fail-on", "regression").exit_code == 1
    assert greenroom(*run, "--fail-on", "skipped").exit_code == 1
    assert greenroom(*run[:-2]).exit_code == 0


def test_a_minimum_that_trials_leave_open_is_not_reached(greenroom, shop):
    words = ["eval", "run", "shop.py", "cases.json", "--trials", "auto", "--min-pass-rate", "0.6"]
    result = greenroom(*words)
    assert result.exit_code == 1, result.output
    assert "adaptive trials did not show that the minimum is reached" in result.stderr
    assert "leaves open whether it reaches the minimum of 60 %" in result.stderr


def test_a_round_that_the_budget_cuts_shows_nothing(greenroom, shop):
    words = ["eval", "run", "shop.py", "cases.json", "--trials", "auto", "--min-pass-rate", "0.5"]
    result = greenroom(*words, "--budget", "0.3")
    assert result.exit_code == 1, result.output
    assert "no round was finished" in result.stderr


# Looking back


def test_the_list_tells_how_far_each_run_got_and_what_it_cost(greenroom, shop, played):
    first = played()
    second = played("--budget", "0.6")
    rows = [line.split() for line in greenroom("runs", "list").stdout.splitlines()[2:]]
    assert [(row[0], row[3:6], row[6], row[-1]) for row in rows] == [
        (second, ["refunds", "clerk", "interrupted"], "2/3", "$0.5000"),
        (first, ["refunds", "clerk", "finished"], "3/3", "$0.7500"),
    ]
    found = json.loads(greenroom("runs", "list", "--json", "--limit", "1").stdout)
    assert [(one["id"], one["status"], one["done"], one["total"]) for one in found] == [
        (second, "interrupted", 2, 3)
    ]
    assert (found[0]["pass_rate"], found[0]["cost"]) == (1.0, 0.5)


def test_a_killed_run_shows_no_time_and_how_to_resume_it(greenroom, shop, played):
    run = played("--budget", "0.6")
    with closing(sqlite3.connect(shop.place / "runs.db")) as connection, connection:
        connection.execute("update runs set status = 'running', ended = null, seconds = 0")
    shown = greenroom("runs", "show", run, "-f", "markdown=report.md").stdout
    lines = shown.splitlines()
    [at] = [n for n, line in enumerate(lines) if "the run is not finished" in line]
    assert lines[at + 1].endswith(f"greenroom eval run shop.py CASES --resume {run}")
    assert "; 0 ms" not in shown
    assert " in 0 ms" not in Path("report.md").read_text()


def test_every_run_says_who_made_it_on_which_commit_and_what_it_is_compared_with(
    greenroom, shop, played, monkeypatch
):
    monkeypatch.setenv("GREENROOM_USER", "maria")
    monkeypatch.setenv("GITHUB_SHA", "01234567" * 5)
    first = played()
    second = played("--baseline", first, "--confirm", "0")
    found = json.loads(greenroom("runs", "list", "--json").stdout)
    seen = [(one["id"], one["by"], one["commit"], one["against"]) for one in found]
    assert seen == [
        (second, "maria", "012345670123", first),
        (first, "maria", "012345670123", None),
    ]
    assert greenroom("runs", "list").stdout.count(first) == 2
    shown = greenroom("runs", "show", second).stdout
    assert f"run {second}\nby maria  commit 01234567  baseline {first}\n" in shown
    # Whoever looks for cases that were run again finds none.
    assert shop.report(second).against is None
    resumed = played("--resume", second, "--retry-errors")
    assert shop.run(resumed).plan.against == first


def test_costs_in_the_list_have_as_many_digits(greenroom, author, shop, played):
    played()
    author(CASES.replace("0.25", "12.5"), "dear.py")
    played(agent="dear.py")
    rows = greenroom("runs", "list").stdout.splitlines()[2:]
    assert [line.split()[-1] for line in rows] == ["$37.5000", "$0.7500"]


def test_a_cost_that_nobody_knows_is_no_number(greenroom, author, shop, played):
    author("""
    from greenroom.models import ModelReply
    agent = Agent("clerk", model=Scripted(ModelReply("Your money.", cost=None)))
    """)
    played()
    [found] = json.loads(greenroom("runs", "list", "--json").stdout)
    assert found["cost"] is None
    assert "unknown" in greenroom("runs", "list").stdout


def test_an_empty_store_is_told_and_not_made(greenroom, shop):
    result = greenroom("runs", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"no runs in {shop.place}" in result.stderr
    assert not shop.place.exists()


@pytest.mark.parametrize("words", [["list"], ["show", "x"], ["delete", "x", "--yes"]])
def test_a_store_that_is_switched_off_is_said_so(greenroom, shop, monkeypatch, words):
    monkeypatch.setenv("GREENROOM_STORE", "off")
    result = greenroom("runs", *words)
    assert result.exit_code == 3
    assert "GREENROOM_STORE is off" in result.stderr


def test_a_store_may_be_switched_off_for_one_command(greenroom, shop):
    result = greenroom("eval", "run", "shop.py", "cases.json", "--store", "off")
    assert "run 2" not in result.stdout
    assert not shop.runs()
    listed = greenroom("runs", "list", "--store", "off")
    assert (listed.exit_code, "--store is off" in listed.stderr) == (3, True)


def test_the_command_to_go_on_says_numbers_as_they_were_given(greenroom, shop):
    words = ["--budget", "0.6", "--min-pass-rate", "0.1234567"]
    result = greenroom("eval", "run", "shop.py", "cases.json", *words)
    assert "--min-pass-rate 0.1234567" in result.stderr


def test_a_run_is_shown_as_it_was_when_it_was_played(greenroom, shop):
    then = greenroom("eval", "run", "shop.py", "cases.json")
    [run] = shop.runs()
    now = greenroom("runs", "show", run.id[:10])

    def lines(text: str) -> list[str]:
        return [line.split(" passing;")[0] for line in text.splitlines() if "again:" not in line]

    assert now.exit_code == 0
    assert lines(now.stdout) == [*lines(then.stdout), f"by {run.plan.by}"]


def test_the_report_of_a_run_can_be_written_and_printed(greenroom, shop, played):
    run = played()
    result = greenroom("runs", "show", run, "-f", "json", "-f", "html", "-o", "out/", "-q")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 1
    assert Report.load("out/eval_report.json").id == run
    assert sorted(path.suffix for path in Path("out").iterdir()) == [".html", ".json"]
    assert json.loads(greenroom("runs", "show", run, "--json").stdout)["id"] == run


def test_an_unfinished_run_says_that_it_is(greenroom, shop, played):
    run = played("--budget", "0.6")
    assert "note: the run is not finished: 2 of 3 trials are done" in (
        greenroom("runs", "show", run).stdout
    )


def test_what_a_run_did_not_get_to_counts_as_skipped_for_a_gate_that_asks(greenroom, shop, played):
    whole, cut = played(), played("--budget", "0.6")
    report = shop.report(cut)
    assert (report.pass_rate, report.summary.passed, report.passed) == (1.0, 2, False)
    strict = Gate(fail_on=["regression", "skipped"])
    alone, against = (
        strict.without_baseline.decide(report),
        strict.decide(report, shop.report(whole)),
    )
    assert (alone.exit_code, against.exit_code) == (1, 1)
    assert "2 of 3 trials are done, and what is left may fail" in str(alone)
    compared = ("eval", "compare", cut, "--baseline", whole)
    assert greenroom(*compared).exit_code == 0
    assert greenroom(*compared, "--fail-on", "skipped").exit_code == 1
    assert greenroom("eval", "compare", whole, "--baseline", cut).exit_code == 0


def test_deleting_asks_first(greenroom, shop, played):
    first, second = played(), played()
    refused = greenroom("runs", "delete", first)
    assert refused.exit_code == 3
    assert "give --yes" in refused.stderr
    assert len(shop.runs()) == 2
    assert greenroom("runs", "delete", first, second, "--yes").exit_code == 0
    assert not shop.runs()


def test_only_runs_that_are_old_enough_are_deleted(greenroom, shop, played):
    old, new = played(), played()
    with shop.database.connected() as connection:
        ago = time.time() - 40 * 86400
        connection.execute("update runs set begun = ? where id = ?", (ago, old))
    assert "no runs" in greenroom("runs", "delete", "--older-than", "50d", "--yes").stderr
    assert greenroom("runs", "delete", "--older-than", "30d", "--yes").exit_code == 0
    assert [run.id for run in shop.runs()] == [new]


@pytest.mark.parametrize(
    "words, told",
    [
        ([], "say which runs"),
        (["x", "--older-than", "3d"], "say which runs"),
        (["--older-than", "soon"], "not an age"),
        (["--older-than", "3"], "not an age"),
        (["--older-than", "-3d"], "not an age"),
        (["nothing", "--yes"], "there is no run 'nothing'"),
    ],
)
def test_what_cannot_be_deleted_is_named(greenroom, shop, words, told):
    result = greenroom("runs", "delete", *words)
    assert result.exit_code == 3
    assert told in result.stderr


def test_half_an_id_that_means_several_runs_is_refused(greenroom, shop, played):
    played()
    played()
    result = greenroom("runs", "show", "2")
    assert result.exit_code == 3
    assert "the ids of several runs begin with '2'" in result.stderr


def test_runs_are_compared_with_each_other_and_with_files(greenroom, shop, played):
    good = played("-f", "json=good.json")
    bad = played(agent="shop.py:worse")
    assert greenroom("eval", "compare", good, "good.json").exit_code == 0
    result = greenroom("eval", "compare", bad, "--baseline", good, "--fail-on", "unclear")
    assert result.exit_code == 1
    assert "2 flips not decided: a, b" in result.stderr
    found = json.loads(greenroom("eval", "compare", "good.json", bad, "--json").stdout)
    assert found["counts"]["flipped"] == 2
    unknown = greenroom("eval", "compare", good, "20")
    assert unknown.exit_code == 3


def test_cases_that_a_run_did_not_get_to_are_not_called_removed(greenroom, shop, played):
    whole, part = played(), played("--budget", "0.6", "-f", "json=part.json")
    result = greenroom("eval", "compare", whole, part)
    assert result.exit_code == 0, result.output
    assert "removed" not in result.stdout
    assert "unclear     c  not run now: the run is not finished" in result.stdout
    assert "note on the report: the run is not finished: 2 of 3 trials are done" in result.stdout
    turned = greenroom("eval", "compare", part, whole).stdout
    assert "added" not in turned
    assert "not run before" in turned
    assert "note on the baseline: the run is not finished" in turned
    assert "c  not run now" in greenroom("eval", "compare", whole, "part.json").stdout


def test_a_file_that_is_not_there_is_no_run_either(greenroom, shop, played):
    result = greenroom("eval", "compare", played(), "gone.json")
    assert result.exit_code == 3
    assert "there is no file 'gone.json'" in result.stderr


# Measured again


def test_other_criteria_flip_verdicts_without_the_agent(greenroom, shop, played, author):
    run = played()
    author("raise RuntimeError('nobody may load the agent')", bare=True)
    Path("strict.json").write_text('{"criteria": {"contains": {"texts": ["refund"]}}}')
    words = ["eval", "rescore", run, "--config", "strict.json", "-f", "json=anew.json"]
    result = greenroom(*words)
    assert result.exit_code == 0, result.output
    flips = [line for line in result.stdout.splitlines() if line.startswith("flipped")]
    assert [line.split("  ")[0] for line in flips] == [
        "flipped: a: passed → failed",
        "flipped: b: passed → failed",
    ]
    anew = Report.load("anew.json")
    assert [r.status for r in anew] == ["failed"] * 3
    assert anew.id != run
    assert shop.run(run).counts == {"passed": 2, "failed": 1}


def test_changed_cases_can_judge_an_earlier_run(greenroom, shop, played):
    run = played()
    changed = json.loads(json.dumps(SET))
    changed["cases"][2]["expect"] = {"contains": "money"}
    Path("cases.json").write_text(json.dumps(changed))
    found = json.loads(greenroom("eval", "rescore", run, "cases.json", "--json").stdout)
    assert [(f["case_id"], f["before"], f["now"]) for f in found["flips"]] == [
        ("c", "failed", "passed")
    ]
    assert [r["status"] for r in found["report"]["results"]] == ["passed"] * 3


def test_verdicts_that_stay_are_told_too(greenroom, shop, played):
    result = greenroom("eval", "rescore", played(), "cases.json")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no verdict flips")


def test_what_cannot_be_measured_anew_is_exit_code_2(greenroom, shop, played, author):
    run = played()
    author(
        """
    @metric
    def broken(case, ledger):
        raise ValueError("no idea")

    cases = [Case(name, "Hi", metrics=[broken]) for name in "abc"]
    """,
        "anew.py",
    )
    result = greenroom("eval", "rescore", run, "anew.py")
    assert result.exit_code == 2
    assert "could not be measured again: a, b, c" in result.stderr


def test_what_could_not_be_measured_before_either_is_exit_code_2(greenroom, shop, author):
    author(
        """
    @metric
    def broken(case, ledger):
        raise ValueError("no idea")

    agent = clerk("Hello.")
    cases = [Case("a", "Hi", metrics=[broken]), Case("b", "Hi", metrics=[contains("Hello")])]
    """,
        "odd.py",
    )
    assert greenroom("eval", "run", "odd.py").exit_code == 2
    result = greenroom("eval", "rescore", shop.runs()[0].id, "odd.py")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (2, "no verdict flips")
    assert "could not be measured again: a\n" in result.stderr


def test_an_agent_that_broke_then_is_no_failure_to_measure_now(greenroom, shop, author):
    author(
        """
    agent = clerk(RuntimeError("out of order"))
    cases = [
        Case("a", "Hi", metrics=[contains("Hello")]),
        Case("b", "Hi", metrics=[contains("Hello")], agent=clerk("Hello.")),
    ]
    """,
        "odd.py",
    )
    assert greenroom("eval", "run", "odd.py").exit_code == 2
    result = greenroom("eval", "rescore", shop.runs()[0].id, "odd.py")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "words, told",
    [
        (["nothing", "-c", "x.json"], "there is no run 'nothing'"),
        (["RUN", "-c", "gone.json"], "gone.json"),
        (["RUN", "gone.yaml"], "gone.yaml"),
        (["RUN", "cases.json", "-q", "-v"], "contradict"),
    ],
)
def test_what_cannot_be_rescored_is_named(greenroom, shop, played, words, told):
    run = played()
    result = greenroom("eval", "rescore", *(run if word == "RUN" else word for word in words))
    assert result.exit_code == 3, result.output
    assert told in result.stderr


def test_a_run_is_measured_again_by_what_it_measured(greenroom, shop, played):
    result = greenroom("eval", "rescore", played())
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "no verdict flips"


def test_trials_are_played_until_the_gate_is_decided(greenroom, author) -> None:
    author("agent = Agent('desk', model=Scripted('Hello.'))")
    lines = [f"  - {{id: c{n}, says: Hi, expect: {{response: Hello.}}}}\n" for n in range(20)]
    Path("cases.yaml").write_text("version: 1\nname: greetings\ncases:\n" + "".join(lines))
    words = ("eval", "run", "shop.py", "cases.yaml", "--trials", "auto", "--store", "runs")
    done = greenroom(*words, "--min-pass-rate", "0.8")
    assert done.exit_code == 0, done.output
    assert "40 of 400 trials run, 360 saved (90 %)" in " ".join(done.output.split())
    assert "40/40" in greenroom("runs", "list", "--store", "runs").output
    refused = greenroom(*words)
    assert refused.exit_code == 3
    assert "--trials auto needs a --min-pass-rate below 1" in refused.output


@pytest.mark.parametrize("width", ["120", "80", "60", "50", "40", "30"])
def test_the_ids_of_runs_are_never_cut_and_the_table_fits(author, greenroom, monkeypatch, width):
    monkeypatch.setenv("GREENROOM_STORE", "runs")
    author("cases = [Case('a', 'Hi', metrics=[contains('money')])]")
    greenroom("eval", "run", "shop.py")
    [run] = json.loads(greenroom("runs", "list", "--json").stdout)
    monkeypatch.setenv("COLUMNS", width)
    shown = greenroom("runs", "list").stdout
    assert run["id"] in shown
    assert "1/1" in shown
    assert max(map(len, shown.splitlines())) <= int(width)


def test_a_flaky_case_comes_with_the_command_that_compares_its_trials(
    author, greenroom, monkeypatch
):
    monkeypatch.setenv("GREENROOM_STORE", "runs")
    author("""
    class Moody:
        name = "moody"
        asked = 0
        async def respond(self, request, on_delta=None):
            from greenroom.models import ModelReply
            self.asked += 1
            return ModelReply("money" if self.asked % 2 else "nothing")

    agent = Agent("moody", model=Moody())
    cases = [Case("a", "Hi", metrics=[contains("money")])]
    """)
    shown = greenroom("eval", "run", "shop.py", "--trials", "2", "--sequential").stdout
    command = next(line for line in shown.splitlines() if "runs diff" in line)
    words = shlex.split(command.partition("greenroom ")[2])
    assert words[-3:] == ["a#1", "--with", "#2"]
    told = greenroom(*words)
    assert told.exit_code == 1
    assert "model_replied.text is 'money' in the first, 'nothing' in the second" in told.stdout
    assert "a  1 of 2 passed" in greenroom("runs", "show", words[2]).stdout
