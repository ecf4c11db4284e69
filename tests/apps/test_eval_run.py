"""`greenroom eval run`: what it takes, what it shows, and how it ends."""

from pathlib import Path

import pytest

PASSING = """
paid = Case("paid", says="Money back!", mocks={"refund": "ok"}, metrics=[contains("money")])
"""
FAILING = """
unpaid = Case("unpaid", says="Money back!", mocks={"refund": "ok"}, metrics=[contains("never")])
"""
BROKEN = """
unmocked = Case("unmocked", says="Money back!", metrics=[contains("money")])
"""


def test_cases_of_the_agents_own_file_are_played_and_passing_exits_0(author, greenroom):
    author(PASSING)
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 0, result.output
    assert "paid  passed  1.00 ✓" in result.stdout
    assert "1 case: 1 passed; 100.0 % passing" in result.stdout
    assert result.stderr == ""


def test_agent_and_cases_may_be_named_inside_their_files(author, greenroom):
    author("\nother = clerk('Nothing to pay.')\n")
    author(FAILING + 'smoke = [Case("smoke", says="Hi", metrics=[contains("Nothing")])]', "more.py")
    result = greenroom("eval", "run", "shop.py:other", "more.py:smoke")
    assert result.exit_code == 0, result.output
    assert "1 case: 1 passed" in result.stdout


def test_cases_may_come_from_a_data_file(author, greenroom):
    author("")
    author(
        """
        version: 1
        cases:
        - {id: hi, says: Hi, mocks: {refund: {value: ok}}, expect: {contains: money}}
        """,
        "cases.yaml",
        bare=True,
    )
    result = greenroom("eval", "run", "shop.py", "cases.yaml")
    assert result.exit_code == 0, result.output
    assert "1 case: 1 passed" in result.stdout


def test_a_missed_gate_exits_1_and_says_both_percentages(author, greenroom):
    author(PASSING + FAILING)
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 1
    assert "pass rate of 50.0 % is below the minimum of 100.0 %" in result.stderr


def test_a_lower_minimum_opens_the_gate(author, greenroom):
    author(PASSING + FAILING)
    assert greenroom("eval", "run", "shop.py", "--min-pass-rate", "0.5").exit_code == 0


def test_a_case_in_error_exits_2_whatever_the_minimum(author, greenroom):
    author(PASSING + BROKEN)
    result = greenroom("eval", "run", "shop.py", "--min-pass-rate", "0")
    assert result.exit_code == 2
    assert "1 case ended in an error" in result.stderr


def test_some_errors_may_be_allowed_but_never_count_as_passed(author, greenroom):
    author(PASSING + BROKEN, "good.py")
    author(FAILING + BROKEN, "poor.py")
    author(BROKEN, "none.py")
    for file, code in [("good.py", 0), ("poor.py", 1), ("none.py", 1)]:
        assert greenroom("eval", "run", file, "--max-errors", "1").exit_code == code


def test_more_errors_than_allowed_exit_2_and_say_so(author, greenroom):
    author(PASSING + BROKEN + BROKEN.replace("unmocked", "unmocked_too"))
    result = greenroom("eval", "run", "shop.py", "--max-errors", "1")
    assert result.exit_code == 2
    assert "2 cases ended in an error, 1 allowed" in result.stderr


def test_trials_that_broke_are_not_called_cases(author, greenroom):
    author(BROKEN)
    result = greenroom("eval", "run", "shop.py", "--trials", "3")
    assert result.exit_code == 2
    assert "3 trials ended in an error" in result.stderr


@pytest.mark.parametrize("command", [["eval", "run", "shop.py"], ["eval", "watch", "shop.py"]])
def test_one_after_another_and_side_by_side_contradict_each_other(author, greenroom, command):
    author(PASSING)
    result = greenroom(*command, "--sequential", "--max-concurrency", "3")
    assert result.exit_code == 3
    assert "--sequential and --max-concurrency 3 contradict each other" in result.stderr


def test_one_after_another_may_be_said_twice(author, greenroom):
    author(PASSING)
    words = ["--sequential", "--max-concurrency", "1"]
    assert greenroom("eval", "run", "shop.py", *words).exit_code == 0


@pytest.mark.parametrize("given", ["three", "0", "-1", "1.5", "²", ""])
def test_what_is_no_number_of_trials_is_named_with_what_would_be(author, greenroom, given):
    author(PASSING)
    result = greenroom("eval", "run", "shop.py", f"--trials={given}")
    assert result.exit_code == 3
    wanted = f"'--num_runs': {given!r} should be a whole number of 1 or more, or 'auto'"
    assert wanted in " ".join(result.stderr.split())


def test_confidence_in_a_perfect_pass_rate_is_refused_before_anything_is_played(author, greenroom):
    author(PASSING)
    result = greenroom("eval", "run", "shop.py", "--confident")
    assert result.exit_code == 3
    assert "--confident needs a --min-pass-rate below 1" in result.stderr
    assert result.stdout == ""


def test_a_case_that_broke_is_explained_with_its_phase_and_what_to_type(author, greenroom):
    author(BROKEN)
    shown = greenroom("eval", "run", "shop.py").stdout
    assert "error in phase system (ToolRefused): tool 'refund' was called" in shown
    assert "mocks={" in shown
    assert "refused      refund(order=7) was not run  (gate)" in shown


def test_a_run_cut_at_its_limit_is_terminated_and_misses_the_gate(author, greenroom):
    author("""
    agent = loop(clerk("Which order?", "Which order?"), awaits_input=True)
    lost = Case("lost", says="Hi", user=Lines("What?", "What?"), stop=Stop(max_turns=2),
                metrics=[contains("Which")])
    """)
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 1
    assert "terminated" in result.stdout
    assert "stopped at its limit (max_turns) after 2 turns" in result.stdout


def test_a_set_without_cases_is_bad_input(author, greenroom):
    author("empty = EvalSet('empty', [])")
    result = greenroom("eval", "run", "shop.py", "shop.py:empty", "--min-pass-rate", "0")
    assert result.exit_code == 3
    assert "shop.py:empty has no cases, so nothing can be evaluated" in result.stderr
    Path("empty.yaml").write_text("version: 1\ncases: []\n")
    assert greenroom("eval", "run", "shop.py", "empty.yaml").exit_code == 3


def test_an_allowed_tool_really_runs(author, greenroom):
    author("""
    @tool
    def to_celsius(fahrenheit: float) -> float:
        return round((fahrenheit - 32) / 1.8)

    agent = Agent("w", model=Scripted(call("to_celsius", fahrenheit=70), lambda r: f"It is {r.last}."),
                  tools=[to_celsius])
    mild = Case("mild", says="How warm is 70 F?", metrics=[contains("21")])
    """)
    assert greenroom("eval", "run", "shop.py").exit_code == 2
    assert greenroom("eval", "run", "shop.py", "--allow-tool", "to_celsius").exit_code == 0


def test_fail_fast_skips_the_rest_and_says_why(author, greenroom):
    author(FAILING + PASSING)
    result = greenroom("eval", "run", "shop.py", "--fail-fast", "--sequential")
    assert result.exit_code == 1
    assert "1 skipped: not run: case 'unpaid' did not pass" in result.stdout


@pytest.mark.parametrize(
    "words, most", [(["--sequential"], 1), (["--max-concurrency", "3"], 3), ([], 4)]
)
def test_no_more_cases_than_allowed_are_played_at_once(author, greenroom, words, most):
    author("""
    import asyncio
    from pathlib import Path
    now = []

    async def slow(order):
        now.append(order)
        with Path("seen").open("a") as seen:
            seen.write(f"{len(now)} ")
        await asyncio.sleep(0.02)
        now.pop()
        return "ok"

    cases = [Case(f"c{n}", says="Hi", mocks={"refund": slow}, metrics=[contains("money")])
             for n in range(8)]
    """)
    assert greenroom("eval", "run", "shop.py", *words).exit_code == 0
    assert max(map(int, Path("seen").read_text().split())) == most


def test_quiet_shows_the_counts_and_nothing_else(author, greenroom):
    author(PASSING + FAILING)
    result = greenroom("eval", "run", "shop.py", "-q", "--min-pass-rate", "0.5")
    assert result.stdout.startswith("2 cases: 1 passed, 1 failed; 50 % ± 41 passing")
    assert result.stdout.count("\n") == 1


def test_verbose_tells_the_passed_ones_too(author, greenroom):
    author(PASSING)
    assert "Your money is on its way." not in greenroom("eval", "run", "shop.py").stdout
    assert "Your money is on its way." in greenroom("eval", "run", "shop.py", "-v").stdout


def test_a_case_with_a_name_says_how_to_play_it_alone(author, greenroom):
    author(PASSING + FAILING)
    shown = greenroom("eval", "run", "shop.py").stdout
    [line] = [line for line in shown.splitlines() if "again: " in line]
    result = greenroom(*line.split("again: greenroom ")[1].split())
    assert "1 case: 0 passed, 1 failed" in result.stdout


def test_a_case_of_a_list_in_the_agents_file_is_played_alone_by_its_id(author, greenroom):
    author(PASSING + FAILING.replace("unpaid = ", "CASES = [").rstrip() + "]\n")
    shown = greenroom("eval", "run", "shop.py").stdout
    [line] = [line.strip() for line in shown.splitlines() if "again: " in line]
    assert line.startswith("again: greenroom eval run shop.py --filter id:")
    result = greenroom(*line.split("again: greenroom ")[1].split())
    assert "1 case: 0 passed, 1 failed" in result.stdout


def test_a_plain_function_is_an_agent_and_details_say_who_plays_it(author, greenroom):
    author("""
    def parrot(message):
        return f"You said {message}."

    hi = Case("hi", says="Hi", metrics=[contains("You said Hi")])
    """)
    result = greenroom("eval", "run", "shop.py:parrot", "shop.py", "-v")
    assert result.exit_code == 0, result.output
    assert "shop.py:parrot: using the function backend" in result.stderr


def test_tools_without_a_mock_are_named_before_anything_is_played(author, greenroom):
    author(PASSING + BROKEN)
    result = greenroom("eval", "run", "shop.py")
    assert "refused if called: refund (--suggest-mocks prints mocks for them)" in result.stderr
    author(PASSING, "mocked.py")
    assert "refused if called" not in greenroom("eval", "run", "mocked.py").stderr


def test_suggested_mocks_can_be_given_back(author, greenroom, tmp_path):
    author(BROKEN)
    suggested = greenroom("eval", "run", "shop.py", "--suggest-mocks")
    assert suggested.exit_code == 0
    assert "# refund(order: integer) -> object" in suggested.stdout
    (tmp_path / "mocks.yaml").write_text(suggested.stdout)
    assert greenroom("eval", "run", "shop.py", "--mocks", "mocks.yaml").exit_code == 0


def test_nothing_is_suggested_where_every_tool_has_a_mock(author, greenroom):
    author(PASSING)
    result = greenroom("eval", "run", "shop.py", "--suggest-mocks")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "every tool has a mock" in result.stderr
