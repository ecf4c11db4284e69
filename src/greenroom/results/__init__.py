"""What was concluded: the verdict on each case, and the report of a run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from greenroom.results.endings import Status
from greenroom.results.failures import failed_cases
from greenroom.results.report import MetricSummary, Report, Summary
from greenroom.results.result import CaseResult, Problem
from greenroom.results.trial_verdict import broken, concluded, skipped

if TYPE_CHECKING:
    from greenroom.results.agreement import Agreement, agreement_between
    from greenroom.results.breakdown import CaseSummary, TagSummary, per_case, per_tag
    from greenroom.results.changes import CaseChange, MetricChange
    from greenroom.results.comparison import Comparison, Missed, compare, compare_all
    from greenroom.results.gate import Decision, Gate
    from greenroom.results.intervals import Interval
    from greenroom.results.labels import Grade, LabelSet
    from greenroom.results.redaction import redacted

# Imported when they are first used: no rehearsal needs them.
_SELDOM = {
    "Agreement": "agreement",
    "CaseChange": "changes",
    "CaseSummary": "breakdown",
    "Comparison": "comparison",
    "Decision": "gate",
    "Gate": "gate",
    "Grade": "labels",
    "Interval": "intervals",
    "LabelSet": "labels",
    "MetricChange": "changes",
    "Missed": "comparison",
    "TagSummary": "breakdown",
    "agreement_between": "agreement",
    "compare": "comparison",
    "compare_all": "comparison",
    "per_case": "breakdown",
    "per_tag": "breakdown",
    "redacted": "redaction",
}

__all__ = [
    "Agreement",
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


def __getattr__(name: str) -> Any:
    if name not in _SELDOM:
        raise AttributeError(f"module 'greenroom.results' has no attribute {name!r}")
    return getattr(import_module(f"greenroom.results.{_SELDOM[name]}"), name)
