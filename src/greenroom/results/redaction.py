"""A report without secrets, as every renderer and every file gets to see it."""

from dataclasses import replace
from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score
from greenroom.errors import BadInput
from greenroom.ledger.plain import JSON_TYPES
from greenroom.ledger.records import record
from greenroom.ledger.redaction import Redactor, redactor
from greenroom.results.data import shown_json
from greenroom.results.report import Report
from greenroom.results.result import CaseResult


@record(repr=False)
class Redacted(Report):
    """A report that has lost its secrets, and need not be looked through again."""


def redacted(report: Report, by: Redactor | None = None) -> Redacted:
    """The report with every secret replaced; without `by`, those that this process knows of."""
    if isinstance(report, Redacted) and by is None:
        return report
    hand = by or redactor()
    clean = hand.value
    return Redacted(
        [_result(result, hand) for result in report.results],
        name=clean(report.name),
        seconds=report.seconds,
        notes=clean(tuple(report.notes)),
        id=report.id,
        evalset_id=clean(report.evalset_id),
        at=report.at,
    )


def _result(result: CaseResult, hand: Redactor) -> CaseResult:
    clean = hand.value
    blamed = result.blame
    return replace(
        result,
        case_id=clean(result.case_id),
        name=clean(result.name),
        tags=clean(tuple(map(str, result.tags))),
        scores={clean(name): _outcome(found, hand) for name, found in result.scores.items()},
        error=clean(result.error),
        models=clean(dict(result.models)),
        user_models=clean(dict(result.user_models)),
        notes=clean(tuple(result.notes)),
        ledger=None if result.ledger is None else hand.ledger(result.ledger),
        asked=_asked(result, hand),
        steps=clean(tuple(result.steps)),
        blamed=clean(blamed),
    )


def _outcome(outcome: Outcome, hand: Redactor) -> Outcome:
    if not isinstance(outcome, Score):
        return hand.value(outcome)
    # An object says its secrets in its repr, so it is told before it is looked at.
    told = replace(
        outcome,
        evidence=tuple(map(str, outcome.evidence)),
        details=_told(outcome.details),
        measured=_told(outcome.measured),
    )
    return hand.value(told)


def _told(value: Any) -> Any:
    return value if type(value) in JSON_TYPES - {dict, list} else shown_json(value)


def _asked(result: CaseResult, hand: Redactor) -> Any:
    """The case itself if it holds no secret; else its data without them."""
    if not isinstance(result.asked, Case):
        return hand.value(result.asked)
    try:
        data = result.case
    except BadInput:
        return None  # it cannot even be written down
    clean = hand.value(data)
    return result.asked if clean is data else clean
