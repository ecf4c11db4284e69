"""A report without secrets, as every renderer and every file gets to see it."""

from dataclasses import replace
from typing import Any

from greenroom.cases.scores import Outcome, Score
from greenroom.errors import BadInput
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import JSON_TYPES
from greenroom.ledger.records import record
from greenroom.ledger.redaction import Redactor, clean_id, redactor
from greenroom.results.data import shown_json
from greenroom.results.report import Report
from greenroom.results.result import CaseResult

_LEAVES = JSON_TYPES - {dict, list}


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
        adaptive=report.adaptive,
        confirmed=tuple([_result(result, hand) for result in report.confirmed]),
        against=report.against,
    )


def _result(result: CaseResult, hand: Redactor) -> CaseResult:
    bare = replace(
        result,
        tags=tuple(map(str, result.tags)),
        scores={name: _told(outcome) for name, outcome in result.scores.items()},
        blamed=result.blame,
        kept=None,
        asked=None,
    )
    ledger = result.ledger
    events = None if ledger is None else list(ledger)
    asked = _asked(result)
    # All at once: most results hold no secret, and are found so in one go.
    clean, clean_events, clean_asked = hand.value((bare, events, asked))
    kept = result.kept if clean_events is events else Ledger(clean_events or ())
    asked_for = result.asked if asked is not None and clean_asked is asked else clean_asked
    case_id = clean_id(result.case_id, clean.case_id)
    return replace(clean, case_id=case_id, kept=kept, asked=asked_for)


def _told(outcome: Outcome) -> Outcome:
    """An object says its secrets in its repr, so it is told before it is looked at."""
    if not isinstance(outcome, Score):
        return outcome
    return replace(
        outcome,
        evidence=tuple(map(str, outcome.evidence)),
        details=_json(outcome.details),
        measured=_json(outcome.measured),
    )


def _json(value: Any) -> Any:
    return value if type(value) in _LEAVES else shown_json(value)


def _asked(result: CaseResult) -> Any:
    """The case as data, as far as it can be written down."""
    try:
        return result.case
    except BadInput:
        return None
