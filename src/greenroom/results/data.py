"""Results written as JSON and read back; `greenroom.results.wire` declares the format.

Everything that is read is checked; an error names the place of what is wrong.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadFile, BadInput, BadMetric
from greenroom.ledger.events import LIMITS
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import Json, is_object, plain, short_repr
from greenroom.ledger.questions import Spending
from greenroom.ledger.trajectory import Step
from greenroom.results.blame import Blame
from greenroom.results.endings import Problem
from greenroom.results.facts import Facts, TrialFacts
from greenroom.results.gate import Decision
from greenroom.results.report import CasePlace, Report
from greenroom.results.result import CaseResult, LedgerSource, responses_in
from greenroom.results.totals import by_case
from greenroom.results.wire import (
    BlameData,
    CountsData,
    ErrorData,
    GateData,
    MissedData,
    NotApplicableData,
    PlaceData,
    ProblemData,
    ReportData,
    ResultData,
    ScoreData,
    SpendingData,
    StepData,
    StoredVerdict,
    SummaryData,
    UnmeasuredData,
    UsageData,
    VerdictData,
    from_data,
    to_data,
    to_wire,
)

VERSION = 1
KIND = "report"

_MEASURED_AGAIN = re.compile(r"measured again from report (\S+), without the agent")
_VERDICT = msgspec.json.Decoder(StoredVerdict)
_FACTS = msgspec.json.Decoder(TrialFacts)
_TYPES: Mapping[type, Callable[..., object]] = {
    BlameData: Blame,
    NotApplicableData: NotApplicable,
    PlaceData: CasePlace,
    ProblemData: Problem,
    ScoreData: Score,
    SpendingData: Spending,
    StepData: Step,
    UnmeasuredData: Unmeasured,
    UsageData: Usage,
}


# Written


def report_data(report: Report, *, decision: Decision | None = None) -> dict[str, Json]:
    """The report as JSON."""
    listed = [result_wire(result) for result in report.results]
    return to_data(report_wire(report, listed, result_wire, decision=decision))


def report_wire(
    report: Report,
    results: object,
    each: Callable[[CaseResult], object],
    failures_only: bool = False,
    decision: Decision | None = None,
) -> ReportData:
    """The report as its declared type, with these `results`; `each` converts a result that ran again."""
    errors = [_error(trial) for trials in by_case(report) for trial in trials if trial.error]
    counts, interval, nodes = report.summary, report.interval, report.nodes
    ends = None if interval is None else {"low": interval.low, "high": interval.high, "level": 0.95}
    return ReportData.of(
        report,
        version=VERSION,
        kind=KIND,
        failures_only=failures_only,
        gate=gate_data(decision),
        summary=SummaryData.of(
            report,
            **to_data(CountsData.of(counts)),
            evaluated=counts.evaluated,
            interval=ends,
            case_seconds=report.totals.seconds,
            nodes=to_wire(nodes) if any(nodes) else UNSET,
        ),
        errors=errors,
        results=results,
        confirmed=[each(result) for result in report.confirmed],
        sources=to_wire(dict(report.sources)) if report.sources else UNSET,
        measures=dict(report.measures) or UNSET,
        parts=report.parts or UNSET,
        rescored_from=report.rescored_from or UNSET,
    )


def gate_data(decision: Decision | None) -> Json:
    """The quality gate's decision as JSON; None if there was none."""
    if decision is None:
        return None
    missed = [MissedData.of(one) for one in decision.missed]
    return to_data(GateData.of(decision, missed=missed))


def _error(result: Facts) -> ErrorData:
    return ErrorData.of(result.error, case_id=result.case_id, trial=result.trial)


def result_wire(result: CaseResult) -> ResultData:
    """One result with the case itself and all that was kept of its trial."""
    trajectory = result.trajectory
    responses = responses_in(trajectory)
    steps = to_wire(trajectory)
    return ResultData.of(result, responses=responses, trajectory=steps, case=asked_data(result))


def verdict_data(result: CaseResult) -> dict[str, Json]:
    """A trial's verdict, time and cost, without the trial itself."""
    return to_data(VerdictData.of(result))


def outcome_data(outcome: Outcome) -> dict[str, Json]:
    """An outcome as JSON: a score with its number, the others with their reason."""
    return to_data(to_wire(outcome))


def problem_data(problem: Problem | None) -> dict[str, Json] | None:
    """What broke, as JSON."""
    return None if problem is None else to_data(ProblemData.of(problem))


def asked_data(result: CaseResult) -> Json:
    """The case itself as JSON; None if it cannot be written as JSON."""
    try:
        return plain(result.case, f"case {result.case_id!r}")
    except BadInput:
        # A case that is not JSON was not run either; its error says why.
        return None


# Read


def report_from(data: Json, where: str) -> Report:
    """The report in `data`. What can be computed from its results is computed, not read."""
    header = data if is_object(data) else {}
    kind, version = header.get("kind"), header.get("version")
    if kind != KIND:
        found = f"its `kind` is {short_repr(kind)}" if kind else "it has no `kind`"
        raise BadFile(
            f"{where} is not a report: {found}, but a report has {KIND!r}. Reports are written by "
            f"`greenroom eval run -f json -o FILE` and report.save(...)."
        )
    if type(version) is not int or version != VERSION:  # true and 1.0 are equal to 1
        raise BadFile(
            f"{where} is a report of version {short_repr(version)}, which is not supported; use version {VERSION}."
        )
    found = from_data(data, ReportData, where)
    if found.failures_only:
        raise BadFile(
            f"{where} holds failures only, so its counts cannot be restored. Save the whole "
            f"report: report.save(path)."
        )
    results = [_listed(result, f"{where}: results[{n}]") for n, result in enumerate(found.results)]
    _check_whole(results, found.summary, where)
    return Report(
        results,
        name=found.name,
        seconds=found.seconds,
        notes=found.notes,
        id=found.id,
        evalset_id=found.evalset_id,
        at=found.at,
        adaptive=found.adaptive,
        parts=() if isinstance(found.parts, UnsetType) else found.parts,
        against=found.against,
        confirmed=tuple(
            [
                _listed(result, f"{where}: confirmed[{n}]")
                for n, result in enumerate(found.confirmed)
            ]
        ),
        sources={} if isinstance(found.sources, UnsetType) else _places(found.sources),
        measures={} if isinstance(found.measures, UnsetType) else found.measures,
        rescored_from=_rescored_from(found),
    )


def _rescored_from(found: ReportData) -> str:
    """The run whose trials a report measures again; files of earlier versions say so in a note only."""
    if not isinstance(found.rescored_from, UnsetType):
        return found.rescored_from
    notes = (_MEASURED_AGAIN.fullmatch(note) for note in found.notes)
    return next((note[1] for note in notes if note is not None), "")


def _check_whole(results: Sequence[CaseResult], summary: Json, where: str) -> None:
    """Refuse a report in which trials are missing or given twice: it would be counted as if it were complete."""
    total = summary.get("total") if is_object(summary) else None
    if total != len(results):
        counted = "nothing" if total is None else f"{short_repr(total)} results"
        raise BadFile(
            f"{where}: its summary counts {counted}, but it holds {len(results)}. Save the whole report "
            f"again: report.save(path)."
        )
    twice = [
        one for one, often in Counter((r.case_id, r.trial) for r in results).items() if often > 1
    ]
    for case_id, trial in twice[:1]:
        raise BadFile(f"{where}: it holds case {case_id!r}, trial {trial}, more than once.")


def _places(found: Mapping[str, PlaceData]) -> dict[str, CasePlace]:
    return {case_id: _read(place) for case_id, place in found.items()}


def _listed(found: ResultData, where: str) -> CaseResult:
    steps = [_read(step) for step in found.trajectory]
    result = _result(found, where, asked=found.case, steps=steps)
    if why := _contradiction(result):
        raise BadFile(f"{where}: its status is {result.status!r}, but {why}. Score the run again.")
    return result


def _contradiction(result: CaseResult) -> str:
    """What speaks against a verdict; empty if nothing does. A baseline that failed hides what got worse, and an
    error is in no pass rate."""
    if result.status == "error" and result.error is None:
        return "it does not say what broke"
    if result.status == "skipped":
        # One left out because of its error keeps the scores beside what broke.
        return "it has scores, and nothing broke" if result.scores and not result.error else ""
    if result.ended == "error" and result.status != "error":
        return "it ended in an error"
    if result.status == "failed":
        return _doubt_in_failure(result)
    if result.passed:
        for name, outcome in result.scores.items():
            if outcome.passed is False or isinstance(outcome, Unmeasured):
                return f"{name!r} did not pass"
        if result.error is not None:
            return "it ended in an error"
        if result.ended in LIMITS:
            return "it was stopped at a limit"
        return "" if result.measured else "no metric gave a score"
    if result.status == "terminated" and result.ended not in (None, *LIMITS):
        return "it was not stopped at a limit"
    return ""


def _doubt_in_failure(result: CaseResult) -> str:
    """What speaks against a failure. A report of another tool may have no scores."""
    if result.error is not None:
        return "something broke"
    for name, outcome in result.scores.items():
        if isinstance(outcome, Unmeasured):
            return f"{name!r} was not measured"
    applied = [one for one in result.scores.values() if not isinstance(one, NotApplicable)]
    if result.scores and not applied:
        return "no metric gave a score"
    if result.scores and all(one.passed for one in applied):
        return "every score passed"
    return ""


def verdict_from(
    data: Json, where: object, kept: LedgerSource | None, asks: str = ""
) -> CaseResult:
    """The result whose verdict is in `data`; its ledger is kept elsewhere, or not at all."""
    return _stored(from_data(data, StoredVerdict, where), where, kept, asks)


def verdict_in(text: str, where: object, kept: LedgerSource | None, asks: str = "") -> CaseResult:
    """The result whose verdict is in this JSON text; ValueError if it is not valid."""
    try:
        found = _VERDICT.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        # Reading it the slow way says what is wrong, and where.
        return verdict_from(json.loads(text), where, kept, asks)
    return _stored(found, where, kept, asks)


def declared_verdict(text: str) -> StoredVerdict:
    """The verdict in this JSON text with each of its outcomes as the type that declares it."""
    found = _VERDICT.decode(text)
    found.scores = {n: cast("Any", _declared(one, n)) for n, one in found.scores.items()}
    return found


def facts_in(text: str, where: object, kept: LedgerSource | None, asks: str = "") -> Facts:
    """The facts in this JSON text, which figures need; the whole result if it is not as declared."""
    try:
        found = _FACTS.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return verdict_in(text, where, kept, asks)
    found.kept, found.asks = kept, asks
    return found


def _stored(
    found: StoredVerdict, where: object, kept: LedgerSource | None, asks: str
) -> CaseResult:
    return _result(found, where, asked=found.case, kept=kept, asks=asks)


def _result(found: VerdictData, where: object, **others: Any) -> CaseResult:
    """The result; what its verdict leaves out has the default value."""
    for name in VerdictData.__struct_fields__:
        if (value := getattr(found, name)) is not UNSET:
            others[name] = _read(value)
    others["blamed"] = others.pop("blame")
    if not isinstance(found.nodes, UnsetType):
        others["nodes"] = {node: _read(spent) for node, spent in found.nodes.items()}
    others["scores"] = {
        name: outcome_from(data, f"{where}.scores.{name}") for name, data in found.scores.items()
    }
    return CaseResult(**others)


def outcome_from(data: Json, where: str) -> Outcome:
    """The outcome in a JSON value."""
    try:
        return _read(_declared(data, where))
    except BadMetric as error:
        raise BadFile(f"{where}: {error}") from error


def _declared(data: Json, where: str) -> ScoreData | NotApplicableData | UnmeasuredData:
    # msgspec distinguishes the types of a union by a tag, which outcomes do not have.
    named = data if is_object(data) else {}
    first = {"not_applicable": NotApplicableData, "unmeasured": UnmeasuredData}
    return from_data(data, next((first[name] for name in first if name in named), ScoreData), where)


def _read(value: Any) -> Any:
    """A declared value as the type it represents; any other unchanged."""
    if (made := _TYPES.get(cast("type[object]", type(value)))) is None:
        return value
    parts = asdict(value)
    return made(
        **{name: _read(part) if type(part) in _TYPES else part for name, part in parts.items()}
    )
