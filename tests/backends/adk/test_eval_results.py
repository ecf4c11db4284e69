"""Our results in google-adk's own files, read back by google-adk itself."""

from pathlib import Path
from typing import Any

import pytest
from google.adk.evaluation.eval_result import EvalSetResult
from google.adk.evaluation.evaluator import EvalStatus
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

from backends.adk.scripts import WEATHER, agent, case
from greenroom import Report, Score, Turn, evaluate, fault
from greenroom.errors import BadInput
from greenroom.metrics import called, contains
from greenroom.reports.adk import AdkReport, write_eval_history
from greenroom.reports.reporters import write_reports


def weather(city: str) -> str:
    """The weather."""
    raise RuntimeError("never reached")


def broken(case: Any, ledger: Any) -> Score:
    raise ValueError("no ruler")


async def report() -> Report:
    clerk = agent("clerk", WEATHER, "done", "and done", tools=[weather])
    two = [Turn("hello"), Turn("again")]
    cases = [
        case("passed", mocks={"weather": "mild"}, metrics=[contains("done"), called("weather")]),
        case("failed", mocks={"weather": "mild"}, metrics=[contains("Bergen")]),
        case("refused"),
        case("unmeasured", mocks={"weather": fault("down")}, metrics=[broken]),
        case("two turns", says="", turns=two, mocks={"weather": {"celsius": 3}}),
    ]
    return await evaluate(clerk, cases)


def read_back(folder: Path) -> Any:
    manager = LocalEvalSetResultsManager(str(folder))
    (name,) = manager.list_eval_set_results("shop")
    return manager.get_eval_set_result("shop", name)


async def test_google_adk_reads_our_results_among_its_own(tmp_path: Path):
    written = write_eval_history(await report(), tmp_path, "shop")
    assert written.parent == tmp_path / "shop" / ".adk" / "eval_history"
    found = {one.eval_id: one for one in read_back(tmp_path).eval_case_results}
    assert {name: one.final_eval_status for name, one in found.items()} == {
        "passed": EvalStatus.PASSED,
        "failed": EvalStatus.FAILED,
        "refused": EvalStatus.NOT_EVALUATED,
        "unmeasured": EvalStatus.NOT_EVALUATED,
        "two turns": EvalStatus.PASSED,
    }


async def test_every_metric_keeps_its_score_and_its_reason(tmp_path: Path):
    write_eval_history(await report(), tmp_path, "shop")
    found = {one.eval_id: one for one in read_back(tmp_path).eval_case_results}
    passed = found["passed"].overall_eval_metric_results
    assert [(one.metric_name, one.score) for one in passed] == [
        ("contains('done')", 1.0),
        ("called('weather')", 1.0),
    ]
    (failed,) = found["failed"].overall_eval_metric_results
    assert (failed.eval_status, failed.score) == (EvalStatus.FAILED, 0.0)
    assert "Bergen" in failed.details.rubric_scores[0].rationale
    (unmeasured,) = found["unmeasured"].overall_eval_metric_results
    assert (unmeasured.eval_status, unmeasured.score) == (EvalStatus.NOT_EVALUATED, None)
    assert "no ruler" in unmeasured.details.rubric_scores[0].rationale


async def test_turns_calls_and_errors_are_told(tmp_path: Path):
    write_eval_history(await report(), tmp_path, "shop")
    found = {one.eval_id: one for one in read_back(tmp_path).eval_case_results}
    first, second = found["two turns"].eval_metric_result_per_invocation
    assert first.actual_invocation.user_content.parts[0].text == "hello"
    assert second.actual_invocation.final_response.parts[0].text == "and done"
    used = first.actual_invocation.intermediate_data
    assert [(one.name, one.args) for one in used.tool_uses] == [WEATHER]
    assert used.tool_responses[0].response == {"celsius": 3}
    assert first.eval_metric_results == []
    (only,) = found["passed"].eval_metric_result_per_invocation
    assert len(only.eval_metric_results) == 2
    broke = found["refused"].session_details.events[-1]
    assert broke.error_code == "ToolRefused"
    assert "'weather'" in broke.error_message


async def test_the_reporter_gives_the_same_text(tmp_path: Path):
    told = await report()
    written = write_eval_history(told, tmp_path, "shop").read_text(encoding="utf-8")
    assert AdkReport("shop").render(told) == written


async def test_the_format_is_known_by_its_name(tmp_path: Path):
    told = await report()
    (path,) = write_reports(told, [f"adk={tmp_path / 'shop.evalset_result.json'}"])
    found = EvalSetResult.model_validate_json(path.read_text(encoding="utf-8"))
    assert [one.eval_id for one in found.eval_case_results] == [one.label for one in told]
    assert write_reports(told, ["adk", "json"], tmp_path)[0].name == "greenroom.evalset_result.json"


@pytest.mark.parametrize("app", ["", ".", "..", "a/b", "/etc"])
def test_a_name_that_is_no_folder_is_refused(app: str, tmp_path: Path):
    with pytest.raises(BadInput, match="not the name"):
        write_eval_history(Report([]), tmp_path, app)
    assert list(tmp_path.iterdir()) == []
