"""Results as JSON, declared: what a store keeps of a trial, and what a report file holds.

Each field is written from the attribute of the same name, so a field to be kept is declared only here.
What is read is checked against the same declarations. A field that files of
earlier versions do not have needs a default.
"""

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Annotated, Any, Self, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.cases.scores import NotApplicable, Score, Unmeasured
from greenroom.errors import BadFile, Phase
from greenroom.ledger.events import EndReason
from greenroom.ledger.messages import Usage
from greenroom.ledger.plain import JSON_TYPES, Json, plain, short_repr
from greenroom.ledger.questions import Spending
from greenroom.ledger.trajectory import Step, StepType
from greenroom.results.blame import Blame, Whom
from greenroom.results.endings import Problem, Status
from greenroom.results.report import CasePlace
from greenroom.results.summary import MetricSummary, Summary

Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
Texts = tuple[str, ...]
W = TypeVar("W", bound="Wire")

_LONGEST_SHOWN = 300
_LEAVES = JSON_TYPES - {dict, list}


class Wire(Struct, forbid_unknown_fields=True):
    """A JSON object with these fields and no others."""

    @classmethod
    def of(cls, source: object, **others: object) -> Self:
        """The data of `source`: its attributes by the names of the fields, and `others`."""
        for name in cls.__struct_fields__:
            if name not in others:
                value = getattr(source, name)
                others[name] = value if type(value) in _LEAVES else to_wire(value)
        return cls(**others)


class UsageData(Wire):
    """Tokens that a model read and wrote."""

    input: Count
    output: Count


class SpendingData(Wire):
    """What models used and cost; null is unknown, and `known_cost` is then a lower bound."""

    usage: UsageData | None
    cost: Amount | None
    models: dict[str, Count]
    known_cost: Amount


class ProblemData(Wire):
    """What broke, and in which phase."""

    phase: Phase
    type: str
    message: str


class BlameData(Wire):
    """Who is to blame, and what shows it."""

    whom: Whom
    evidence: Texts


class ScoreData(Wire, rename={"value": "score"}):
    """A metric that gave a score."""

    value: float
    passed: bool
    threshold: float | None
    reason: str
    evidence: Texts
    details: Json
    measured: Json
    name: str

    @classmethod
    def of(cls, source: Any, **_: Any) -> Self:
        """A score, whose details may hold any objects."""
        bar = source.threshold
        return super().of(
            source,
            threshold=bar if bar is not None and isfinite(bar) else None,
            evidence=[str(seen) for seen in source.evidence],
            details=shown_json(source.details),
            measured=shown_json(source.measured),
        )


class NotApplicableData(Wire, rename={"why": "not_applicable"}):
    """A metric that does not apply to the case."""

    why: str


class UnmeasuredData(Wire, rename={"why": "unmeasured"}):
    """A metric that could not measure."""

    why: str
    phase: Phase


class StepData(Wire):
    """One step of a trajectory."""

    type: StepType
    name: str
    args: Json
    at: float
    seconds: Amount
    details: Json

    @classmethod
    def of(cls, source: Any, **_: object) -> Self:
        """A step, whose values may be any objects."""
        args, details = shown_json(source.args), shown_json(source.details)
        return super().of(source, args=args, details=details)


class VerdictData(Wire):
    """A trial's verdict, time and cost, without the trial itself."""

    case_id: str
    name: str
    tags: Texts
    trial: Count
    status: Status
    scores: dict[str, Json]
    """Each as `ScoreData`, `NotApplicableData` or `UnmeasuredData`; each has a field that the others lack."""
    ended: EndReason | None
    error: ProblemData | None
    blame: BlameData | None
    turns: Count
    seconds: Amount
    usage: UsageData | None
    cost: Amount | None
    user_usage: UsageData | None
    user_cost: Amount | None
    judge_usage: UsageData | None
    judge_cost: Amount | None
    models: dict[str, Count]
    user_models: dict[str, Count]
    judge_models: dict[str, Count]
    notes: Texts
    fixed: bool = False
    nodes: dict[str, SpendingData] | UnsetType = UNSET
    replaced: dict[str, str] | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET
    trace_link: str | UnsetType = UNSET
    recorded_at: Amount | UnsetType = UNSET
    """For a replay: when its answers were recorded."""
    earlier_costs: dict[str, Amount | None] | UnsetType = UNSET
    """What attempts at the trial that broke, and ran again, cost."""

    @classmethod
    def of(cls, source: Any, **others: Any) -> Self:
        """A result; what does not apply to it is left out: nodes, a trace, hooks that replaced, a replay,
        attempts that ran again."""
        for name in ("nodes", "recorded_at"):
            if getattr(source, name) is None:
                others[name] = UNSET
        others["replaced"] = dict(source.replaced) or UNSET
        others["earlier_costs"] = dict(source.earlier_costs) or UNSET
        others |= {n: UNSET for n in ("trace_id", "trace_link") if not getattr(source, n)}
        return super().of(source, **others)


class StoredVerdict(VerdictData):
    """A verdict as a store keeps it, with the case if no ledger holds it."""

    case: dict[str, Json] | None = None


class ResultData(VerdictData, kw_only=True):
    """One result in a report file: its verdict, its case, and all that was kept of its trial."""

    responses: Any = ()
    trajectory: tuple[StepData, ...]
    case: dict[str, Json] | None


class CountsData(Wire):
    """How many results ended in each status."""

    total: int
    passed: int
    failed: int
    errors: int
    terminated: int
    skipped: int


class MetricData(Wire):
    """One metric over all cases."""

    measured: int
    passed: int
    failed: int
    not_applicable: int
    unmeasured: int
    mean: float | None
    min: float | None
    max: float | None


class SummaryData(CountsData):
    """The totals of a report; null is unknown."""

    evaluated: int
    pass_rate: float | None
    interval: Json
    metrics: dict[str, MetricData]
    case_seconds: float
    usage: UsageData | None
    cost: float | None
    user_usage: UsageData | None
    user_cost: float | None
    judge_usage: UsageData | None
    judge_cost: float | None
    models: dict[str, int]
    user_models: dict[str, int]
    judge_models: dict[str, int]
    nodes: dict[str, SpendingData] | UnsetType


class ErrorData(Wire):
    """What broke, and in which trial."""

    case_id: str
    trial: int
    phase: Phase
    type: str
    message: str


class MissedData(Wire):
    """One reason why the quality gate fails."""

    kind: str
    why: str


class GateData(Wire):
    """The quality gate's decision on a report."""

    passed: bool
    exit_code: int
    missed: tuple[MissedData, ...]


class PlaceData(Wire):
    """Where a case is from."""

    evalset: str = ""
    file: str = ""
    line: int | None = None


class ReportData(Wire, kw_only=True):
    """A report file. Totals are written for other programs; Greenroom never reads them."""

    version: int
    kind: str
    id: str
    evalset_id: str
    name: str
    at: float | None
    seconds: Amount
    notes: Texts
    failures_only: bool
    gate: Json = None
    summary: Json = None
    errors: Json = None
    results: tuple[ResultData, ...]
    adaptive: bool = False
    parts: tuple[tuple[str, ...], ...] | UnsetType = UNSET
    against: str | None = None
    confirmed: tuple[ResultData, ...] = ()
    sources: dict[str, PlaceData] | UnsetType = UNSET
    measures: dict[str, str] | UnsetType = UNSET
    rescored_from: str | UnsetType = UNSET


_WIRES: Mapping[type, type[Wire]] = {
    Blame: BlameData,
    CasePlace: PlaceData,
    MetricSummary: MetricData,
    NotApplicable: NotApplicableData,
    Problem: ProblemData,
    Score: ScoreData,
    Spending: SpendingData,
    Step: StepData,
    Summary: CountsData,
    Unmeasured: UnmeasuredData,
    Usage: UsageData,
}


def to_wire(value: object) -> Any:
    """A value as its type declared here; a type without a declaration stays unchanged."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    if (wire := _WIRES.get(kind)) is not None:
        return wire.of(value)
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, Mapping):
        inside = cast("Mapping[str, object]", value)
        return {name: to_wire(item) for name, item in inside.items()}
    return value


def to_data(wire: Wire) -> dict[str, Json]:
    """A declared value as dicts and lists."""
    return msgspec.to_builtins(wire, enc_hook=to_json_types)


def to_json_types(value: object) -> Json:
    """What an encoder cannot write by itself: declared values, text that is JSON already, foreign objects."""
    if isinstance(value, Wire):
        return to_data(value)
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else shown_json(value)


def from_data(data: Json, wire: type[W], where: object) -> W:
    """JSON as its declared type; BadFile names the place of what does not fit."""
    try:
        return msgspec.convert(data, wire)
    except msgspec.ValidationError as error:
        why, _, path = str(error).partition(" - at `$")
        place = path.removesuffix("`").removeprefix(".")
        said = f"{place}{_value_at(data, place)}: " if place else ""
        raise BadFile(f"{where}: {said}{why[:1].lower()}{why[1:]}.") from error
    except UnicodeEncodeError as error:
        raise BadFile(f"{where}: {error.object!r} is not a known name or field.") from error


def _value_at(data: Any, place: str) -> str:
    """The value at a place such as `results[0].status`, for a message; empty for one in a mapping, whose key
    msgspec does not name: `results[0].nodes[...].cost`."""
    if "[...]" in place:
        return ""
    for name, number in re.findall(r"([^.\[\]]+)(?=[.\[]|$)|\[(\d+)\]", place):
        data = data[int(number) if number else name]
    return f" is {short_repr(data)}"


def shown_json(value: object, depth: int = 0) -> Json:
    """`value` as JSON; an object that is not JSON becomes text, so that no result is lost."""
    try:
        return plain(value)
    except Exception:  # noqa: BLE001 - an author's object, which may not even have a repr
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
    except Exception as error:  # noqa: BLE001 - an author's object
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
