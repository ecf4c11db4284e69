"""A set is judged by the same criteria in whatever file it is kept."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.files.samples import ADK, FILES
from greenroom import Agent, Case, EvalSet, Expect, Report, Scripted, evaluate
from greenroom.cases import Criterion, case_data, case_from, check, merge, read_evalset
from greenroom.cases import write_evalset as write
from greenroom.errors import BadCase, BadFile

TOOLS = Criterion("tool_trajectory_avg_score", options={"match_type": "ADK"})
LIKE = Criterion("response_match_score")
FOREIGN = ["adk", "adk-flat", "adk-named", "agentflow"]


def reading(folder: Path, content: Any, name: str = "set.json") -> EvalSet:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text, encoding="utf-8")
    return read_evalset(folder / name)


def adk(**more: Any) -> Any:
    """An ADK file that expects a response, no calls, and a word on the way, which ADK leaves alone."""
    turn = {
        "user_content": {"parts": [{"text": "Where is it?"}], "role": "user"},
        "final_response": {"parts": [{"text": "It is on its way."}], "role": "model"},
        "intermediate_data": {"intermediate_responses": [["clerk", [{"text": "Let me see."}]]]},
    }
    case = {"eval_id": "where", "conversation": [turn]}
    return {"eval_set_id": "orders", "eval_cases": [case], **more}


def criteria(evalset: EvalSet) -> list[tuple[str, bool, list[str]]]:
    """What judges each case: whether its expectations do, and which metrics."""
    shared = [*evalset.metrics, *(evalset.usual or ())]
    return [
        (case.id, case.implied, sorted(map(repr, [*case.metrics, *shared]))) for case in evalset
    ]


async def judged(cases: Any) -> Report:
    return await evaluate(Agent("clerk", model=Scripted("It is on its way.")), cases)


@pytest.mark.parametrize("shape", FILES)
def test_expectations_judge_unless_the_tool_behind_a_file_has_criteria_of_its_own(
    tmp_path: Path, shape: str
) -> None:
    name, text = FILES[shape]
    found = reading(tmp_path, text, name)
    assert (found.usual is not None) == (shape in FOREIGN)
    assert {case.implied for case in found} == {shape not in FOREIGN}


@pytest.mark.parametrize("name", ["own.yaml", "own.json", "own.csv", "own.jsonl"])
@pytest.mark.parametrize("shape", FOREIGN)
def test_a_foreign_set_kept_as_our_own_is_judged_by_the_same_criteria(
    tmp_path: Path, shape: str, name: str
) -> None:
    file, text = FILES[shape]
    found = reading(tmp_path, text, file)
    flat = (
        replace(found, id="own", name="", description="")
        if name.endswith(("csv", "jsonl"))
        else found
    )
    write(flat, tmp_path / name)
    again = read_evalset(tmp_path / name)
    assert again.usual is None
    assert criteria(again) == criteria(found)


async def test_a_converted_adk_file_gets_the_scores_of_the_original(tmp_path: Path) -> None:
    found = reading(tmp_path, adk(), "orders.evalset.json")
    write(found, tmp_path / "own.yaml")
    for file in ("orders.evalset.json", "own.yaml"):
        report = await judged(tmp_path / file)
        assert report.passed, report
        assert set(report["where"].scores) == {"tool_trajectory_avg_score", "response_match_score"}


async def test_a_converted_file_can_go_back_and_is_still_judged_once_by_each(
    tmp_path: Path,
) -> None:
    write(reading(tmp_path, adk()), tmp_path / "own.yaml")
    write(read_evalset(tmp_path / "own.yaml"), tmp_path / "back.json", shape="adk")
    back = read_evalset(tmp_path / "back.json")
    assert [*back.metrics, *(back.usual or ())] == [TOOLS, LIKE]
    assert (await judged(back)).passed


async def test_a_criterion_that_an_adk_file_sets_itself_comes_before_the_usual_one(
    tmp_path: Path,
) -> None:
    strict = {"criterion": "response_match_score", "threshold": 1.0}
    found = reading(tmp_path, adk(greenroom={"metrics": [strict]}))
    assert found.metrics == [Criterion("response_match_score", threshold=1.0)]
    assert found.usual == (TOOLS,)
    scores = (await judged(found))["where"].measured
    assert scores["response_match_score"].threshold == 1.0


METRICS = st.lists(
    st.sampled_from([TOOLS, LIKE, Criterion("safety_v1"), Criterion("exact", threshold=0.5)]),
    unique_by=lambda criterion: criterion.name,
)
CASES = st.builds(
    Case,
    st.sampled_from("abc"),
    says=st.just("Hi"),
    expect=st.builds(Expect, tools=st.just(["look"]), reference=st.none() | st.just("Ho")),
    metrics=METRICS,
    implied=st.booleans(),
)
SETS = st.builds(
    EvalSet, st.just("s"), st.lists(CASES, max_size=3, unique_by=lambda c: c.id), metrics=METRICS
)


@given(SETS, st.sampled_from(["adk", "agentflow"]))
def test_no_way_through_files_changes_the_criteria(evalset: EvalSet, shape: str) -> None:
    with TemporaryDirectory() as folder:
        first, own, last = (Path(folder) / name for name in ("a.json", "b.yaml", "c.json"))
        # What a shape cannot hold of a set is another matter.
        write(evalset, first, shape=shape, lossy=True)
        found = read_evalset(first, shape=shape)
        write(found, own)
        assert criteria(read_evalset(own)) == criteria(found)
        if shape == "adk":
            write(read_evalset(own), last, shape=shape)
            assert criteria(read_evalset(last)) == criteria(found)


@given(CASES)
def test_a_ledger_remembers_whether_expectations_judge(case: Case) -> None:
    assert case_from(case_data(case)).implied is case.implied


@pytest.mark.parametrize("given", ["no", 0, []])
def test_what_is_neither_true_nor_false_is_refused(tmp_path: Path, given: Any) -> None:
    data = {"version": 1, "cases": [{"id": "a", "says": "Hi", "implied": given}]}
    with pytest.raises(BadFile, match=r"cases\[0\]\.implied: .* should be true or false"):
        reading(tmp_path, data)
    with pytest.raises(BadCase, match=r"`implied` is .* should be true or false"):
        Case("a", "Hi", implied=given)


async def test_a_case_may_leave_what_it_expects_to_its_metrics() -> None:
    case = Case("a", "Hi", expect=Expect(contains="nowhere"), metrics=[LIKE], implied=False)
    report = await judged([replace(case, expect=Expect(contains="nowhere", reference="It is on"))])
    assert set(report["a"].scores) == {"response_match_score"}


def test_a_shape_that_cannot_leave_expectations_to_metrics_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"no place in the shape sessions: .*where\.implied"):
        write(reading(tmp_path, adk()), tmp_path / "s.json", shape="sessions")


# Merged


def test_sets_with_the_same_usual_criteria_keep_them_when_merged(tmp_path: Path) -> None:
    one, two = reading(tmp_path, adk(), "one.json"), reading(tmp_path, ADK, "two.json")
    merged = merge(one, two)
    assert merged.usual == one.usual
    assert criteria(merged) == [*criteria(one), *criteria(two)]


async def test_sets_with_other_criteria_are_each_judged_by_their_own_when_merged(
    tmp_path: Path,
) -> None:
    foreign = reading(tmp_path, adk())
    own = EvalSet("own", [Case("mine", "Hi", expect=Expect(contains="way"))])
    merged = merge(foreign, own)
    assert merged.usual is None
    assert criteria(merged) == [*criteria(foreign), *criteria(own)]
    report = await judged(merged)
    assert set(report["where"].scores) == {"tool_trajectory_avg_score", "response_match_score"}
    assert set(report["mine"].scores) == {"expected_contains"}


def test_cases_that_are_judged_otherwise_are_not_the_same() -> None:
    case = Case("a", "Hi", expect=Expect(reference="Ho"), metrics=[LIKE])
    left = EvalSet("left", [replace(case, implied=False)])
    with pytest.raises(BadCase, match="have different cases 'a'"):
        merge(EvalSet("asked", [case]), left, deduplicate=True)


# Checked


@pytest.mark.parametrize("expect", [Expect(reference="Ho"), Expect(intermediate=["One moment."])])
def test_a_reference_or_a_word_on_the_way_is_an_expectation(expect: Expect) -> None:
    assert check([Case("a", "Hi", expect=expect)]) == []


def test_what_is_judged_by_the_usual_criteria_of_its_file_lacks_nothing(tmp_path: Path) -> None:
    scenario = {"starting_prompt": "Hello", "conversation_plan": "Ask."}
    data = {"eval_cases": [{"eval_id": "chat", "conversation_scenario": scenario}]}
    assert check(reading(tmp_path, data)) == []


def test_expectations_that_are_left_to_no_metric_are_told() -> None:
    case = Case("a", "Hi", expect=Expect(contains="Ho"), implied=False)
    (problem,) = check([case])
    assert (problem.where, problem.hint) == ("cases[0]", True)
    assert problem.message == (
        "`implied: false` leaves the case's expectations to its metrics, but it has none"
    )
    assert check(EvalSet("s", [case], metrics=["exact"])) == []
