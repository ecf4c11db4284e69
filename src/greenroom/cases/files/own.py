"""Greenroom's own shape: everything in a case that is data, with a version."""

from collections.abc import Iterator, Sequence

from greenroom.cases.case import Case
from greenroom.cases.data import metric_data, written_data
from greenroom.cases.evalset import MOST_TRIALS, EvalSet
from greenroom.cases.fields import Fields, ProblemList, refuse_silence, silence
from greenroom.cases.files.shapes import OWN, Shape
from greenroom.cases.liveness import is_code
from greenroom.cases.names import checked_id
from greenroom.cases.parts import MetricLike
from greenroom.cases.problems import at, mapping_at, shown, wrong
from greenroom.cases.reader import CASE_FIELDS, EXPECT_FIELDS, case_from, extra_from, metrics_from
from greenroom.cases.wire import RecordReader, RecordWriter
from greenroom.ledger.plain import Json, is_array, is_object

VERSION = 1
_FILL_IN = "Write what is expected, or leave the field out"
_VOICES = ("says", "attachments", "turns", "user")


def _recognises(data: Json) -> str | None:
    if not is_object(data) or "cases" not in data:
        return None
    if "version" in data:
        return "it has `version` and `cases`"
    cases = data["cases"]
    foreign = is_array(cases) and any(is_object(case) and "input" in case for case in cases)
    return None if foreign or "num_runs" in data or "thresholds" in data else "it has `cases`"


def _read(data: Json, stem: str) -> EvalSet:
    fields = Fields(data, "", ("version", *_READER.names, "cases", "$schema"), camel=False)
    fields.take("$schema")  # for editors only
    version = fields.take("version")
    if type(version) is not int or version != VERSION:  # true and 1.0 are equal to 1
        given = f"version {shown(version)}" if version is not None else "it has no `version`"
        why = f"{given}; use version {VERSION}"
        refusal = wrong(fields.at("version"), why, "Write", example={"version": VERSION})
        fields.problems.add(refusal, "version")
    listed, place = fields.cases("cases"), fields.at("cases")
    for i, case in enumerate(listed):
        for blank in _blank_expectations(case, at(place, i)):
            fields.problems.add(wrong(blank, "null expects nothing", _FILL_IN), blank)
    cases = fields.problems.each(listed, place, read_case)
    ids = [case.get("id") if is_object(case) else None for case in listed]
    fields.problems.unique(
        [(one, at(place, i, "id")) for i, one in enumerate(ids) if isinstance(one, str)]
    )
    given = _READER.read(fields)
    given["id"] = given["id"] or stem
    fields.problems.part("id", lambda: checked_id(given["id"], "id"), "")
    fields.settle()
    return EvalSet(cases=cases, **given)


def read_case(data: Json, place: str) -> Case:
    """One case, as `cases` lists them."""
    problems = ProblemList()
    given = data.get("id") if is_object(data) else None
    if isinstance(given, str) and given.strip():
        problems.part(at(place, "id"), lambda: checked_id(given, at(place, "id")), "")
    case = problems.part(
        place, lambda: case_from(mapping_at(place, data, CASE_FIELDS), place), None
    )
    if case is not None:
        problems.part(place, lambda: refuse_silence(case, place), None)
    elif _has_no_voice(data) and not any("'says'" in found.fix for found in problems.found):
        problems.add(silence(place), place)
    problems.settle()
    assert case is not None  # otherwise a problem would have been raised
    return case


def _blank_expectations(case: Json, place: str) -> Iterator[str]:
    """The places where an expectation is null: in YAML, `contains:` with nothing after it."""
    if not is_object(case):
        return
    turns = case.get("turns")
    listed = enumerate(turns) if is_array(turns) else ()
    for where, turn in [(place, case), *((at(place, "turns", i), turn) for i, turn in listed)]:
        if not is_object(turn) or "expect" not in turn:
            continue
        expect, here = turn["expect"], at(where, "expect")
        if expect is None:
            yield here
        elif is_object(expect):
            yield from (at(here, name) for name, value in expect.items() if value is None)


def _has_no_voice(data: Json) -> bool:
    return is_object(data) and all(data.get(name) in (None, "", []) for name in _VOICES)


def trials_from(value: Json, place: str) -> int:
    """How often each case is run."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(place, f"{shown(value)} should be a whole number")
    if value < 1:
        raise wrong(place, f"{value} should be 1 or more")
    if value > MOST_TRIALS:
        raise wrong(place, f"{shown(value)} are too many; {MOST_TRIALS:,} are the most")
    return value


def _write_metrics(metrics: Sequence[MetricLike], _where: str) -> Json:
    written = [metric_data(metric) for metric in metrics]
    return [metric for metric in written if not is_code(metric)] or None


_ELSEWHERE = ("cases", "shape", "usual")
_READER = RecordReader(
    EvalSet, {"metrics": metrics_from, "trials": trials_from, "extra": extra_from}, _ELSEWHERE
)
_WRITER = RecordWriter(EvalSet, {"metrics": _write_metrics}, _ELSEWHERE)


def evalset_data(evalset: EvalSet) -> dict[str, Json]:
    """The eval set as our own shape; without unset fields and code."""
    cases: list[Json] = [written_data(case) for case in evalset.cases]
    return {"version": VERSION, **_WRITER.write(evalset, "the eval set"), "cases": cases}


SHAPE = Shape(
    OWN,
    "a mapping with `version` and a list `cases`",
    _recognises,
    _read,
    evalset_data,
    names=("version", "cases", *_READER.names, *CASE_FIELDS, *EXPECT_FIELDS),
)
