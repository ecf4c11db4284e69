"""What `greenroom eval run` leaves behind, compares, and plays with other parts."""

import json
from pathlib import Path

import pytest

from greenroom import EvalSet, Report, Score
from greenroom.results import CaseResult, Status
from greenroom.results.endings import Problem
from greenroom.store import Store

CASES = """
good = Case("good", "Hi", mocks={"refund": "ok"}, metrics=[contains("money")])
bad = Case("bad", "Hi", mocks={"refund": "ok"}, metrics=[contains("never")])
"""


@pytest.fixture
def shop(author):
    return author(CASES)


def test_json_is_the_report_and_nothing_else(shop, greenroom):
    result = greenroom("eval", "run", "shop.py", "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert [r["status"] for r in data["results"]] == ["passed", "failed"]
    assert "below the minimum" in result.stderr


@pytest.mark.parametrize(
    "words, files",
    [
        (["-o", "out.json"], ["out.json"]),
        (["-o", "deep/er/out.xml"], ["deep/er/out.xml"]),
        (["-f", "html", "-o", "page.html"], ["page.html"]),
        (["-f", "json=a.json", "-f", "junit=b.xml"], ["a.json", "b.xml"]),
        (["-f", "json=a.json", "-f", "json=b.json"], ["a.json", "b.json"]),
        (["-f", "json", "-f", "console"], ["eval_report.json", "eval_report.txt"]),
        (["-f", "console", "-o", "told/"], ["told/eval_report.txt"]),
        (["-f", "console", "-o", "told.txt"], ["told.txt"]),
        (
            ["-f", "console", "-f", "junit", "-o", "all/"],
            ["all/eval_report.txt", "all/junit.xml"],
        ),
        (
            ["-f", "json", "-f", "html", "-o", "all/"],
            ["all/eval_report.json", "all/eval_report.html"],
        ),
    ],
)
def test_reports_go_where_they_are_told_to(shop, greenroom, words, files):
    result = greenroom("eval", "run", "shop.py", *words)
    assert result.exit_code == 1, result.output
    assert [file for file in files if not Path(file).is_file()] == []
    assert all(f"wrote {file}" in result.stderr for file in files)
    assert result.stderr.count("wrote ") == len(files)


@pytest.mark.parametrize(
    "words, said",
    [
        (["-f", "jason"], "Did you mean 'json'"),
        (["-f", "json="], "names no file"),
        (["-o", "report.pdf"], "--output report.pdf"),
        (["-f", "json=same", "-f", "html=same"], "both be written"),
    ],
)
def test_a_report_that_cannot_be_meant_is_refused_before_anything_is_played(
    author, greenroom, words, said
):
    author(CASES + "raise RuntimeError('loaded')")
    result = greenroom("eval", "run", "shop.py", *words)
    assert result.exit_code == 3
    assert said in result.stderr
    assert "loaded" not in result.stderr


def test_failures_are_saved_as_an_eval_set_to_go_on_with(author, greenroom):
    author("")
    author(
        """
        version: 1
        cases:
        - {id: good, says: Hi, mocks: {refund: {value: ok}}, expect: {contains: money}}
        - {id: bad, says: Hi, mocks: {refund: {value: ok}}, expect: {contains: never}}
        """,
        "cases.yaml",
        bare=True,
    )
    assert (
        greenroom("eval", "run", "shop.py", "cases.yaml", "--save-failures", "f.yaml").exit_code
        == 1
    )
    assert EvalSet.load("f.yaml").ids == ["bad"]
    assert "1 case: 0 passed, 1 failed" in greenroom("eval", "run", "shop.py", "f.yaml").stdout


@pytest.mark.parametrize(
    "words",
    [["-f", f"json={'x' * 300}.json"], ["--save-failures", f"{'x' * 300}.yaml"]],
)
def test_a_file_that_cannot_be_written_takes_nothing_with_it(author, greenroom, words):
    author("agent = clerk('Your money is here.')")
    Path("q.csv").write_text("id,question,contains\na,Hi,money\nb,Ho,never\n")
    result = greenroom("eval", "run", "shop.py", "q.csv", "--json", *words, "-f", "junit=b.xml")
    assert result.exit_code == 3
    assert "<testsuites" in Path("b.xml").read_text()
    assert [r["status"] for r in json.loads(result.stdout)["results"]] == ["passed", "failed"]
    assert words[-1].split("=")[-1] in result.stderr
    assert "the pass rate of 50.0 % is below the minimum" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["-f", "html=shop.py/x.html"],
        ["-f", "json=shop.py/deep/er/x.json"],
        ["-f", "json", "-f", "junit", "-o", "shop.py/reports"],
        ["--save-failures", "shop.py/no.yaml"],
    ],
)
def test_a_place_below_a_file_is_refused_before_anything_is_played(shop, greenroom, words):
    result = greenroom("eval", "run", "shop.py", *words)
    assert result.exit_code == 3
    assert "shop.py' is a file, not a folder" in result.stderr
    assert result.stdout == ""
    assert not Store(".greenroom").runs()


@pytest.mark.parametrize("where", [["-f", "json=out"], ["--save-failures", "out"]])
def test_a_folder_where_a_report_should_go_is_refused_before_anything_is_played(
    shop, greenroom, where
):
    Path("out").mkdir(exist_ok=True)
    result = greenroom("eval", "run", "shop.py", *where)
    assert result.exit_code == 3
    assert "'out' cannot be written: it is a folder. Name a file in it." in result.stderr
    assert result.stdout == ""


def test_an_agents_file_that_cannot_be_written_leaves_the_other_agents(author, greenroom):
    author(CASES + "better = clerk(call('refund', order=7), 'Never, never: money.')")
    Path("r-1.json").mkdir()
    words = ["eval", "run", "shop.py", "--agent", "shop.py:better", "-o", "r.json"]
    result = greenroom(*words)
    assert result.exit_code == 3
    assert Report.load("r-2.json").passed
    assert "r-1.json" in result.stderr
    assert ["bad", "failed", "passed"] in [line.split() for line in result.stdout.splitlines()]


def test_cases_that_could_not_be_saved_as_failures_are_refused_before_they_run(shop, greenroom):
    result = greenroom("eval", "run", "shop.py", "--save-failures", "f.yaml")
    assert result.exit_code == 3
    assert "--save-failures: f.yaml would lose what is code: " in result.stderr
    assert "lossy" not in result.stderr
    assert result.stdout == ""
    assert not Path("f.yaml").exists()


def test_failures_replace_only_failures_that_were_saved_before(author, greenroom):
    author("agent = clerk('Your money is here.')")
    bad = "{id: bad, says: Hi, expect: {contains: never}}"
    text = f"version: 1\ncases:\n- {bad}\n"
    for name in ("mine.yaml", "other.yaml"):
        Path(name).write_text(text)
    Path("empty.yaml").touch()
    words = ["eval", "run", "shop.py", "mine.yaml", "--save-failures"]
    for name, why in (
        ("./mine.yaml", "the cases of this run are read from mine.yaml, and would be lost"),
        ("other.yaml", "other.yaml already exists, and does not hold failures that were saved"),
    ):
        refused = greenroom(*words, name)
        assert refused.exit_code == 3
        assert why in refused.stderr
        assert not Store(".greenroom").runs()
        assert Path(name).read_text() == text
    for name in ("empty.yaml", "new.yaml", "new.yaml"):
        assert greenroom(*words, name).exit_code == 1
        assert EvalSet.load(name).ids == ["bad"]
    again = greenroom("eval", "run", "shop.py", "new.yaml", "--save-failures", "new.yaml")
    assert again.exit_code == 3


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_failures_of_a_table_are_saved_as_a_table(author, greenroom, ending):
    author("agent = clerk('Your money is here.')")
    Path("q.csv").write_text("id,question,contains\na,Hi,money\nb,Ho,never\n")
    target = f"f.{ending}"
    result = greenroom("eval", "run", "shop.py", "q.csv", "--save-failures", target)
    assert result.exit_code == 1, result.output
    assert EvalSet.load(target).ids == ["b"]
    Path("q.csv").write_text("id,question,contains\na,Hi,money\n")
    passed = greenroom("eval", "run", "shop.py", "q.csv", "--save-failures", f"none.{ending}")
    assert passed.exit_code == 0, passed.output
    assert "every case passed" in passed.stderr
    assert not Path(f"none.{ending}").exists()


def test_failures_of_every_agent_are_saved_and_say_whose_they_are(author, greenroom):
    author("good, bad = clerk('Your money is here.'), clerk('No.')")
    text = "{id: %s, says: Hi, expect: {contains: %s}}"
    asked = [text % pair for pair in (("a", "money"), ("b", "never"), ("c", "here"))]
    Path("q.yaml").write_text("version: 1\ncases:\n" + "".join(f"  - {one}\n" for one in asked))
    words = ["eval", "run", "shop.py:good", "q.yaml", "--agent", "shop.py:bad"]
    assert greenroom(*words, "--save-failures", "f.yaml").exit_code == 1
    saved = EvalSet.load("f.yaml")
    assert saved.ids == ["a", "b", "c"]
    assert saved.metadata["failed_with"] == {"shop.py:good": ["b"], "shop.py:bad": ["a", "b", "c"]}
    again = greenroom("eval", "run", "shop.py:good", "f.yaml", "--json")
    assert [r["status"] for r in json.loads(again.stdout)["results"]] == [
        "passed",
        "failed",
        "passed",
    ]


def test_saved_failures_are_judged_as_they_were(author, greenroom):
    author("agent = clerk('Something else entirely.')")
    turn = {"user_content": {"parts": [{"text": "Hi"}]}}
    turn["final_response"] = {"parts": [{"text": "Your money is on its way."}]}
    case = {"eval_id": "one", "conversation": [turn]}
    Path("old.evalset.json").write_text(json.dumps({"eval_set_id": "old", "eval_cases": [case]}))
    words = ["eval", "run", "shop.py", "--json"]
    first = greenroom(*words, "old.evalset.json", "--save-failures", "f.yaml")
    assert first.exit_code == 1, first.output
    [before] = json.loads(first.stdout)["results"]
    [again] = json.loads(greenroom(*words, "f.yaml").stdout)["results"]
    assert again["scores"].keys() == before["scores"].keys()


def test_a_case_that_got_worse_than_the_baseline_closes_the_gate(author, greenroom):
    author(CASES)
    author("agent = clerk(call('refund', order=7), 'No.')", "worse.py")
    greenroom("eval", "run", "shop.py", "-q", "-o", "old.json")
    words = ["eval", "run", "worse.py", "shop.py", "--min-pass-rate", "0", "-o", "new.json"]
    assert greenroom(*words).exit_code == 0
    result = greenroom(*words, "--baseline", "old.json")
    assert result.exit_code == 1
    assert "Against old.json (2 cases, 1 trial there, 1 here):" in result.stdout
    assert "  regressed   good  " in result.stdout
    assert "greenroom: 1 case regressed: good" in result.stderr
    compared = greenroom("eval", "compare", "new.json", "--baseline", "old.json", "-o", "diff.json")
    assert compared.exit_code == 1
    assert "  regressed   good  " in compared.stdout
    assert json.loads(Path("diff.json").read_text())["cases"]


def test_a_case_that_asks_for_something_else_is_not_called_worse(author, greenroom):
    author(CASES)
    author(CASES.replace('contains("money")', 'contains("gold")'), "other.py")
    greenroom("eval", "run", "shop.py", "-q", "-o", "old.json")
    words = ["eval", "run", "shop.py", "other.py", "--min-pass-rate", "0"]
    result = greenroom(*words, "--baseline", "old.json")
    assert result.exit_code == 0, result.output
    assert "1 changed" in result.stdout


def measured(case: str, status: Status, trial: int = 1) -> CaseResult:
    passed = status == "passed"
    scores = {"polite": Score(passed)} if passed or status == "failed" else {}
    error = Problem("system", "boom") if status == "error" else None
    return CaseResult(case_id=case, status=status, trial=trial, scores=scores, error=error)


def report_file(name: str, cases: int, status: Status, trials: int = 1, prefix: str = "c") -> str:
    results = [
        measured(f"{prefix}{n}", status, trial)
        for n in range(cases)
        for trial in range(1, trials + 1)
    ]
    return str(Report(results, id=name).save(f"{name}.json"))


@pytest.mark.parametrize("trials", [1, 3])
def test_comparing_ends_with_a_code_for_each_end(shop, greenroom, trials):
    main = report_file("main", 50, "passed", trials)
    collapsed = report_file("collapsed", 50, "failed", trials)
    broken, other = report_file("broken", 50, "error"), report_file("other", 50, "passed", 1, "x")
    nothing = report_file("nothing", 50, "skipped")
    for report, code, told in (
        (collapsed, 1, "the pass rate fell from 100 % to 0 %"),
        (broken, 2, "50 cases ended in an error"),
        (other, 3, "no case is shared with the baseline"),
        (nothing, 3, "no case was evaluated on both sides: 50 not evaluated"),
        (main, 0, ""),
    ):
        result = greenroom("eval", "compare", report, "--baseline", main)
        assert result.exit_code == code, result.output
        assert told in result.stderr
    assert (
        greenroom("eval", "compare", broken, "--baseline", main, "--max-errors", "50").exit_code
        == 2
    )
    both = greenroom("eval", "compare", collapsed, other, "--baseline", main)
    assert both.exit_code == 3
    assert "collapsed.json: the pass rate fell" in both.stderr


def test_one_flip_of_fifty_is_no_regression_unless_doubt_is_to_fail(shop, greenroom):
    main = report_file("main", 50, "passed")
    flipped = [measured(f"c{n}", "failed" if n == 31 else "passed") for n in range(49)]
    Report(flipped, id="now").save("now.json")
    words = ["eval", "compare", "now.json", "--baseline", main]
    result = greenroom(*words)
    assert result.exit_code == 0, result.output
    assert "flipped     c31  passed before, failed now (1 trial each)" in result.stdout
    assert "1 flip is not proof. eval run --baseline runs flipped cases again." in result.stdout
    assert "49 of 50 cases compare: 1 removed" in result.stdout
    assert greenroom(*words, "--fail-on", "unclear").exit_code == 1
    assert greenroom(*words, "--fail-on", "removed").exit_code == 1
    markdown = greenroom(*words, "-f", "markdown", "-o", "diff.md").stdout
    assert markdown.startswith("### ✅ Gate passed. Not decided: 1 flip\n")
    assert Path("diff.md").read_text().startswith("### ")


def test_a_set_that_shares_no_case_with_the_baseline_is_not_played(author, greenroom):
    author(CASES)
    other = report_file("other", 3, "passed", 1, "x")
    result = greenroom("eval", "run", "shop.py", "--baseline", other, "-f", "json=now.json")
    assert result.exit_code == 3
    assert "so nothing could be compared" in result.stderr
    assert not Path("now.json").exists()


def test_a_tag_of_too_few_cases_is_refused_before_anything_is_played(author, greenroom):
    author(CASES)
    greenroom("eval", "run", "shop.py", "-q", "-o", "old.json")
    words = ["eval", "run", "shop.py", "--baseline", "old.json", "--gate-tag", "safety"]
    result = greenroom(*words)
    assert result.exit_code == 3
    assert "--gate-tag safety: 0 cases with this tag" in result.stderr
    assert "failed" not in result.stdout


@pytest.mark.parametrize("words", [("-f", "json=-"), ("-f", "json", "-o", "-"), ("-o", "-")])
def test_a_dash_is_no_file(shop, greenroom, words):
    result = greenroom("eval", "run", "shop.py", *words)
    assert result.exit_code == 3
    assert "or print JSON alone: --json" in result.stderr.replace("`", "")
    assert not Path("-").exists()
    assert "failed" not in result.stdout


def test_a_wrong_price_is_found_before_the_first_case(shop, greenroom):
    Path("pyproject.toml").write_text("[tool.greenroom.prices]\nhouse = 3\n")
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 3
    assert "the price of 'house' is 3; write" in result.stderr
    assert "failed" not in result.stdout


TAGGED = """
from pathlib import Path

@metric
def paid(ledger, case) -> float:
    if Path("broken").exists() and case.id > "c3":
        raise RuntimeError("out of order")
    return 1.0

other = clerk(call("refund", order=8), "Your money is on its way.")
cases = [Case(f"c{n}", "Hi", mocks={"refund": "ok"}, metrics=[paid], tags=["safety"])
         for n in range(8)]
"""


def test_a_tag_that_the_baseline_hardly_has_is_refused_before_anything_is_played(author, greenroom):
    author(TAGGED)
    greenroom("eval", "run", "shop.py", "-q", "--limit", "5", "-o", "old.json")
    words = ["eval", "run", "shop.py", "--baseline", "old.json", "--gate-tag", "safety"]
    result = greenroom(*words, "-o", "now.json")
    assert result.exit_code == 3
    assert "8 cases with this tag, 5 of them in the baseline" in " ".join(result.stderr.split())
    assert "passed" not in result.stdout


def test_a_tag_whose_cases_prove_not_to_compare_loses_no_report(author, greenroom):
    author(TAGGED)
    greenroom("eval", "run", "shop.py", "-q", "-o", "old.json")
    Path("broken").touch()
    words = ["eval", "run", "shop.py", "--baseline", "old.json", "--gate-tag", "safety"]
    result = greenroom(*words, "--max-errors", "8", "-o", "now.json")
    assert result.exit_code == 3
    assert "safety: fewer than 6 cases with this tag can be compared" in result.stderr
    assert len(Report.load("now.json")) == 8
    assert json.loads(Path("now.json").read_text())["gate"]["exit_code"] == 3


@pytest.mark.parametrize("asked", [("--gate-tag", "safety"), ("--fail-on", "removed")])
def test_what_only_a_baseline_shows_is_asked_of_the_agent_that_has_one(author, greenroom, asked):
    author(TAGGED)
    greenroom("eval", "run", "shop.py:agent", "shop.py", "-q", "-o", "old.json")
    both = ["eval", "run", "shop.py:agent", "shop.py", "--agent", "shop.py:other"]
    result = greenroom(*both, "--baseline", "old.json", *asked, "-o", "now.json")
    assert result.exit_code == 0, result.output
    assert [len(Report.load(f"now-{n}.json")) for n in (1, 2)] == [8, 8]


def test_beside_a_baseline_no_minimum_is_asked_unless_it_is_given(author, greenroom):
    author(CASES)
    greenroom("eval", "run", "shop.py", "-q", "-o", "old.json")
    words = ["eval", "run", "shop.py", "--baseline", "old.json"]
    assert greenroom("eval", "run", "shop.py").exit_code == 1
    assert greenroom(*words).exit_code == 0
    assert greenroom(*words, "--baseline", "old.json").exit_code == 0
    assert greenroom(*words, "--agent", "shop.py:agent").exit_code == 0
    assert greenroom(*words, "--min-pass-rate", "0.9").exit_code == 1


def test_a_report_compared_with_itself_is_unchanged(shop, greenroom):
    greenroom("eval", "run", "shop.py", "-q", "-o", "old.json")
    result = greenroom("eval", "compare", "old.json", "old.json")
    assert result.exit_code == 0, result.output
    assert greenroom("eval", "compare", "old.json").exit_code == 3
    data = greenroom("eval", "compare", "old.json", "--baseline", "old.json", "--json").stdout
    assert json.loads(data)


def test_a_report_that_is_none_is_named(shop, greenroom):
    Path("torn.json").write_text("{")
    for words, said in [
        (["torn.json"], "Invalid JSON in torn.json"),
        (["no.json"], "there is no file"),
    ]:
        result = greenroom("eval", "compare", *words, "--baseline", "torn.json")
        assert result.exit_code == 3
        assert "torn.json" in result.stderr, said


def test_variants_are_played_on_the_same_cases_and_shown_side_by_side(author, greenroom):
    author(CASES + "better = clerk(call('refund', order=7), 'Never, never: money.')")
    words = ["eval", "run", "shop.py", "--agent", "shop.py:better", "-f", "json"]
    result = greenroom(*words)
    assert result.exit_code == 1
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["bad", "failed", "passed"] in rows
    assert ["good", "passed", "passed"] in rows
    assert "shop.py: the pass rate of 50.0 %" in result.stderr
    assert [Report.load(f"eval_report-{n}.json").passed for n in (1, 2)] == [False, True]
    together = json.loads(greenroom(*words[:-2], "--json").stdout)
    assert list(together) == ["shop.py", "shop.py:better"]


def test_an_error_of_any_variant_is_graver_than_a_missed_gate(author, greenroom):
    author(CASES + "broken = Agent('b', model=Scripted(RuntimeError('boom')), tools=[refund])")
    assert greenroom("eval", "run", "shop.py", "--agent", "shop.py:broken").exit_code == 2


def test_a_variant_that_cannot_run_the_cases_is_refused_before_any_other_runs(author, greenroom):
    author(CASES + "idle = Agent('idle', model=Scripted('Hi.'))")
    for variant in ("shop.py:idle", "shop.py:nobody"):
        refused = greenroom("eval", "run", "shop.py", "--agent", variant, "--store", "runs")
        assert (refused.exit_code, refused.stdout) == (3, "")
        assert "refund" in refused.stderr or "nobody" in refused.stderr
    assert json.loads(greenroom("runs", "list", "--store", "runs", "--json").stdout) == []


def test_trials_are_played_and_counted(shop, greenroom):
    for option in ("--trials", "--num-runs", "--num_runs"):
        shown = greenroom("eval", "run", "shop.py", option, "3", "-q").stdout
        assert shown.startswith("6 trials of 2 cases: 3 passed, 3 failed")


def test_another_model_may_play_the_agent(author, greenroom):
    author(CASES + "other = Scripted('never money')")
    assert greenroom("eval", "run", "shop.py", "--model", "shop.py:other").exit_code == 0
    unknown = greenroom("eval", "run", "shop.py", "--model", "nobody:gpt")
    assert unknown.exit_code == 3
    assert "there is no model provider 'nobody'" in unknown.stderr


def test_an_agent_whose_models_cannot_be_seen_says_so(author, greenroom):
    author(
        CASES
        + """
class Foreign:
    name, models, tool_calls, resumes = "foreign", "opaque", "routed", "no"
    snapshot, digest, tools, supports = {}, "", {}, frozenset()
    async def advance(self, ledger, world): ...
agent = Foreign()
"""
    )
    result = greenroom("eval", "run", "shop.py", "--model", "gpt-4o-mini")
    assert result.exit_code == 3
    assert "run by 'foreign' asks its models where the tool gate cannot see it" in result.stderr


def test_mocks_of_a_file_answer_where_a_case_has_none(author, greenroom):
    author("""
    hi = Case("hi", "Hi", metrics=[contains("money")])
    answers = {"refund": "ok"}
    """)
    Path("mocks.yaml").write_text("refund: {value: ok}")
    assert greenroom("eval", "run", "shop.py").exit_code == 2
    assert greenroom("eval", "run", "shop.py", "--mocks", "mocks.yaml").exit_code == 0
    assert greenroom("eval", "run", "shop.py", "--mocks", "shop.py:answers").exit_code == 0
    Path("mocks.yaml").write_text("refund: ok")
    wrong = greenroom("eval", "run", "shop.py", "--mocks", "mocks.yaml")
    assert wrong.exit_code == 3
    assert "mocks.yaml" in wrong.stderr


def test_a_failure_shows_what_was_expected_beside_what_came(author, greenroom):
    author("""
    from greenroom import Expect
    wrong = Case("wrong", "Hi", mocks={"refund": "ok"}, expect=Expect(tools=[call("refund", order=8)]))
    """)
    shown = greenroom("eval", "run", "shop.py").stdout
    assert "    expected     refund(order=8)\n    got          refund(order=7)\n" in shown


def test_the_command_that_plays_a_case_alone_keeps_what_matters(author, greenroom):
    author("cases = [Case('a', 'Hi', metrics=[contains('never')]), Case('b', 'Hi', metrics=[])]")
    Path("mocks.yaml").write_text("refund: {value: ok}")
    words = ["eval", "run", "shop.py", "--mocks", "mocks.yaml", "--allow-tool", "refund"]
    shown = greenroom(*words).stdout
    again = "greenroom eval run shop.py --filter id:a --mocks mocks.yaml --allow-tool refund"
    assert f"again: {again}" in shown


def test_answers_of_judges_can_be_forgotten(shop, greenroom, monkeypatch):
    monkeypatch.setenv("GREENROOM_JUDGES", "kept")
    from greenroom.models import ModelReply
    from greenroom.world.answers import AnswerCache

    AnswerCache().put("ab" * 32, ModelReply("yes"))
    result = greenroom("eval", "clear-cache")
    assert result.exit_code == 0
    assert "deleted 1 answers from kept" in result.stdout
