"""Reports without secrets, as every renderer and every file gets them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from greenroom.cases.scores import Outcome, Score
from greenroom.errors import BadInput
from greenroom.ledger.codec import encoded_lines, json_of
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import JSON_TYPES, Json
from greenroom.ledger.redaction import Redactor, Sieve, clean_id, clean_ids, redactor
from greenroom.results.facts import Facts
from greenroom.results.gate import Decision
from greenroom.results.report import Report
from greenroom.results.result import CaseResult, LedgerSource
from greenroom.results.stored_results import ReadResults
from greenroom.results.wire import shown_json

T = TypeVar("T")

_ROOM = 4_000_000
"""Bytes of ledgers that are kept in memory at a time, as JSON; as objects they take several times as much."""
_TOGETHER = 100
"""How many results are searched together, which takes a sixth of the time."""
_LEAVES = JSON_TYPES - {dict, list}


@dataclass(frozen=True, slots=True, repr=False)
class Redacted(Report):
    """A report without secrets, which need not be searched again."""


def redacted(report: Report, by: Redactor | None = None) -> Redacted:
    """The report with every secret replaced; without `by`, those that this process knows of.

    Ledgers that are kept elsewhere are searched when they are opened.
    """
    if isinstance(report, Redacted) and by is None:
        return report
    by = by or redactor()
    clean, ledgers = by.value, _OpenLedgers(by)
    ids = clean_ids([*report.sources, *(case_id for part in report.parts for case_id in part)], by)
    return Redacted(
        _CleanResults(report.results, ledgers)
        if isinstance(report.results, ReadResults)
        else [_result(result, ledgers) for result in report.results],
        name=clean(report.name),
        seconds=report.seconds,
        notes=clean(tuple(report.notes)),
        id=report.id,
        evalset_id=clean(report.evalset_id),
        at=report.at,
        adaptive=report.adaptive,
        parts=tuple([tuple([ids[case_id] for case_id in part]) for part in report.parts]),
        confirmed=tuple([_result(result, ledgers) for result in report.confirmed]),
        against=report.against,
        sources={ids[case_id]: clean(place) for case_id, place in report.sources.items()},
        measures={by.text(name): digest for name, digest in report.measures.items()},
        rescored_from=report.rescored_from,
    )


def redacted_decision(decision: Decision | None) -> Decision | None:
    """The gate's decision with every secret replaced; the comparison behind it stays unchanged."""
    if decision is None:
        return None
    return Decision(redactor().value(tuple(decision.missed)), decision.comparison)


class _OpenLedgers:
    """The ledgers of a report that are kept open: the first ones, as many as there is room for, and the last.

    A renderer asks several things of a case before it moves on to the next, and the cases that one
    renderer shows because they failed another shows again.
    """

    def __init__(self, by: Redactor) -> None:
        self._by = by
        self._sieve = Sieve(by)
        self._room = _ROOM
        self._last: _Opened | None = None

    def clean(self, value: T, data: bytes) -> T:
        """`value` without secrets; `data` is the same as JSON. Most hold none, which a quick check shows."""
        return value if self._sieve.is_clean(data) else self._by.value(value)

    def clean_ledger(self, ledger: Ledger) -> Ledger:
        """The ledger without secrets; itself if it holds none."""
        events = list(ledger)
        clean = self.clean(events, encoded_lines(events))
        return ledger if clean is events else Ledger(clean)

    def keep(self, opened: "_Opened") -> None:
        """Make room for a ledger that has been opened."""
        if opened.size <= self._room:
            self._room -= opened.size
            return
        if self._last is not None:
            self._last.close()
        self._last = opened


class _Opened:
    """A ledger that is kept elsewhere, without secrets; it is read once, while there is room."""

    __slots__ = ("_all", "_ledger", "_source")

    def __init__(self, source: LedgerSource, all_open: _OpenLedgers) -> None:
        self._source, self._all = source, all_open
        self._ledger: Ledger | None = None

    @property
    def size(self) -> int:
        """About how many bytes it takes as JSON."""
        return self._source.size

    def load(self) -> Ledger:
        """The ledger without secrets."""
        if (ledger := self._ledger) is None:
            ledger = self._ledger = self._all.clean_ledger(self._source.load())
            self._all.keep(self)
        return ledger

    def close(self) -> None:
        """Drop it from memory; it will be read again."""
        self._ledger = None


class _CleanResults(ReadResults):
    """Results that are read as they are asked for, without secrets."""

    def __init__(self, source: ReadResults, ledgers: _OpenLedgers) -> None:
        self._source, self._ledgers = source, ledgers
        self._own: dict[str, str] = {}
        """The case ids of the source, by their ids without secrets where the two differ."""

    def __len__(self) -> int:
        return len(self._source)

    def read(self, first: int = 0, count: int | None = None) -> Iterator[CaseResult]:
        """This many results, from this one on."""
        return (_result(result, self._ledgers) for result in self._source.read(first, count))

    def facts(self) -> Iterator[Facts]:
        """The facts of all results."""
        waiting = self._source.facts()
        while some := list(islice(waiting, _TOGETHER)):
            # A secret that is not in all of them together is in none of them.
            clean = self._ledgers.clean(some, json_of(some, default=repr))
            yield from some if clean is some else map(self._clean_facts, some)

    def _clean_facts(self, facts: Facts) -> Facts:
        if isinstance(facts, CaseResult):
            clean = _result(facts, self._ledgers)
        elif (clean := self._ledgers.clean(facts, json_of(facts, default=repr))) is not facts:
            clean.case_id = clean_id(facts.case_id, clean.case_id)
        if clean.case_id != facts.case_id:
            self._own[clean.case_id] = facts.case_id
        return clean

    def of_case(self, case_id: str) -> list[CaseResult]:
        """The trials of one case."""
        found = self._source.of_case(self._own.get(case_id, case_id))
        return [_result(result, self._ledgers) for result in found]


def _result(result: CaseResult, ledgers: _OpenLedgers) -> CaseResult:
    kept = result.kept
    asked = None if result.asked is None else _asked(result)
    bare = replace(
        result,
        tags=tuple(map(str, result.tags)),
        scores={name: _as_text(outcome) for name, outcome in result.scores.items()},
        blamed=result.blame,
        kept=None,
        asked=asked,
    )
    events = list(kept) if isinstance(kept, Ledger) else None
    # All at once: most results hold no secret, and one search shows that.
    whole = (bare, events)
    clean, clean_events = ledgers.clean(whole, json_of(whole, default=repr))
    if kept is not None and not isinstance(kept, Ledger):
        shown = _Opened(kept, ledgers)
    else:
        shown = kept if clean_events is events else Ledger(clean_events or ())
    asked_for = result.asked if asked is not None and clean.asked is asked else clean.asked
    case_id = clean_id(result.case_id, clean.case_id)
    return replace(clean, case_id=case_id, kept=shown, asked=asked_for)


def _as_text(outcome: Outcome) -> Outcome:
    """An object shows its secrets in its repr, so it becomes text before it is searched."""
    if not isinstance(outcome, Score):
        return outcome
    return replace(
        outcome,
        evidence=tuple(map(str, outcome.evidence)),
        details=_json(outcome.details),
        measured=_json(outcome.measured),
    )


def _json(value: object) -> object:
    return value if type(value) in _LEAVES else shown_json(value)


def _asked(result: CaseResult) -> Mapping[str, Json] | None:
    """The case as data, as far as it can be written down."""
    try:
        return result.case
    except BadInput:
        return None
