"""Which cases `greenroom eval run` plays: files, folders, globs, filters, and what lies beside."""

import json
from pathlib import Path

import pytest

from greenroom import rehearse

ONE = {"says": "Hi", "mocks": {"refund": {"value": "ok"}}, "expect": {"contains": "money"}}
ADK = {
    "eval_set_id": "theirs",
    "eval_cases": [
        {
            "eval_id": "adk-case",
            "conversation": [
                {
                    "user_content": {"parts": [{"text": "Hi"}], "role": "user"},
                    "final_response": {
                        "parts": [{"text": "Your money is on its way."}],
                        "role": "model",
                    },
                }
            ],
        }
    ],
}


def evalset(name: str, *ids: str, **fields) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    cases = [{"id": case_id, **ONE, **fields} for case_id in ids]
    path.write_text(json.dumps({"version": 1, "cases": cases}))
    return path


@pytest.fixture
def shop(author):
    return author("")


def test_the_format_of_a_file_is_said(shop, greenroom):
    evalset("cases.json", "one", "two")
    result = greenroom("eval", "run", "shop.py", "cases.json")
    assert result.exit_code == 0, result.output
    assert "cases.json: 2 cases, format: greenroom" in result.stderr
    assert "format: " not in result.stdout


def test_a_folder_is_all_eval_sets_in_it_and_says_what_it_passed_by(shop, greenroom):
    evalset("evals/one.json", "one")
    evalset("evals/deep/two.yaml", "two")
    evalset("evals/.hidden/three.json", "three")
    Path("evals/settings.json").write_text('{"colour": "green"}')
    result = greenroom("eval", "run", "shop.py", "evals")
    assert "2 cases: 2 passed" in result.stdout
    assert "evals/settings.json: not an eval set, skipped" in result.stderr
    assert "hidden" not in result.output


def test_a_broken_file_in_a_folder_is_never_passed_by(shop, greenroom):
    evalset("evals/one.json", "one")
    Path("evals/two.json").write_text('{"version": 1, "cases": [')
    result = greenroom("eval", "run", "shop.py", "evals")
    assert result.exit_code == 3
    assert "Invalid JSON in evals/two.json" in result.stderr


def test_a_file_called_like_an_eval_set_has_to_be_one(shop, greenroom):
    evalset("evals/one.json", "one")
    Path("evals/two.evalset.json").write_text('{"colour": "green"}')
    result = greenroom("eval", "run", "shop.py", "evals")
    assert result.exit_code == 3
    assert "evals/two.evalset.json is not an eval set" in result.stderr


def test_a_folder_without_eval_sets_is_told_so(shop, greenroom):
    Path("empty").mkdir()
    result = greenroom("eval", "run", "shop.py", "empty")
    assert result.exit_code == 3
    assert "no eval sets found in empty" in result.stderr


def test_a_glob_is_every_file_that_matches(shop, greenroom):
    evalset("evals/one.json", "one")
    evalset("evals/two.json", "two")
    assert "2 cases" in greenroom("eval", "run", "shop.py", "evals/*.json").stdout
    Path("evals/folder.yaml").mkdir()
    nothing = greenroom("eval", "run", "shop.py", "evals/*.yaml")
    assert nothing.exit_code == 3
    assert "no file matches 'evals/*.yaml'" in nothing.stderr


def test_equal_ids_of_two_files_are_told_apart_and_play_alone_by_their_own(shop, greenroom):
    evalset("evals/one.json", "same")
    evalset("evals/two.json", "same", expect={"contains": "never"})
    shown = greenroom("eval", "run", "shop.py", "evals").stdout
    assert "one:same" in shown
    assert "two:same" in shown
    [line] = [line for line in shown.splitlines() if "again: " in line]
    assert line.endswith("greenroom eval run shop.py evals/two.json --filter id:same")
    again = greenroom(*line.split("again: greenroom ")[1].split())
    assert "1 case: 0 passed, 1 failed" in again.stdout


def test_cases_of_a_file_may_be_named_by_id(shop, greenroom):
    evalset("cases.json", "one", "two", "three")
    result = greenroom("eval", "run", "shop.py", "cases.json:three,one")
    assert "2 cases: 2 passed" in result.stdout
    unknown = greenroom("eval", "run", "shop.py", "cases.json:four")
    assert unknown.exit_code == 3
    assert "no case 'four'" in unknown.stderr


def test_filters_take_ids_names_and_tags_and_say_how_many_are_left(shop, greenroom):
    evalset("cases.json", "one", "two", "three", tags=["smoke"])
    for words, left in [
        (["--filter", "t*"], 2),
        (["--filter", "tag:smoke", "--filter", "!one"], 2),
        (["--filter", "id:one"], 1),
    ]:
        result = greenroom("eval", "run", "shop.py", "cases.json", *words)
        assert f"filtered to {left}/3" in result.stderr
        assert f"{left} case" in result.stdout


def test_a_filter_that_leaves_nothing_is_bad_input(shop, greenroom):
    evalset("cases.json", "one")
    result = greenroom("eval", "run", "shop.py", "cases.json", "--filter", "two")
    assert result.exit_code == 3
    assert "no case that matches 'two'" in result.stderr


def test_a_limit_takes_the_first_and_a_sample_always_the_same(shop, greenroom):
    evalset("cases.json", *(f"case-{n}" for n in range(20)))
    words = ["eval", "run", "shop.py", "cases.json", "--json"]
    limited = json.loads(greenroom(*words, "--limit", "2").stdout)
    assert [result["case_id"] for result in limited["results"]] == ["case-0", "case-1"]
    one, two, other = (
        [
            r["case_id"]
            for r in json.loads(greenroom(*words, "--sample", 5, *seed).stdout)["results"]
        ]
        for seed in ([], ["--seed", "0"], ["--seed", "1"])
    )
    assert len(one) == 5
    assert one == two != other


def test_without_cases_the_eval_sets_beside_the_agent_are_played_too(author, greenroom):
    author('hi = Case("hi", "Hi", mocks={"refund": "ok"}, metrics=[contains("money")])', "agent.py")
    evalset("evals/more.evalset.json", "beside")
    evalset("tests/even.test.json", "also")
    evalset("other.json", "unusual-name")
    result = greenroom("eval", "run", "agent.py")
    assert result.exit_code == 0, result.output
    assert [name in result.stdout for name in ("hi ", "beside", "also", "unusual")] == [
        True,
        True,
        True,
        False,
    ]


def test_an_eval_set_of_another_agent_beside_it_is_not_played(author, greenroom):
    author('hi = Case("hi", "Hi", mocks={"refund": "ok"}, metrics=[contains("money")])')
    author("", "weather.py")
    evalset("weather.test.json", "rain")
    assert "rain" not in greenroom("eval", "run", "shop.py").stdout
    assert "rain" in greenroom("eval", "run", "weather.py").stdout


def test_a_file_of_adk_is_played_by_the_config_beside_it(shop, greenroom):
    Path("theirs.evalset.json").write_text(json.dumps(ADK))
    Path("test_config.json").write_text('{"criteria": {"response_match_score": 0.9}}')
    words = ["--num_runs", "2", "--print_detailed_results", "--mocks", "mocks.yaml"]
    Path("mocks.yaml").write_text("refund: {value: ok}")
    result = greenroom("eval", "run", "shop.py", "theirs.evalset.json", *words)
    assert result.exit_code == 0, result.output
    assert "format: adk, judged by test_config.json too" in result.stderr
    assert "response_match_score" in result.stdout
    assert "2 trials of 1 case: 2 passed" in result.stdout


def test_a_named_config_takes_the_place_of_the_one_beside(shop, greenroom):
    Path("theirs.evalset.json").write_text(json.dumps(ADK))
    Path("test_config.json").write_text('{"criteria": {"response_match_score": 0.9}}')
    Path("strict.json").write_text('{"criteria": {"exact": {"text": "No."}}}')
    Path("mocks.yaml").write_text("mocks: {refund: {value: ok}}")
    words = ["--test-file", "theirs.evalset.json", "--mocks", "mocks.yaml"]
    result = greenroom("eval", "run", "shop.py", *words, "--config_file_path", "strict.json")
    assert result.exit_code == 1, result.output
    assert "response_match_score" not in result.stdout


def test_cases_named_twice_are_bad_usage(shop, greenroom):
    evalset("cases.json", "one")
    result = greenroom("eval", "run", "shop.py", "cases.json", "--test-file", "cases.json")
    assert result.exit_code == 3
    assert "--test-file" in result.stderr


STRICT = """
from greenroom import Expect
def pays():
    return Case("pays", says="Hi", mocks={"refund": "ok"}, expect=Expect(contains="money"))
strict = EvalSet("strict", [pays()], metrics=[contains("never said")], trials=2)
"""


@pytest.mark.parametrize("words", [["shop.py"], ["shop.py:agent"], ["shop.py", "shop.py"]])
def test_a_set_of_a_module_runs_with_its_metrics_and_trials(author, greenroom, words):
    author(STRICT)
    result = greenroom("eval", "run", *words)
    assert result.exit_code == 1
    assert "2 trials of 1 case: 0 passed, 2 failed" in result.stdout
    [line] = [line for line in result.stdout.splitlines() if "again: " in line]
    again = greenroom(*line.split("again: greenroom ")[1].split())
    assert "2 trials of 1 case: 0 passed, 2 failed" in again.stdout
    assert "2 trials of 1 case" in greenroom("eval", "run", *words, "--dry-run").stdout
    mutants = greenroom("eval", "mutants", *words)
    assert "the agent passes no case" in mutants.stdout


def test_rehearse_runs_the_set_of_a_module_with_its_metrics_and_trials(author):
    author(STRICT)
    report = rehearse("shop.py", "shop.py", store=False)
    assert [result.passed for result in report.results] == [False, False]
    assert report.name == "strict"


@pytest.mark.parametrize("words", [["shop.py"], ["shop.py:agent"], ["shop.py", "shop.py"]])
def test_equal_ids_of_two_sets_in_a_module_play_alone_by_their_own(author, greenroom, words):
    author(f"{STRICT}more = [EvalSet('mild', [pays()]), EvalSet('other', [pays()], metrics=[])]")
    shown = greenroom("eval", "run", *words).stdout
    assert all(name in shown for name in ("strict:pays", "mild:pays", "other:pays"))
    [line] = [line for line in shown.splitlines() if "again: " in line]
    again = greenroom(*line.split("again: greenroom ")[1].split())
    assert "2 trials of 1 case: 0 passed, 2 failed" in again.stdout


def test_a_case_that_is_named_too_plays_alone_with_the_metrics_of_its_set(author, greenroom):
    author(f"{STRICT}alone = strict['pays']\nmild = Case('mild', says='Hi')")
    shown = greenroom("eval", "run", "shop.py").stdout
    assert "again: greenroom eval run shop.py --filter id:pays" in shown
    assert "again: greenroom eval run shop.py shop.py:mild" in shown
