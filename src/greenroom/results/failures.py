"""The cases that did not pass, as an eval set to go on with."""

from greenroom.cases.case import Case
from greenroom.cases.data import case_from
from greenroom.cases.evalset import EvalSet
from greenroom.errors import NotFound
from greenroom.ledger.redaction import clean_ids, is_redacted, redactor
from greenroom.results.report import Report
from greenroom.results.result import CaseResult


def failed_cases(report: Report, evalset: EvalSet | None = None) -> EvalSet:
    """The cases that were played and did not pass, as they stand in `evalset`.

    Without it they are taken from the report, which does not know the metrics of the set. One read
    from a file knows only what is data, so cases with code in them are refused.
    """
    kept = {result.case_id: _case(result, evalset) for result in report.failures}
    origin = evalset.id if evalset is not None else report.evalset_id or report.name or "evalset"
    title = (evalset.name if evalset is not None else report.name) or origin
    return EvalSet(
        f"{origin}_failures",
        list(kept.values()),
        name=f"Failed Cases from {title}",
        metadata={"original_eval_set_id": origin, "created_from_report": report.id},
        metrics=evalset.metrics if evalset is not None else (),
        trials=evalset.trials if evalset is not None else 1,
    )


def _by_clean_id(evalset: EvalSet, case_id: str) -> Case | None:
    """The case that has this id where secrets are taken out."""
    clean = clean_ids(evalset.ids, redactor())
    return next((case for case in evalset if clean[case.id] == case_id), None)


def _case(result: CaseResult, evalset: EvalSet | None) -> Case:
    if evalset is not None:
        if (
            found := evalset.get(result.case_id) or _by_clean_id(evalset, result.case_id)
        ) is not None:
            return found
        raise NotFound(
            f"the report has a failure of case {result.case_id!r}, but eval set {evalset.id!r} has "
            f"no such case; give the set that was evaluated."
        )
    if isinstance(result.asked, Case):
        return result.asked
    if result.asked is None:
        raise NotFound(
            f"the report does not hold case {result.case_id!r} itself; give the set that was "
            f"evaluated: failed_cases(report, evalset)."
        )
    if is_redacted(result.asked):
        raise NotFound(
            f"case {result.case_id!r} lost its secrets when the report was saved, so it cannot be "
            f"played from there; give the set that was evaluated: failed_cases(report, evalset)."
        )
    return case_from(result.asked, f"case {result.case_id!r} of the report")
