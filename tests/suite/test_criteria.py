"""Criteria that cannot be measured: all of a run are named at once, those of files with their lines."""

import json

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Scripted, evaluate
from greenroom.cases.criteria import Criterion
from greenroom.errors import BadFile, BadMetric
from greenroom.metrics import contains
from greenroom.suite.inputs.sources import gather
from greenroom.suite.recorded.rescores import rescore

CLERK = Agent("clerk", model=Scripted("Done."))
SET = EvalSet("refunds", [Case("a", "Hi", expect=Expect(contains="Done"))])


def lines(error: BadFile) -> list[tuple[int | None, str]]:
    return [(problem.line, problem.where) for problem in error.problems]


@pytest.fixture
def own(tmp_path):
    """A config of our own shape: an unknown metric, an unknown option, and what is not a criterion."""
    path = tmp_path / "config.yaml"
    path.write_text(
        "version: 1\nmetrics:\n- nosuch\n- criterion: contains\n  txts: [a]\n- 17\n- efficiency\n"
    )
    return path


async def test_a_config_tells_all_its_bad_criteria_each_with_its_line(own):
    with pytest.raises(BadFile) as raised:
        await evaluate(CLERK, SET, config=own, store=False)
    assert lines(raised.value) == [
        (3, "metrics[0]"),
        (5, "metrics[1].txts"),
        (6, "metrics[2]"),
    ]
    told = str(raised.value)
    assert "3 problems" in told
    assert [line[:9] for line in told.splitlines()[1:]] == ["- line 3,", "- line 5,", "- line 6,"]
    assert all(word in told for word in ("'nosuch'", "'txts'", "17"))


async def test_a_map_of_criteria_tells_them_too(tmp_path):
    path = tmp_path / "test_config.json"
    criteria = {
        "nosuch": 1.0,
        "response_match_score": {"threshold": 7},
        "tool_name_match": 1.0,
        "odd": True,
    }
    path.write_text(json.dumps({"criteria": criteria}, indent=1))
    with pytest.raises(BadFile) as raised:
        await evaluate(CLERK, SET, config=path, store=False)
    assert [where for _, where in lines(raised.value)] == [
        "criteria.nosuch",
        "criteria.response_match_score",
        "criteria.odd",
    ]
    assert len({line for line, _ in lines(raised.value)}) == 3


async def test_rescoring_tells_them_as_well(own):
    report = await evaluate(CLERK, SET, store=False)
    with pytest.raises(BadFile) as raised:
        await rescore(report, config=own)
    assert len(raised.value.problems) == 3


async def test_the_metrics_of_a_run_a_set_and_a_case_are_told_together():
    case = Case("a", "Hi", metrics=["nosuch", Criterion("contains", options={"txts": ["a"]})])
    given = EvalSet("refunds", [case], metrics=["never"])
    with pytest.raises(BadMetric) as raised:
        await evaluate(CLERK, given, metrics=iter(["missing"]), store=False)
    told = str(raised.value)
    assert all(word in told for word in ("'missing'", "'never'", "'nosuch'", "'txts'", "case 'a'"))
    assert len(told.splitlines()) == 5


async def test_one_bad_metric_is_told_in_its_own_words():
    with pytest.raises(BadMetric, match=r"^there is no metric 'nosuch'"):
        await evaluate(CLERK, SET, metrics=["nosuch"], store=False)


async def test_metrics_that_come_one_by_one_are_measured():
    report = await evaluate(CLERK, SET, metrics=iter(["efficiency"]), store=False)
    assert "efficiency" in report["a"].scores


def test_a_set_that_cannot_be_read_tells_its_bad_criteria_too(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_text(
        "version: 1\nid: s\nmetrics: [nosuch]\ncases:\n- id: a\n  turns: [{says: hi, expext: 1}]\n"
        "  metrics:\n  - criterion: contains\n    txts: [a]\n"
    )
    with pytest.raises(BadFile) as raised:
        gather(str(path))
    assert lines(raised.value) == [
        (3, "metrics[0]"),
        (6, "cases[0].turns[0].expext"),
        (9, "cases[0].metrics[0].txts"),
    ]
    path.write_text(path.read_text().replace(", expext: 1", ""))
    with pytest.raises(BadFile) as raised:
        gather(str(path))
    assert [line for line, _ in lines(raised.value)] == [3, 9]
    assert gather(str(path), configs=False).evalset.ids == ["a"]


@pytest.mark.parametrize("where", ["the run", "the set", "case 'a'"])
async def test_two_metrics_of_one_name_are_refused_before_the_first_case(where):
    twice = [contains("a"), contains("a")]
    of_case = twice if where == "case 'a'" else ()
    cases = EvalSet(
        "refunds", [Case("a", "Hi", metrics=of_case)], metrics=twice if where == "the set" else ()
    )
    with pytest.raises(BadMetric, match=f"^{where} has two metrics named"):
        await evaluate(CLERK, cases, metrics=twice if where == "the run" else (), store=False)
