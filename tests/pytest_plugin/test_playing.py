"""Cases played as tests: what a failure shows, what is counted, and when the gate opens."""

import json
from xml.etree import ElementTree

import pytest

from greenroom.results import Report
from greenroom.results.report import CasePlace
from pytest_plugin.conftest import AGENT, BAD, BROKEN, GOOD, Project, said

CUT = """
- id: cut
  says: Refund order 7
  user: {lines: [Again, Again]}
  mocks: {refund: {value: done}}
  stop: {max_turns: 1}
  expect: {contains: money}
"""
EMPTY = """
- id: empty
  says: Refund order 7
  mocks: {refund: {value: done}}
"""


def test_a_failure_shows_why_what_was_expected_what_was_said_and_how_to_play_it_again(
    project: Project,
) -> None:
    project.cases(GOOD, BAD)
    result = project.run()
    result.assert_outcomes(passed=1, failed=1)
    shown = said(result)
    for line in [
        "wrong arguments refund(order=7) instead of refund(order=8)",
        "turn 1 tools  - refund(order=8)",
        "              + refund(order=7)",
        "user         Refund order 8",
        'tool         refund(order=7) → "done"  (mock)',
        "agent        Your money is on its way.",
        "again: pytest refund.eval.yaml::bad",
    ]:
        assert line in shown


def test_what_a_model_says_cannot_steer_the_terminal(project: Project) -> None:
    agent = project.path / "agent.py"
    agent.write_text(agent.read_text().replace("Your money", "\\x1b[2J\\u202eYour money"))
    project.cases(GOOD.replace("contains: money", "contains: nothing"))
    result = project.run("--color=no", "-vv")
    assert "\\x1b[2J\\u202eYour money is on its way." in said(result)
    assert "\x1b" not in said(result)
    assert "\u202e" not in said(result)


def test_the_command_to_play_it_again_is_seen_from_where_one_stands(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.cases(BAD.replace("id: bad", "id: a bad one"), name="evals/refund.eval.yaml")
    monkeypatch.chdir(project.path / "evals")
    assert "again: pytest 'refund.eval.yaml::a bad one'" in said(project.run())


@pytest.mark.parametrize(
    "case, why",
    [
        (BROKEN, "system: tool 'refund' was called in case 'broken', but has no mock"),
        (CUT, "the trial was stopped at its limit (max_turns) after 1 turn"),
        (EMPTY, "metric: nothing was evaluated"),
    ],
)
def test_what_proves_nothing_never_passes(project: Project, case: str, why: str) -> None:
    project.cases(case)
    result = project.run()
    result.assert_outcomes(failed=1)
    assert why in said(result)


def test_a_tool_runs_only_if_it_is_named(project: Project) -> None:
    agent = project.path / "agent.py"
    agent.write_text(agent.read_text().replace('raise RuntimeError("never', 'return ("never'))
    project.cases(BROKEN)
    project.run().assert_outcomes(failed=1)
    project.run("--greenroom-allow-tool", "refund").assert_outcomes(passed=1)
    project.settings('allow_tools = ["refund"]')
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "text, told",
    [
        ("root_agent = 5", "NotFound: no backend can run"),
        ("import nowhere_to_be_found\nroot_agent = 1", "nowhere_to_be_found"),
        ("root_agent = (", "SyntaxError"),
    ],
)
def test_an_agent_that_cannot_be_loaded_fails_its_cases(
    project: Project, text: str, told: str
) -> None:
    project.write("agent.py", text)
    project.cases(GOOD)
    result = project.run()
    result.assert_outcomes(failed=1)
    assert told in said(result)
    assert "eval sets: 1 case: 0 passed, 1 error; nothing evaluated" in said(result)


def test_a_config_beside_the_file_judges_it(project: Project) -> None:
    project.cases(GOOD)
    project.write("test_config.json", json.dumps({"criteria": {"tool_name_match": 1.0}}))
    project.run("--junitxml=j.xml").assert_outcomes(passed=1)
    assert "greenroom.score.tool_name_match" in (project.path / "j.xml").read_text()
    project.write("strict.yaml", "version: 1\nmetrics: [{criterion: contains, texts: [coins]}]\n")
    result = project.run("--greenroom-config", "strict.yaml")
    result.assert_outcomes(failed=1)
    assert "missing 'coins'" in said(result)


# Trials


FICKLE = """
from greenroom import step
from itertools import cycle
answers = cycle(["Your money", "Nothing"])
root_agent = step(lambda: next(answers), name="fickle")
"""
SAID = "\n- {id: said, says: Hi, expect: {contains: money}}\n"


def test_every_trial_has_to_pass(project: Project) -> None:
    project.write("agent.py", FICKLE)
    project.cases(SAID)
    project.run().assert_outcomes(passed=1)
    result = project.run("--greenroom-trials", "2")
    result.assert_outcomes(failed=1)
    assert "case 'said (trial 2)': failed" in said(result)
    assert "eval sets: 2 trials of 1 case: 1 passed, 1 failed; 50.0 % passing" in said(result)


def test_a_set_says_how_often_it_is_played(project: Project) -> None:
    project.cases(GOOD, head="trials: 3\n")
    assert "3 trials of 1 case: 3 passed" in said(project.run())


# What is counted


def test_the_summary_counts_files_and_tests_apart(project: Project) -> None:
    project.cases(GOOD, BAD, BROKEN)
    project.cases(GOOD, name="more/refund.eval.yaml")
    project.write(
        "test_it.py",
        """
        def test_it(rehearse):
            assert not rehearse("agent.py", "refund.eval.yaml").passed
        """,
    )
    shown = said(project.run())
    assert "eval sets: 4 cases: 2 passed, 1 failed, 1 error; 67 % (20–94) passing" in shown
    assert "tests: 3 cases: 1 passed, 1 failed, 1 error; 50 % ± 41 passing" in shown
    assert "answered by scripted" in shown


def test_an_unknown_cost_is_said_to_be_unknown(project: Project) -> None:
    project.write(
        "agent.py",
        """
        from greenroom import Agent
        from greenroom.models import ModelReply

        class Strange:
            name = "strange"
            async def respond(self, request, on_delta=None):
                return ModelReply("Your money")

        root_agent = Agent("clerk", model=Strange())
        """,
    )
    project.cases(SAID)
    result = project.run("--greenroom-max-cost", "5")
    assert "answered by strange; cost unknown" in said(result)
    assert "gate: the cost is unknown, so a maximum of $5.00 cannot be shown" in said(result)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


JUDGED = """
from greenroom import Agent, Scripted
from greenroom.models import ModelReply

root_agent = Agent("clerk", model=Scripted(ModelReply("Your money", cost=0.5, prices="test")))
"""
DRESSED = """
from dataclasses import replace
from greenroom import Scripted
from greenroom.metrics import judge
from greenroom.models import ModelReply

def pytest_greenroom_case(case):
    answer = ModelReply('{"reasoning": "So.", "verdict": true}', cost=0.25, prices="test")
    return replace(case, metrics=[judge("tone", "Was it polite?", model=Scripted(answer))])
"""


@pytest.mark.parametrize(
    "most, told",
    [("0.75", "1 passed"), ("0.74", "gate: the cost of $0.7500 is above a maximum of $0.7400")],
)
def test_what_judges_cost_counts(project: Project, most: str, told: str) -> None:
    project.write("agent.py", JUDGED)
    project.write("conftest.py", DRESSED)
    project.cases(SAID)
    result = project.run("--greenroom-max-cost", most)
    result.assert_outcomes(passed=1)
    assert told in said(result)
    assert "judged by scripted; cost $0.2500" in said(result)
    assert result.ret == (0 if most == "0.75" else pytest.ExitCode.TESTS_FAILED)


def test_a_maximum_of_cost_alone_is_no_gate_for_what_failed(project: Project) -> None:
    project.cases(GOOD, BAD, BROKEN)
    result = project.run("--greenroom-max-cost=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "gate:" not in said(result)


def test_nothing_is_said_where_nothing_was_rehearsed(project: Project) -> None:
    project.write("test_it.py", "def test_it(): pass")
    assert "greenroom ==" not in said(project.run("--greenroom-min-pass-rate", "1"))


def test_junit_has_what_was_measured(project: Project) -> None:
    project.cases(GOOD, BAD)
    project.run("--junitxml=junit.xml")
    cases = ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase")
    found = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in cases
    }
    assert found["good"] == {
        "greenroom.case": "good",
        "greenroom.status": "passed",
        "greenroom.score.expected_tools": "1.0000",
        "greenroom.score.expected_contains": "1.0000",
        "greenroom.cost_usd": "0",
        "greenroom.models": "scripted",
    }
    assert found["bad"]["greenroom.score.expected_tools"] == "0.0000"


def test_the_report_of_all_files_can_be_kept(project: Project) -> None:
    project.cases(GOOD, BAD)
    project.cases(GOOD, name="more/refund.eval.yaml")
    project.run("--greenroom-report", "out/report.json")
    report = Report.load(project.path / "out/report.json")
    assert {result.case_id: result.status for result in report} == {
        "more/refund.eval.yaml::good": "passed",
        "refund.eval.yaml::good": "passed",
        "refund.eval.yaml::bad": "failed",
    }


def test_a_report_that_cannot_be_kept_fails_the_run(project: Project) -> None:
    project.cases(GOOD)
    result = project.run("--greenroom-report", "agent.py/report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "cannot write the report" in said(result)


# The gate


@pytest.mark.parametrize(
    "cases, words, code, told",
    [
        ([GOOD, BAD], ["--greenroom-min-pass-rate=0.5"], 0, "gate: passed"),
        (
            [GOOD, BAD],
            ["--greenroom-min-pass-rate=0.6"],
            1,
            "50.0 % is below the minimum of 60.0 %",
        ),
        ([GOOD, BROKEN], ["--greenroom-min-pass-rate=0"], 1, "gate: 1 case ended in an error"),
        (
            [GOOD, BROKEN],
            ["--greenroom-min-pass-rate=1", "--greenroom-max-errors=1"],
            0,
            "gate: passed",
        ),
        ([BROKEN], ["--greenroom-min-pass-rate=0", "--greenroom-max-errors=1"], 1, "no case was"),
        ([GOOD, CUT], ["--greenroom-min-pass-rate=0.6"], 1, "below the minimum"),
        ([GOOD], ["--greenroom-max-cost=0"], 0, "1 passed"),
    ],
)
def test_the_gate_decides(
    project: Project, cases: list[str], words: list[str], code: int, told: str
) -> None:
    project.cases(*cases)
    result = project.run(*words)
    assert (result.ret, told in said(result)) == (code, True), said(result)


def test_the_gate_may_stand_in_the_projects_file(project: Project) -> None:
    project.settings("min_pass_rate = 0.5")
    project.cases(GOOD, BAD)
    assert project.run().ret == pytest.ExitCode.OK
    assert project.run("--greenroom-min-pass-rate=0.6").ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("where", ["ini", "section", "option"])
def test_a_baseline_asks_that_nothing_gets_worse_in_place_of_a_minimum(
    project: Project, where: str
) -> None:
    project.cases(GOOD, BAD)
    project.run("--greenroom-report=main.json")
    words = ["--greenroom-baseline=main.json"] if where == "option" else []
    project.settings(
        'baseline = "main.json"' if where == "section" else "",
        'greenroom_baseline = "main.json"' if where == "ini" else "",
    )
    result = project.run(*words)
    assert result.ret == pytest.ExitCode.OK, said(result)
    assert "gate: passed" in said(result)
    project.write("agent.py", AGENT.replace("Your money is on its way.", "No."))
    worse = project.run(*words)
    assert worse.ret == pytest.ExitCode.TESTS_FAILED
    assert "gate: 1 case regressed: refund.eval.yaml::good" in said(worse)


def test_a_baseline_that_cannot_be_read_or_shares_no_case_opens_no_gate(project: Project) -> None:
    project.cases(GOOD)
    missing = project.run("--greenroom-baseline=main.json")
    assert missing.ret == pytest.ExitCode.TESTS_FAILED
    assert "BadFile: there is no file" in said(missing)
    assert "1 passed" not in said(missing)  # no case is paid for that could not be judged
    Report([], id="other").save(project.path / "main.json")
    other = project.run("--greenroom-baseline=main.json")
    assert other.ret == pytest.ExitCode.TESTS_FAILED
    assert "gate: no case is shared with the baseline" in said(other)


@pytest.mark.parametrize("words", [[], ["-n", "1"]], ids=["here", "in a worker"])
def test_the_short_summary_shows_the_reason(project: Project, words: list[str]) -> None:
    project.cases(GOOD, BAD)
    shown = said(project.run("-rf", *words))
    line = next(line for line in shown.splitlines() if line.startswith("FAILED"))
    assert "refund.eval.yaml::bad - " in line
    assert "wrong arguments" in shown.partition("short test summary info")[2] or "expected" in line


FAILS_ONCE = """
from pathlib import Path

from greenroom import Agent, tool
from greenroom.models import ModelReply

class Moody:
    name = "moody"
    async def respond(self, request, on_delta=None):
        asked = Path(__file__).with_name("asked")
        asked.write_text(f"{asked.read_text() if asked.exists() else ''}x")
        return ModelReply("No." if len(asked.read_text()) == 1 else "Your money is on its way.")

@tool
def refund(order: int) -> str:
    "Pay back."
    raise AssertionError("a tool body ran")

agent = Agent("clerk", model=Moody(), tools=[refund])
"""
ANSWERED = """
- id: good
  says: Refund order 7
  mocks: {refund: {value: done}}
  expect: {contains: money}
"""


def test_a_suspect_against_the_baseline_runs_again_before_it_counts_as_worse(
    project: Project,
) -> None:
    project.cases(ANSWERED)
    project.run("--greenroom-report=main.json", "--greenroom-trials=3")
    words = ["--greenroom-baseline=main.json", "--greenroom-report=now.json"]
    project.write("agent.py", FAILS_ONCE)
    once = project.run(*words)
    assert once.ret == pytest.ExitCode.OK, said(once)
    before, now = (Report.load(project.path / name) for name in ("main.json", "now.json"))
    assert now.against == before.id
    assert [result.status for result in now.results] == ["failed"]
    assert [result.status for result in now.confirmed] == ["passed"]
    assert {result.case_id for result in now.confirmed} == {"refund.eval.yaml::good"}
    project.write("agent.py", FAILS_ONCE.replace("== 1", "> 0"))
    worse = project.run(*words)
    assert worse.ret == pytest.ExitCode.TESTS_FAILED
    confirmed = Report.load(project.path / "now.json").confirmed
    assert len(confirmed) > 1
    assert {result.status for result in confirmed} == {"failed"}
    assert "1 case regressed" in said(worse)


def test_trials_auto_runs_each_case_until_its_pass_rate_is_clear(project: Project) -> None:
    project.cases(GOOD, BAD)
    words = ["--greenroom-trials=auto", "--greenroom-min-pass-rate=0.6"]
    result = project.run(*words, "--greenroom-report=now.json")
    result.assert_outcomes(passed=1, failed=1)
    assert "misses the minimum of 60" in said(result)
    trials = Report.load(project.path / "now.json").by_case()
    assert all(1 < len(results) < 20 for results in trials.values())


def test_cases_that_leave_their_minimum_open_open_no_gate(project: Project) -> None:
    project.write("agent.py", FAILS_ONCE.replace("== 1", "% 3 == 0"))
    project.cases(ANSWERED)
    words = ["--greenroom-trials=auto", "--greenroom-min-pass-rate=0.6"]
    result = project.run(*words, "--greenroom-report=now.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED, said(result)
    assert "gate: adaptive trials did not show that the minimum is reached" in said(result)
    report = Report.load(project.path / "now.json")
    assert report.adaptive
    assert [list(part) for part in report.parts] == [["refund.eval.yaml::good"]]


def test_adaptive_cases_are_judged_together_though_each_stops_by_itself(project: Project) -> None:
    project.cases(*(GOOD.replace("id: good", f"id: good{n}") for n in range(9)), BAD)
    result = project.run("--greenroom-trials=auto", "--greenroom-min-pass-rate=0.8")
    assert "bad - the pass rate of these cases is 0 %" in said(result)
    assert "gate: passed" in said(result)
    assert result.ret == pytest.ExitCode.OK


def test_the_report_says_where_cases_are_from_and_what_measured_them(project: Project) -> None:
    project.settings("config = 'criteria.json'")
    project.write("criteria.json", '{"criteria": {"response_match_score": 0.5}}')
    project.cases(GOOD, name="evals/refund.eval.yaml", head="id: shop\n")
    project.run("--greenroom-report=now.json")
    report = Report.load(project.path / "now.json")
    place = CasePlace("shop", "evals/refund.eval.yaml", 5)
    assert report.sources == {"evals/refund.eval.yaml::good": place}
    assert list(report.measures) == ["response_match_score"]
    assert report.evalset_id == "shop"


RERUNS = """
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for attempt in range(3):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        again = attempt < 2 and any(report.failed for report in reports)
        for report in reports:
            if again and report.failed:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
            if again and report.outcome == "rerun":
                break
        if not again:
            return True
"""
"""Runs a failed test again, as pytest-rerunfailures does."""


def test_of_a_case_that_a_plug_in_runs_again_the_last_attempt_counts(project: Project) -> None:
    project.write("conftest.py", RERUNS)
    project.write("agent.py", FAILS_ONCE.replace("== 1", "< 3"))
    project.cases(ANSWERED)
    result = project.run("--greenroom-report=now.json", "--greenroom-min-pass-rate=1")
    assert result.ret == pytest.ExitCode.OK, said(result)
    report = Report.load(project.path / "now.json")
    assert [one.status for one in report] == ["passed"]
    [note] = [note for note in report.notes if "run again" in note]
    assert note == (
        "refund.eval.yaml::good was run again 2 times by a plug-in of pytest; only the last attempt counts"
    )
    assert "eval sets: 1 case: 1 passed" in said(result)


def test_a_last_attempt_without_a_result_is_an_error_whatever_came_before(
    project: Project,
) -> None:
    breaks = """

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[SEEN] = item.stash.get(SEEN, 0) + 1
    if item.stash[SEEN] == 3:
        raise RuntimeError("the machine is tired")

SEEN = pytest.StashKey()
"""
    project.write("conftest.py", RERUNS + breaks)
    project.cases(BAD)
    project.run("--greenroom-report=now.json")
    assert [one.status for one in Report.load(project.path / "now.json")] == ["error"]


DIES = (
    RERUNS
    + """

class Controller:
    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem, report, sched):
        sched.mark_test_pending(crashitem)
        report.outcome = "rerun"

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller())

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    tried = Path("tried")
    count = len(tried.read_text()) if tried.exists() else 0
    tried.write_text((count + 1) * "x")
    if count == 1:
        time.sleep(1)  # so that what was sent before arrives
        os._exit(1)
"""
)
"""Kills the worker of the second attempt, and lets another worker run the test again."""


def test_an_attempt_after_the_death_of_a_worker_replaces_those_before(project: Project) -> None:
    project.write("conftest.py", f"import os, time\nfrom pathlib import Path\n{DIES}")
    dear = "ModelReply(name, cost=0.5, prices='test')"
    project.write(
        "agent.py",
        "from pathlib import Path\nfrom greenroom import Agent, Scripted\n"
        "from greenroom.models import ModelReply\n"
        "name = 'nothing' if len(Path('tried').read_text()) < 3 else 'money'\n"
        f"root_agent = Agent('clerk', model=Scripted(then={dear}))\n",
    )
    project.cases(SAID)
    result = project.run_apart("-n", "1", "--greenroom-report=now.json", "--greenroom-max-cost=0.6")
    report = Report.load(project.path / "now.json")
    assert [one.status for one in report] == ["passed"], said(result)
    assert any("was run again once by a plug-in of pytest" in note for note in report.notes)
    assert "with attempts that were repeated, the cost of $1.00 is above" in said(result)


def test_what_a_fixture_of_the_module_rehearsed_counts_when_its_test_runs_again(
    project: Project,
) -> None:
    project.write("conftest.py", RERUNS)
    project.write(
        "test_own.py",
        """
import pytest
from itertools import count
from greenroom import Agent, Case, Expect, Scripted
from greenroom.apps.pytest_plugin import EvalRunner

tried = count()

@pytest.fixture(scope="module")
def answer():
    agent = Agent("clerk", model=Scripted(then="money"))
    return EvalRunner(agent, evaluators=[]).run_single("Hi", [])

def test_answer(answer):
    assert next(tried) == 1
""",
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.OK, said(result)
    assert "tests: 1 case: " in said(result)


def test_attempts_that_were_repeated_count_in_what_was_paid(project: Project) -> None:
    project.write("conftest.py", RERUNS)
    project.write("agent.py", JUDGED)
    project.cases(SAID.replace("contains: money", "contains: goods"))
    result = project.run("--greenroom-max-cost=1.2")
    assert "with attempts that were repeated, the cost of $1.50" in said(result)


SKIPS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if hasattr(item, "case"):
            item.add_marker(pytest.mark.skip)
"""


@pytest.mark.parametrize(
    "conftest, cases, why",
    [
        ("", "a/b/refund.eval.yaml", "no agent is known for a/b/refund.eval.yaml"),
        (
            SKIPS,
            "refund.eval.yaml",
            "cases skipped: 1",
        ),
    ],
)
def test_a_gate_without_a_case_that_was_evaluated_does_not_open(
    project: Project, conftest: str, cases: str, why: str
) -> None:
    project.write("conftest.py", conftest)
    project.cases(GOOD, name=cases)
    project.write("test_own.py", "def test_own(): pass")
    words = ["--greenroom-min-pass-rate=0.5"]
    result = project.run(*words)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"gate: no case of an eval set was evaluated: {why}" in said(result)
    assert project.run().ret == pytest.ExitCode.OK
    assert project.run("test_own.py", *words).ret == pytest.ExitCode.OK
    assert project.run("-m", "not greenroom", *words).ret == pytest.ExitCode.OK
    assert project.run("--collect-only", *words).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("words", [[], ["--greenroom-min-pass-rate=1"]])
def test_trials_auto_needs_a_minimum_that_trials_can_show(
    project: Project, words: list[str]
) -> None:
    project.cases(GOOD)
    result = project.run("--greenroom-trials=auto", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--greenroom-min-pass-rate 0.9" in result.stderr.str()


def test_the_gate_excuses_no_other_failure(project: Project) -> None:
    project.settings("min_pass_rate = 0.5")
    project.cases(GOOD, BAD)
    project.write("test_it.py", "def test_it(): assert False")
    assert project.run().ret == pytest.ExitCode.TESTS_FAILED


def test_the_gate_excuses_no_run_that_was_cut_short(project: Project) -> None:
    project.settings("min_pass_rate = 0.5")
    project.cases(GOOD, BAD, GOOD.replace("id: good", "id: last"))
    assert project.run("-x").ret == pytest.ExitCode.TESTS_FAILED


def test_the_gate_excuses_no_agent_that_cannot_be_loaded(project: Project) -> None:
    project.settings("min_pass_rate = 0.0\nmax_errors = 9")
    project.cases(GOOD)
    project.write("agent.py", "raise RuntimeError('no key')\nroot_agent = 1")
    assert project.run().ret == pytest.ExitCode.TESTS_FAILED


# Several workers


def with_workers(project: Project, *words: str, count: int = 1) -> pytest.RunResult:
    return project.run_apart("-n", str(count), *words)


def test_results_come_home_from_workers(project: Project) -> None:
    project.settings("min_pass_rate = 0.6")
    many = [GOOD.replace("id: good", f"id: good{n}") for n in range(4)]
    project.cases(*many, BAD, name="evals/plain.eval.yaml")
    result = with_workers(project, "--greenroom-report=r.json", "--junitxml=j.xml", count=2)
    assert "eval sets: 5 cases: 4 passed, 1 failed; 80 % (37–97) passing" in said(result)
    assert "again: pytest evals/plain.eval.yaml::bad" in said(result)
    assert (result.ret, len(Report.load(project.path / "r.json"))) == (0, 5)
    assert 'value="failed"' in (project.path / "j.xml").read_text()


def test_half_a_character_of_a_model_breaks_no_wire(project: Project) -> None:
    agent = project.path / "agent.py"
    agent.write_text(agent.read_text().replace("Your money", "Your money \\ud83d"))
    project.cases(GOOD, BAD)
    assert "eval sets: 2 cases: 1 passed, 1 failed" in said(with_workers(project))


def test_files_without_an_agent_are_listed_by_workers_too(project: Project) -> None:
    project.cases(GOOD, name="a/b/refund.eval.yaml")
    project.cases(GOOD)
    assert "no agent is known for it: a/b/refund.eval.yaml" in said(with_workers(project))


@pytest.mark.heavy
def test_a_worker_that_dies_takes_nothing_with_it_and_passes_nothing(project: Project) -> None:
    project.settings("min_pass_rate = 0.5\nmax_errors = 5")
    project.write(
        "agent.py",
        """
        import os
        from greenroom import step
        def answer(ctx):
            if ctx.input == "die":
                os._exit(9)
            return "Your money"
        root_agent = step(answer, name="mortal")
        """,
    )
    others = [SAID.replace("id: said", f"id: said{n}") for n in range(6)]
    project.cases(*others[:3], SAID.replace("says: Hi", "says: die"), *others[3:])
    result = with_workers(project, "--greenroom-report=r.json", count=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "eval sets: 7 cases: 6 passed, 1 error" in said(result)
    died = Report.load(project.path / "r.json")["refund.eval.yaml::said"]
    assert (died.status, died.error and died.error.phase) == ("error", "system")
