"""How cases are judged, from files of three shapes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.files.samples import ADK, ADK_CONFIG, AGENTFLOW, AGENTFLOW_CONFIG, FLUENT
from cases.files.sets import GIVEN, WORDS
from greenroom import GreenroomError
from greenroom.cases import Criterion, EvalConfig, read_config, write_config
from greenroom.cases.config import UserSimulator
from greenroom.errors import BadFile, BadMetric


def reading(folder: Path, content: Any, name: str = "config.json") -> EvalConfig:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text)
    return read_config(folder / name)


def test_a_map_of_criteria_is_read(tmp_path: Path) -> None:
    found = reading(tmp_path, AGENTFLOW_CONFIG)
    assert found == EvalConfig(
        criteria=[
            Criterion(
                "tool_trajectory_avg_score", threshold=1.0, options={"match_type": "IN_ORDER"}
            ),
            Criterion("response_match_score", threshold=0.7),
            Criterion(
                "final_response_match_v2",
                threshold=0.8,
                options={"judge_model": "gpt-4o-mini", "num_samples": 3},
            ),
        ],
        user_simulator=UserSimulator(model="gpt-4o", max_allowed_invocations=10),
    )
    assert found.shape == "agentflow"


def test_adk_writes_bare_thresholds_numbers_for_match_types_and_options_of_judges_apart(
    tmp_path: Path,
) -> None:
    found = reading(tmp_path, ADK_CONFIG, "test_config.json")
    assert found.shape == "adk"
    assert found.criteria == (
        Criterion(
            "tool_trajectory_avg_score",
            threshold=1.0,
            options={"match_type": "ANY_ORDER", "args": "ignore"},
        ),
        Criterion("response_match_score", threshold=0.8),
        Criterion(
            "final_response_match_v2",
            threshold=0.5,
            options={"judge_model": "gemini-2.5-flash", "num_samples": 5, "counts": "adk"},
        ),
    )


@pytest.mark.parametrize("shape", ["greenroom", "agentflow", "adk"])
@pytest.mark.parametrize("options", [{}, {"counts": "adk"}, {"counts": "adk", "aggregate": "mean"}])
def test_how_a_judge_counts_survives_every_shape(
    tmp_path: Path, shape: str, options: dict[str, Any]
) -> None:
    config = EvalConfig(criteria=[Criterion("final_response_match_v2", options=options)])
    write_config(config, tmp_path / "config.json", shape=shape)
    assert read_config(tmp_path / "config.json") == config


def test_only_google_adks_own_judges_count_as_it_does(tmp_path: Path) -> None:
    names = ["hallucinations_v1", "response_match_score", "llm_judge", "tool_name_match"]
    found = reading(tmp_path, {"criteria": dict.fromkeys(names, 0.5)}, "test_config.json")
    assert [dict(c.options) for c in found.criteria] == [{"counts": "adk"}, {}, {}, {}]


def test_our_own_config_lists_metrics(tmp_path: Path) -> None:
    text = """\
version: 1
metrics:
  - exact
  - {criterion: response_match_score, threshold: 0.7, mode: recall}
user_simulator: {model: gpt-4o}
fail_fast: true
extra: {owner: ada}
"""
    found = reading(tmp_path, text, "config.yaml")
    assert found == EvalConfig(
        criteria=[
            Criterion("exact"),
            Criterion("response_match_score", threshold=0.7, options={"mode": "recall"}),
        ],
        user_simulator=UserSimulator(model="gpt-4o"),
        fail_fast=True,
        extra={"owner": "ada"},
    )


def test_the_default_measures_calls_and_resembling_responses() -> None:
    names = [criterion.name for criterion in EvalConfig.default().criteria]
    assert names == ["tool_trajectory_avg_score", "response_match_score"]


@pytest.mark.parametrize("cases", [AGENTFLOW, ADK, {"version": 1, "metrics": [], "cases": []}])
def test_cases_given_as_a_config_are_refused(tmp_path: Path, cases: Any) -> None:
    with pytest.raises(BadFile, match="is an eval set, not a config"):
        reading(tmp_path, cases)
    with pytest.raises(BadFile, match="is an eval set, not a config"):
        reading(tmp_path, FLUENT, "config.yaml")


@pytest.mark.parametrize(
    "content, told",
    [
        ({}, "is not a config. Looked for"),
        ([], "is not a config"),
        ({"criteria": {"x": "high"}}, "criteria.x: 'high' should be a number, or a mapping"),
        ({"criteria": {"x": True}}, "criteria.x: true should be a number"),
        ({"criteria": {"x": {"threshold": "a"}}}, "criteria.x.threshold: 'a' should be a number"),
        ({"criteria": {"x": {"match_type": 3}}}, "3 should be a name, such as EXACT"),
        ({"criteria": {"x": {"match_type": True}}}, "true should be a name, such as EXACT"),
        ({"criteria": {}, "user_simulator_config": {"max_allowed_invocations": 0}}, "1 or more"),
        ({"criteria": {}, "fail_fast": "yes"}, "fail_fast: 'yes' should be true or false"),
        ({"version": 2, "metrics": []}, "version: version 2 is not supported"),
        (
            {"version": 1, "metrik": [], "metrics": []},
            "'metrik' is unknown. Did you mean 'metrics'",
        ),
        ({"version": 1, "metrics": [5]}, r"metrics\[0\]: 5 names no metric. Write its name, or"),
    ],
)
def test_a_bad_config_is_refused_with_its_place(tmp_path: Path, content: Any, told: str) -> None:
    with pytest.raises(BadFile, match=told):
        reading(tmp_path, content)


@pytest.mark.parametrize(
    "content, place",
    [
        ({"version": 1, "metrics": [], "judges": 3}, "judges"),
        ({"version": 1, "metrics": [], "user_simulator": {"modle": "x"}}, "user_simulator.modle"),
        ({"criteria": {}, "judges": 3}, "judges"),
        ({"criteria": {}, "userSimulator": {}}, "userSimulator"),
        ({"criteria": {}, "user_simulator_config": {"temprature": 0}}, "temprature"),
        (
            {"criteria": {"x": {"judge_model_options": {"judge_modle": "m"}}}},
            "criteria.x.judge_model_options.judge_modle",
        ),
    ],
)
def test_a_field_nobody_knows_is_refused_wherever_it_stands(
    tmp_path: Path, content: Any, place: str
) -> None:
    with pytest.raises(BadFile, match=rf"{place}: the field '\w+' is unknown") as told:
        reading(tmp_path, content)
    assert told.value.problems[0].line == 1


def test_all_that_is_wrong_in_a_config_is_told_at_once(tmp_path: Path) -> None:
    text = """\
version: 1
metrics:
  - 5
  - {criterion: exact, threshold: high}
judges: 3
parallel_criteria: true
fail_fast: maybe
user_simulator: {max_allowed_invocations: 0}
"""
    with pytest.raises(BadFile) as told:
        reading(tmp_path, text, "config.yaml")
    assert {(p.where, p.line) for p in told.value.problems} == {
        ("metrics[0]", 3),
        ("metrics[1].threshold", 4),
        ("judges", 5),
        ("parallel_criteria", 6),
        ("fail_fast", 7),
        ("user_simulator.max_allowed_invocations", 8),
    }


@pytest.mark.parametrize(
    "content", [{"version": 1, "metrics": []}, {"criteria": {"exact": 1.0}}], ids=["own", "map"]
)
def test_criteria_are_not_measured_in_parallel_and_a_config_that_asks_for_it_is_refused(
    tmp_path: Path, content: Any
) -> None:
    assert reading(tmp_path, {**content, "parallel_criteria": False}).parallel_criteria is False
    with pytest.raises(BadFile, match=r"parallel_criteria: .*one after the other; leave it out"):
        reading(tmp_path, {**content, "parallel_criteria": True})
    with pytest.raises(GreenroomError, match="one after the other; leave it out"):
        EvalConfig(parallel_criteria=True)


def test_a_config_made_in_python_may_give_its_criteria_as_files_do(tmp_path: Path) -> None:
    written: Any = AGENTFLOW_CONFIG["criteria"]
    assert EvalConfig(criteria=written).criteria == reading(tmp_path, AGENTFLOW_CONFIG).criteria
    bare: Any = {"exact": 1.0}
    assert EvalConfig(criteria=bare).criteria == (Criterion("exact", threshold=1.0),)
    names: Any = ["exact"]
    assert EvalConfig(criteria=names).criteria == (Criterion("exact"),)


@pytest.mark.parametrize(
    "criteria", ["exact", 5, {"exact": "high"}, {"exact": {"threshold": "x"}}, [5]]
)
def test_criteria_that_are_none_are_refused(criteria: Any) -> None:
    with pytest.raises(GreenroomError, match=r"criteria|exact"):
        EvalConfig(criteria=criteria)


def test_a_config_made_in_python_may_give_its_simulator_as_files_do(tmp_path: Path) -> None:
    written: Any = AGENTFLOW_CONFIG["user_simulator_config"]
    read = reading(tmp_path, AGENTFLOW_CONFIG)
    assert EvalConfig(user_simulator=written).user_simulator == read.user_simulator


@pytest.mark.parametrize("simulator", ["gpt-4o", {"modle": "x"}, {"max_allowed_invocations": 0}])
def test_a_simulator_that_is_none_is_refused(simulator: Any) -> None:
    with pytest.raises(GreenroomError, match="user_simulator"):
        EvalConfig(user_simulator=simulator)


def test_a_config_has_each_criterion_once() -> None:
    with pytest.raises(BadMetric, match="two criteria 'exact'"):
        EvalConfig(criteria=[Criterion("exact"), Criterion("exact", threshold=0.5)])


CRITERIA = st.builds(
    Criterion,
    WORDS,
    threshold=st.none() | st.floats(0, 1),
    options=st.fixed_dictionaries(
        {},
        optional={
            "match_type": st.sampled_from(["EXACT", "IN_ORDER", "SUPERSET"]),
            "args": st.just("ignore"),
            "judge_model": WORDS,
            "num_samples": st.integers(1, 5),
            "rubrics": st.lists(WORDS, max_size=2),
        },
    ),
)
CONFIGS = st.builds(
    EvalConfig,
    criteria=st.lists(CRITERIA, max_size=3, unique_by=lambda c: c.name),
    user_simulator=st.none()
    | st.builds(
        UserSimulator,
        model=st.just("") | WORDS,
        max_allowed_invocations=st.integers(1, 30),
    ),
    fail_fast=st.booleans(),
    extra=st.none() | st.fixed_dictionaries({"custom_metrics": GIVEN}),
)


@pytest.mark.parametrize("shape", ["greenroom", "agentflow", "adk"])
@pytest.mark.parametrize("name", ["config.json", "config.yaml"])
def test_a_config_survives_every_shape(
    tmp_path_factory: pytest.TempPathFactory, shape: str, name: str
) -> None:
    path = tmp_path_factory.mktemp("config") / name

    @given(CONFIGS)
    def survives(config: EvalConfig) -> None:
        write_config(config, path, shape=shape)
        assert read_config(path) == config

    survives()
