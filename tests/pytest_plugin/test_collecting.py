"""Which files are collected, and how their cases are found by name, mark and keyword."""

import json
import subprocess
import sys

import pytest

from pytest_plugin.conftest import BAD, BROKEN, GOOD, Project, said


def collected(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_every_case_of_an_eval_set_is_a_test(project: Project) -> None:
    project.cases(GOOD, BAD)
    found = collected(project.run("--collect-only", "-q"))
    assert found == ["refund.eval.yaml::good", "refund.eval.yaml::bad"]


@pytest.mark.parametrize(
    "name", ["x.evalset.json", "x.evalset.yaml", "x.evalset.yml", "x.test.json", "x.eval.json"]
)
def test_files_are_found_by_the_names_eval_sets_have(project: Project, name: str) -> None:
    project.write(name, json.dumps({"version": 1, "cases": [{"id": "a", "says": "Hi"}]}))
    assert collected(project.run("--collect-only", "-q")) == [f"{name}::a"]


@pytest.mark.parametrize(
    "name, text",
    [
        ("data.json", '{"version": 1, "cases": [{"id": "a", "says": "Hi"}]}'),
        ("cases.yaml", "version: 1\ncases: [{id: a, says: Hi}]"),
        ("other.test.json", '{"suite": "somebody else\'s"}'),
        ("criteria.test.json", '{"criteria": {"exact": 1.0}}'),
    ],
)
def test_files_that_are_not_ours_are_left_alone(project: Project, name: str, text: str) -> None:
    project.write(name, text)
    project.write("test_other.py", "def test_other(): pass")
    result = project.run()
    result.assert_outcomes(passed=1)
    assert "greenroom ==" not in said(result)


def test_listing_loads_no_agent(project: Project) -> None:
    project.cases(GOOD)
    project.write("agent.py", "root_agent = 1\nraise SystemExit('imported')")
    result = project.run("--collect-only", "-q")
    assert (result.ret, collected(result)) == (0, ["refund.eval.yaml::good"])


def test_cases_are_chosen_by_name_tag_and_keyword(project: Project) -> None:
    project.cases(GOOD, BAD)
    project.run("refund.eval.yaml::good").assert_outcomes(passed=1)
    project.run("-m", "smoke").assert_outcomes(passed=1, deselected=1)
    project.run("-k", "smoke").assert_outcomes(passed=1, deselected=1)
    project.run("-k", "bad").assert_outcomes(failed=1, deselected=1)
    assert project.run("-m", "not greenroom").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_odd_tags_do_no_harm(project: Project) -> None:
    project.cases(GOOD.replace("[smoke]", "['a b', '_x', usefixtures, parametrize, '(', 'team:x']"))
    project.run("-m", "a_b and x and team_x").assert_outcomes(passed=1)


def test_a_tag_may_say_what_pytest_says_with_it(project: Project) -> None:
    project.cases(GOOD.replace("smoke", "skip"), BAD.replace("  says", "  tags: [xfail]\n  says"))
    project.run().assert_outcomes(skipped=1, xfailed=1)


def test_the_last_failures_are_played_again(project: Project) -> None:
    project.cases(GOOD, BAD)
    project.run().assert_outcomes(passed=1, failed=1)
    project.run("--lf").assert_outcomes(failed=1)


def test_a_case_says_where_it_stands(project: Project) -> None:
    project.cases(GOOD, BAD)
    project.write(
        "conftest.py",
        """
        from pathlib import Path
        def pytest_collection_modifyitems(items):
            Path("lines").write_text(repr([item.location[1] + 1 for item in items]))
        """,
    )
    project.run("--collect-only")
    lines = (project.path / "refund.eval.yaml").read_text().splitlines()
    stand = [number for number, line in enumerate(lines, start=1) if line.startswith("- id")]
    assert (project.path / "lines").read_text() == repr(stand)


# Which agent plays a file


def test_the_guides_file_belongs_to_the_agent_of_its_name(project: Project) -> None:
    (project.path / "agent.py").rename(project.path / "weather.py")
    text = {"data": [{"name": "tokyo", "query": "Weather?", "expected_tool_calls": []}]}
    project.write("weather.test.json", json.dumps(text))
    result = project.run()
    result.assert_outcomes(failed=1)
    assert "refund(order=7) was not run" in said(result)


def test_a_file_in_a_folder_below_the_agents_belongs_to_it(project: Project) -> None:
    project.cases(GOOD, name="evals/refund.eval.yaml")
    project.run().assert_outcomes(passed=1)


def test_an_agent_two_folders_up_is_not_guessed(project: Project) -> None:
    project.cases(GOOD, name="a/b/refund.eval.yaml")
    result = project.run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "no agent is known for it: a/b/refund.eval.yaml" in said(result)


def test_a_module_that_names_no_agent_is_none(project: Project) -> None:
    project.write("agent.py", "raise RuntimeError('not for you')\nclass Agent: ...")
    project.cases(GOOD)
    assert project.run().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_file_that_is_named_needs_an_agent(project: Project) -> None:
    (project.path / "agent.py").unlink()
    project.cases(GOOD)
    result = project.run("refund.eval.yaml")
    result.assert_outcomes(errors=1)
    assert "no agent is known for refund.eval.yaml. Name one: " in said(result)


def test_the_project_says_which_files_and_which_agent(project: Project) -> None:
    (project.path / "agent.py").rename(project.path / "shop.py")
    project.settings('agent = "shop.py:root_agent"\nfiles = ["evals/**/*.yaml"]')
    project.cases(GOOD, name="evals/deep/plain.yaml")
    project.cases(GOOD, name="elsewhere/plain.yaml")
    assert collected(project.run("--collect-only", "-q")) == ["evals/deep/plain.yaml::good"]
    project.run().assert_outcomes(passed=1)


def test_a_file_the_project_names_must_be_an_eval_set(project: Project) -> None:
    project.settings('files = ["notes.yaml"]')
    project.write("notes.yaml", "a: b")
    result = project.run()
    result.assert_outcomes(errors=1)
    assert "is not an eval set" in said(result)


def test_a_set_may_name_its_agent(project: Project) -> None:
    (project.path / "agent.py").rename(project.path / "shop.py")
    project.cases(GOOD, head="metadata: {agent: '../shop.py:root_agent'}\n", name="x/r.eval.yaml")
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize("named", ["os:getcwd", "/etc/passwd", "nowhere.py", "../outside.py"])
def test_a_set_cannot_name_code_outside_its_project(project: Project, named: str) -> None:
    (project.path.parent / "outside.py").write_text("root_agent = 1")
    project.cases(GOOD, head=f"metadata: {{agent: '{named}'}}\n")
    result = project.run()
    result.assert_outcomes(errors=1)
    assert "which is not a Python file or folder of this project" in said(result)


def test_the_command_line_wins(project: Project) -> None:
    project.settings('agent = "nowhere.py"')
    project.cases(GOOD, head="metadata: {agent: nowhere.py}\n")
    project.run("--greenroom-agent", "agent.py").assert_outcomes(passed=1)


def test_a_conftest_brings_mocks_metrics_and_agents_to_cases(project: Project) -> None:
    (project.path / "agent.py").rename(project.path / "shop.py")
    project.cases(BROKEN)
    project.write(
        "conftest.py",
        """
        import sys
        from dataclasses import replace
        from pathlib import Path
        sys.path.insert(0, str(Path(__file__).parent))
        from shop import root_agent

        def pytest_greenroom_case(case, path):
            assert path.name == "refund.eval.yaml"
            return replace(case, mocks={"refund": "done"}, agent=root_agent)
        """,
    )
    project.run().assert_outcomes(passed=1)


def test_a_conftest_that_returns_no_case_is_told(project: Project) -> None:
    project.cases(GOOD)
    project.write("conftest.py", "def pytest_greenroom_case(case): return 5")
    result = project.run()
    result.assert_outcomes(errors=1)
    assert "pytest_greenroom_case returned 5, which is not a Case" in said(result)


# Files with mistakes


@pytest.mark.parametrize("text", ["version: 1\ncases: [{id: a, sayz: Hi}]", "version: 1\ncases: ["])
def test_a_mistake_in_an_eval_set_is_an_error_that_names_it(project: Project, text: str) -> None:
    project.write("refund.eval.yaml", text)
    result = project.run()
    result.assert_outcomes(errors=1)
    assert "refund.eval.yaml" in said(result)
    assert "Traceback" not in said(result)


def test_a_file_that_is_named_and_called_so_must_be_an_eval_set(project: Project) -> None:
    project.write("other.test.json", "{}")
    result = project.run("other.test.json")
    result.assert_outcomes(errors=1)
    assert "is not an eval set" in said(result)


def test_a_torn_file_of_somebody_else_is_left_alone(project: Project) -> None:
    (project.path / "agent.py").unlink()
    project.write("other.test.json", "{")
    project.write("test_other.py", "def test_other(): pass")
    project.run().assert_outcomes(passed=1)


# Settings


@pytest.mark.parametrize(
    "text, told",
    [
        ('agnet = "a.py"', "Did you mean 'agent'?"),
        ("trials = 0", "trials=0 should be a whole number of 1 or more"),
        ("trials = true", "trials=True should be"),
        ('trials = "3"', "trials='3' should be"),
        ('trials = "auto"', "reaches a minimum. Give one"),
        ("min_pass_rate = 90", "min_pass_rate=90 should be a share from 0 to 1"),
        ("min_pass_rate = nan", "should be a share"),
        ('files = "a.yaml"', "files='a.yaml' should be a list of patterns"),
        ("max_cost = -1", "an amount in USD"),
        ("max_errors = 1", "max_errors=1 is for min_pass_rate or baseline"),
        ('on_drift = "live"', "on_drift='live' is for replay"),
        ("agent = 5", "agent=5 should be a path"),
        ("config = 5", "config=5 should be a path"),
        ("store = true", "store=True should be a path"),
        ('allow_tools = "refund"', "allow_tools='refund' should be a list of strings"),
        ("allow_tools = [5]", "allow_tools=[5] should be a list of strings"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(project: Project, text: str, told: str) -> None:
    project.settings(text)
    result = project.run()
    assert (result.ret, told in said(result)) == (pytest.ExitCode.USAGE_ERROR, True), said(result)


def test_all_wrong_settings_are_named_at_once_with_their_lines(project: Project) -> None:
    project.settings('agnet = "a.py"\ntrials = 0')
    told = said(project.run("--greenroom-min-pass-rate=7"))
    assert "pyproject.toml, line 5: [tool.greenroom.pytest] has no option 'agnet'" in told
    assert "pyproject.toml, line 6: trials=0 should be" in told
    assert "greenroom: min_pass_rate=7 should be" in told


def test_a_pattern_outside_the_project_is_refused(project: Project) -> None:
    project.settings('files = ["/etc/*.json"]')
    project.cases(GOOD)
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "files=['/etc/*.json'] should be a list of patterns" in said(result)


def test_the_plugin_loads_no_room_until_there_is_something_to_rehearse() -> None:
    loaded = (
        "import pytest, sys; before = set(sys.modules); import greenroom.apps.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True, text=True)
    assert out.stdout.split() == [
        "greenroom",
        "greenroom.apps",
        "greenroom.apps.pytest_plugin",
        "greenroom.apps.pytest_plugin.attempts",
        "greenroom.apps.pytest_plugin.settings",
        "greenroom.apps.pytest_plugin.tally",
        "greenroom.lazy",
        "greenroom.suite",
        "greenroom.suite.option_types",
        "greenroom.suite.options",
    ]


def test_a_run_without_rehearsals_loads_no_room(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.write("pyproject.toml", "")
    project.write("notes.json", "{}")
    project.write(
        "test_other.py",
        """
        import sys
        def test_other():
            rooms = ("cases", "results", "ledger", "errors")
            assert not [room for room in rooms if f"greenroom.{room}" in sys.modules]
            suite = {name for name in sys.modules if name.startswith("greenroom.suite.")}
            assert suite <= {"greenroom.suite.option_types", "greenroom.suite.options"}
            assert "pydantic" not in sys.modules
        """,
    )
    result = project.run_apart()
    result.assert_outcomes(passed=1)
