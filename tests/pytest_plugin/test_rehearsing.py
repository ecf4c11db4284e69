"""The fixtures: an agent rehearsed inside a test, sync or async, with and without other plug-ins."""

import pytest

from nested_pytest import ASYNCIO
from pytest_plugin.conftest import BAD, BROKEN, GOOD, Project, said

ANYIO = "anyio.pytest_plugin"

SYNC = """
def test_refund(rehearse):
    report = rehearse("agent.py", "refund.yaml", trials=2)
    assert report.passed, report
"""


def test_a_test_rehearses_an_agent(project: Project) -> None:
    project.cases(GOOD, name="refund.yaml")
    project.write("test_it.py", SYNC)
    result = project.run()
    result.assert_outcomes(passed=1)
    assert "tests: 2 trials of 1 case: 2 passed" in said(result)


@pytest.mark.parametrize("claim", ["assert report.passed, report", "assert report.passed"])
def test_a_failing_test_shows_what_was_rehearsed(project: Project, claim: str) -> None:
    project.cases(GOOD, BAD, name="refund.yaml")
    project.write("test_it.py", SYNC.replace("assert report.passed, report", claim))
    result = project.run("--junitxml=j.xml")
    result.assert_outcomes(failed=1)
    for text in (said(result), (project.path / "j.xml").read_text()):
        assert "case 'bad (trial 2)': failed" in text
        assert "agent        Your money is on its way." in text
        assert "case 'good'" not in text


def test_a_test_that_wants_a_failure_passes_without_a_word(project: Project) -> None:
    project.cases(BAD, name="refund.yaml")
    project.write("test_it.py", SYNC.replace("report.passed, report", "not report.passed"))
    result = project.run()
    result.assert_outcomes(passed=1)
    assert "wrong arguments" not in said(result)


def test_paths_are_looked_for_beside_the_test_and_then_in_the_project(project: Project) -> None:
    project.cases(BAD, name="refund.yaml")
    project.cases(GOOD, name="tests/refund.yaml")
    project.write("tests/test_it.py", SYNC)
    project.run().assert_outcomes(passed=1)
    (project.path / "tests/refund.yaml").unlink()
    project.run().assert_outcomes(failed=1)


def test_agents_and_cases_may_be_objects(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        from greenroom import Case, Expect, step
        def test_it(rehearse):
            case = Case("a", "Hi", expect=Expect(contains="Hi"))
            report = rehearse(step(lambda ctx: ctx.input, name="echo"), [case])
            assert report["a"].passed
        """,
    )
    project.run().assert_outcomes(passed=1)


def test_a_mark_says_what_a_test_does_not(project: Project) -> None:
    project.cases(GOOD, name="refund.yaml")
    project.write(
        "test_it.py",
        """
        import pytest
        pytestmark = pytest.mark.greenroom(agent="agent.py", trials=5)

        @pytest.mark.greenroom(cases="refund.yaml", trials=2)
        def test_marked(rehearse):
            assert len(rehearse()) == 2
            assert len(rehearse(trials=3)) == 3

        @pytest.mark.greenroom(cases="refund.yaml")
        class TestClass:
            def test_inside(self, rehearse):
                assert len(rehearse()) == 5
        """,
    )
    project.run().assert_outcomes(passed=2)


def test_the_project_says_what_neither_test_nor_mark_does(project: Project) -> None:
    project.settings('agent = "agent.py"\ntrials = 2')
    project.cases(GOOD, name="refund.yaml")
    project.write(
        "test_it.py", "def test_it(rehearse): assert len(rehearse(cases='refund.yaml')) == 2"
    )
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "cases, minimum, told",
    [
        ([GOOD, BAD], "0.5", None),
        ([GOOD, BAD], "0.6", "the pass rate of 50.0 % is below the minimum of 60.0 %"),
        ([GOOD, BROKEN], "0.5", "1 case ended in an error"),
    ],
)
def test_a_minimum_fails_the_test_by_itself(
    project: Project, cases: list[str], minimum: str, told: str | None
) -> None:
    project.cases(*cases, name="refund.yaml")
    project.write(
        "test_it.py",
        f"""
        import pytest
        @pytest.mark.greenroom(agent="agent.py", cases="refund.yaml", min_pass_rate={minimum})
        def test_it(rehearse):
            rehearse()
        """,
    )
    result = project.run()
    result.assert_outcomes(**({"failed": 1} if told else {"passed": 1}))
    assert told is None or told in said(result)


@pytest.mark.parametrize("takes", ["rehearse", ""])
def test_a_minimum_of_a_test_that_rehearses_nothing_is_not_reached(
    project: Project, takes: str
) -> None:
    project.write(
        "test_it.py",
        f"""
        import pytest
        @pytest.mark.greenroom(min_pass_rate=0.5)
        def test_it({takes}):
            pass
        """,
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    assert "nothing was rehearsed" in said(result)


def test_a_mark_of_a_module_is_for_those_of_its_tests_that_rehearse(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest
        pytestmark = pytest.mark.greenroom(min_pass_rate=0.5)
        def test_it():
            pass
        """,
    )
    project.run().assert_outcomes(passed=1)


def test_an_evaluation_that_nobody_awaits_is_an_error(project: Project) -> None:
    project.cases(BAD, name="refund.yaml")
    project.write(
        "test_it.py",
        "def test_it(evaluate): evaluate('agent.py', 'refund.yaml').close()",
    )
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    assert "called, but not awaited" in said(result)


@pytest.mark.parametrize("mark", ["'agent.py'", "agnet='agent.py'"])
def test_a_mark_that_cannot_be_meant_is_an_error(project: Project, mark: str) -> None:
    project.write(
        "test_it.py",
        f"import pytest\n@pytest.mark.greenroom({mark})\ndef test_it(rehearse): pass\n",
    )
    result = project.run()
    result.assert_outcomes(errors=1)
    assert "@pytest.mark.greenroom(...) was given" in said(result)


def test_nothing_to_rehearse_is_an_error(project: Project) -> None:
    project.write("test_it.py", "def test_it(rehearse): rehearse('agent.py')")
    assert "there is nothing to rehearse; call rehearse(agent, cases)" in said(project.run())


def test_a_fixture_of_ones_own_wins(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest
        @pytest.fixture
        def evaluate(): return 5
        def test_it(evaluate): assert evaluate == 5
        """,
    )
    project.run().assert_outcomes(passed=1)


# Async tests

ASYNC = """
import pytest
{mark}
async def test_async(evaluate):
    report = await evaluate("agent.py", "refund.yaml")
    assert report.passed, report
{mark}
async def test_sync_beside_a_running_loop(rehearse):
    assert rehearse("agent.py", "refund.yaml").passed
"""


@pytest.mark.parametrize(
    "mark, beside, words",
    [
        ("@pytest.mark.asyncio", [ASYNCIO], []),
        ("", [ASYNCIO], ["-o", "asyncio_mode=auto"]),
        ("@pytest.mark.anyio", [ANYIO], []),
        ("@pytest.mark.anyio", [ANYIO, ASYNCIO], []),
    ],
    ids=["asyncio strict", "asyncio auto", "anyio alone", "anyio next to asyncio"],
)
def test_async_tests_await_the_evaluation(
    project: Project, mark: str, beside: list[str], words: list[str]
) -> None:
    if ASYNCIO not in beside:
        project.write("pyproject.toml", "")
    project.cases(GOOD, name="refund.yaml")
    project.write(
        "conftest.py", "import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'"
    )
    project.write("test_it.py", ASYNC.format(mark=mark))
    project.run(*words, beside=beside).assert_outcomes(passed=2)


def test_neither_plugin_is_needed(project: Project) -> None:
    project.write("pyproject.toml", "")
    project.cases(GOOD)
    project.write(
        "test_it.py",
        """
        import asyncio
        def test_it(evaluate):
            assert asyncio.run(evaluate("agent.py", "refund.eval.yaml")).passed
        """,
    )
    project.run(beside=()).assert_outcomes(passed=2)


@pytest.mark.parametrize("given", ["90", "'half'", "float('nan')"])
def test_a_minimum_that_cannot_be_is_refused_before_anything_runs(
    project: Project, given: str
) -> None:
    project.cases(GOOD, name="refund.yaml")
    project.write(
        "test_it.py",
        f"""
        def test_it(rehearse):
            begun = []
            try:
                rehearse("agent.py", "refund.yaml", min_pass_rate={given}, on_case_start=begun.append)
            finally:
                assert not begun
        """,
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    assert "should be a share from 0 to 1" in said(result)
