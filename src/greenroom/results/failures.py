"""The cases that did not pass, as an eval set to run next."""

from collections.abc import Mapping

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.reader import case_from
from greenroom.errors import NotFound
from greenroom.ledger.redaction import clean_ids, is_redacted, redactor
from greenroom.results.report import Report
from greenroom.results.result import CaseResult


def failed_cases(report: Report, evalset: EvalSet | None = None) -> EvalSet:
    """The cases that ran and did not pass, taken from `evalset`.

    Without it they are taken from the report, which does not know the metrics of the set. One read
    from a file knows only what is data, so cases with code in them are refused.
    """
    known = {} if evalset is None else _by_id(evalset)
    kept = {result.case_id: _case(result, evalset, known) for result in report.failures}
    origin = evalset.id if evalset is not None else report.evalset_id or report.name or "evalset"
    title = (evalset.name if evalset is not None else report.name) or origin
    return EvalSet(
        f"{origin}_failures",
        list(kept.values()),
        name=f"Failed Cases from {title}",
        metadata={"original_eval_set_id": origin, "created_from_report": report.id},
        metrics=evalset.metrics if evalset is not None else (),
        trials=evalset.trials if evalset is not None else 1,
        usual=evalset.usual if evalset is not None else None,
    )


def _by_id(evalset: EvalSet) -> dict[str, Case]:
    """The cases by their ids, and by their ids without secrets, as in a report from a file."""
    clean = clean_ids(evalset.ids, redactor())
    return {clean[case.id]: case for case in evalset} | {case.id: case for case in evalset}


def _case(result: CaseResult, evalset: EvalSet | None, known: Mapping[str, Case]) -> Case:
    if evalset is not None:
        if found := known.get(result.case_id):
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
            f"run from there; give the set that was evaluated: failed_cases(report, evalset)."
        )
    return case_from(result.asked, f"case {result.case_id!r} of the report")
