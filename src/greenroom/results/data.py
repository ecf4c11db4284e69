"""Results as JSON: what a report file and other programs get to see."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import cast

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.questions import Step
from greenroom.results.blame import Blame
from greenroom.results.gate import Decision
from greenroom.results.report import MetricSummary, Report
from greenroom.results.result import CaseResult, Problem, responses_in

VERSION = 1
KIND = "report"
_LONGEST_SHOWN = 300


def report_data(
    report: Report,
    *,
    failures_only: bool = False,
    decision: Decision | None = None,
    each: Callable[[CaseResult], Json] | None = None,
) -> dict[str, Json]:
    """The report as JSON. Its summary counts every case, whichever results are shown.

    `each` is what becomes of one result, where that is not `result_data`.
    """
    each = each or result_data
    results = report.failures if failures_only else report.results
    return {
        "version": VERSION,
        "kind": KIND,
        "id": report.id,
        "evalset_id": report.evalset_id,
        "name": report.name,
        "at": report.at,
        "seconds": report.seconds,
        "notes": list(report.notes),
        "failures_only": failures_only,
        "gate": gate_data(decision),
        "summary": summary_data(report),
        "errors": [_error_data(result) for result in report.errors],
        "results": [each(result) for result in results],
        "adaptive": report.adaptive,
        "against": report.against,
        "confirmed": [each(result) for result in report.confirmed],
    }


def gate_data(decision: Decision | None) -> dict[str, Json] | None:
    """What the gate said, as JSON; None where none was asked."""
    if decision is None:
        return None
    return {
        "passed": decision.passed,
        "exit_code": decision.exit_code,
        "missed": [{"kind": missed.kind, "why": missed.why} for missed in decision.missed],
    }


def summary_data(report: Report) -> dict[str, Json]:
    """The counts, each metric over all cases, and what it all took; None is unknown."""
    counts = report.summary
    return {
        "total": counts.total,
        "passed": counts.passed,
        "failed": counts.failed,
        "errors": counts.errors,
        "terminated": counts.terminated,
        "skipped": counts.skipped,
        "evaluated": counts.evaluated,
        "pass_rate": report.pass_rate,
        "interval": _interval_data(report),
        "metrics": {name: _metric_data(found) for name, found in report.metrics.items()},
        "case_seconds": sum(result.seconds for result in report.results),
        "usage": _usage_data(report.usage),
        "cost": report.cost,
        "user_usage": _usage_data(report.user_usage),
        "user_cost": report.user_cost,
        "judge_usage": _usage_data(report.judge_usage),
        "judge_cost": report.judge_cost,
        "models": report.models,
        "user_models": report.user_models,
        "judge_models": report.judge_models,
    }


def _interval_data(report: Report) -> dict[str, Json] | None:
    found = report.interval
    return None if found is None else {"low": found.low, "high": found.high, "level": 0.95}


def _metric_data(found: MetricSummary) -> dict[str, Json]:
    return {
        "measured": found.measured,
        "passed": found.passed,
        "failed": found.failed,
        "not_applicable": found.not_applicable,
        "unmeasured": found.unmeasured,
        "mean": found.mean,
        "min": found.min,
        "max": found.max,
    }


def _error_data(result: CaseResult) -> dict[str, Json]:
    place = {"case_id": result.case_id, "trial": result.trial}
    return {**place, **(problem_data(result.error) or {})}


def result_data(result: CaseResult) -> dict[str, Json]:
    """One case's result as JSON, with the case itself and all that was kept of its run."""
    trajectory = result.trajectory
    return {
        **verdict_data(result),
        "responses": responses_in(trajectory),
        "trajectory": [_step_data(step) for step in trajectory],
        "case": asked_data(result),
    }


def verdict_data(result: CaseResult) -> dict[str, Json]:
    """What was concluded of a run and what it took, without the run itself."""
    return {
        "case_id": result.case_id,
        "name": result.name,
        "tags": list(result.tags),
        "trial": result.trial,
        "status": result.status,
        "scores": {name: outcome_data(outcome) for name, outcome in result.scores.items()},
        "ended": result.ended,
        "error": problem_data(result.error),
        "blame": _blame_data(result.blame),
        "turns": result.turns,
        "seconds": result.seconds,
        "usage": _usage_data(result.usage),
        "cost": result.cost,
        "user_usage": _usage_data(result.user_usage),
        "user_cost": result.user_cost,
        "judge_usage": _usage_data(result.judge_usage),
        "judge_cost": result.judge_cost,
        "models": dict(result.models),
        "user_models": dict(result.user_models),
        "judge_models": dict(result.judge_models),
        "notes": list(result.notes),
        "fixed": result.fixed,
    }


def outcome_data(outcome: Outcome) -> dict[str, Json]:
    """An outcome as JSON: a score with its number, the others with their reason."""
    match outcome:
        case Score():
            bar = outcome.threshold
            return {
                "score": outcome.value,
                "passed": outcome.passed,
                "threshold": bar if bar is not None and isfinite(bar) else None,
                "reason": outcome.reason,
                "evidence": [str(seen) for seen in outcome.evidence],
                "details": shown_json(outcome.details),
                "measured": shown_json(outcome.measured),
                "name": outcome.name,
            }
        case NotApplicable():
            return {"not_applicable": outcome.why}
        case Unmeasured():
            return {"unmeasured": outcome.why, "phase": outcome.phase}


def problem_data(problem: Problem | None) -> dict[str, Json] | None:
    """What broke, as JSON."""
    if problem is None:
        return None
    return {"phase": problem.phase, "type": problem.type, "message": problem.message}


def _blame_data(found: Blame | None) -> dict[str, Json] | None:
    return None if found is None else {"whom": found.whom, "evidence": list(found.evidence)}


def _usage_data(usage: Usage | None) -> dict[str, Json] | None:
    return None if usage is None else {"input": usage.input, "output": usage.output}


def _step_data(step: Step) -> dict[str, Json]:
    return {
        "type": step.type,
        "name": step.name,
        "args": shown_json(step.args),
        "at": step.at,
        "seconds": step.seconds,
        "details": shown_json(step.details),
    }


def asked_data(result: CaseResult) -> Json:
    """The case itself as JSON; None if it cannot be written down."""
    try:
        return plain(result.case, f"case {result.case_id!r}")
    except BadInput:
        # A case that cannot be written down was not played either; its error says why.
        return None


def shown_json(value: object, depth: int = 0) -> Json:
    """`value` as JSON; what is none is shown as text, so that no result is lost for its details."""
    try:
        return plain(value)
    except Exception:  # noqa: BLE001 - somebody else's object, which may not even have a repr
        pass
    # One bad part must not spoil the whole.
    if isinstance(value, Mapping) and depth < 20:
        inside = cast("Mapping[object, object]", value)
        return {str(key): shown_json(item, depth + 1) for key, item in inside.items()}
    if isinstance(value, list | tuple) and depth < 20:
        return [shown_json(item, depth + 1) for item in cast("Sequence[object]", value)]
    return _shown(cast(object, value))


def _shown(value: object) -> str:
    try:
        return repr(value)[:_LONGEST_SHOWN]
    except Exception as error:  # noqa: BLE001 - somebody else's object, kept from the results
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
