"""What was concluded: the verdict on each case, and the report of a run."""

from greenroom.results.failures import failed_cases
from greenroom.results.report import MetricSummary, Report, Summary
from greenroom.results.result import CaseResult, Problem, Status, broken, concluded, skipped

__all__ = [
    "CaseResult",
    "MetricSummary",
    "Problem",
    "Report",
    "Status",
    "Summary",
    "broken",
    "concluded",
    "failed_cases",
    "skipped",
]
