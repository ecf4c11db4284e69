"""The JSON reporter says what the file says."""

import json
from pathlib import Path

from greenroom import Report, Score
from greenroom.reports.json import JsonReport
from greenroom.results import CaseResult

REPORT = Report(
    [
        CaseResult(case_id="good", status="passed", scores={"m": Score(1.0)}),
        CaseResult(case_id="bad", status="failed", scores={"m": Score(0.0)}),
    ],
    id="r",
)


def test_the_text_is_the_files_text(tmp_path: Path) -> None:
    assert JsonReport().text(REPORT) == REPORT.save(tmp_path / "r.json").read_text()


def test_failures_only_on_one_line() -> None:
    text = JsonReport(failures_only=True, indent=None).text(REPORT)
    assert text.count("\n") == 1
    assert [result["case_id"] for result in json.loads(text)["results"]] == ["bad"]
