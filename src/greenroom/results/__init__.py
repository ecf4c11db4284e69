"""Results: the verdict on each trial, and the report of a run."""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy
from greenroom.results.endings import Status
from greenroom.results.report import Report
from greenroom.results.result import CaseResult, Problem
from greenroom.results.summary import MetricSummary, Summary
from greenroom.results.trial_verdict import broken, concluded, skipped

if TYPE_CHECKING:
    from greenroom.results.breakdown import CaseSummary, TagSummary, per_case, per_tag
    from greenroom.results.comparisons.changes import CaseChange, MetricChange
    from greenroom.results.comparisons.comparison import Comparison, Missed, compare, compare_all
    from greenroom.results.failures import failed_cases
    from greenroom.results.gate import Decision, Gate
    from greenroom.results.labels import Grade, LabelSet
    from greenroom.results.redaction import redacted
    from greenroom.results.statistics.agreement import Agreement, agreement_between
    from greenroom.results.statistics.calibration import Calibration
    from greenroom.results.statistics.intervals import Interval

__all__ = [
    "Agreement",
    "Calibration",
    "CaseChange",
    "CaseResult",
    "CaseSummary",
    "Comparison",
    "Decision",
    "Gate",
    "Grade",
    "Interval",
    "LabelSet",
    "MetricChange",
    "MetricSummary",
    "Missed",
    "Problem",
    "Report",
    "Status",
    "Summary",
    "TagSummary",
    "agreement_between",
    "broken",
    "compare",
    "compare_all",
    "concluded",
    "failed_cases",
    "per_case",
    "per_tag",
    "redacted",
    "skipped",
]

# Loaded when first used: a rehearsal does not need these.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "breakdown": "CaseSummary TagSummary per_case per_tag",
        "comparisons.changes": "CaseChange MetricChange",
        "comparisons.comparison": "Comparison Missed compare compare_all",
        "failures": "failed_cases",
        "gate": "Decision Gate",
        "labels": "Grade LabelSet",
        "redaction": "redacted",
        "statistics.agreement": "Agreement agreement_between",
        "statistics.calibration": "Calibration",
        "statistics.intervals": "Interval",
    },
)
