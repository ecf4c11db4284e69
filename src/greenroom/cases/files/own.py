"""Our own shape: everything a case can say that is data, with a version."""

from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.data import metric_data, written_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.fields import Gathering
from greenroom.cases.files.ids import checked_id
from greenroom.cases.files.shapes import OWN, Shape
from greenroom.cases.liveness import is_code
from greenroom.cases.places import at, mapping_at, shown, wrong
from greenroom.cases.reading import case_from, extra_of, metrics_from
from greenroom.ledger.plain import Json, is_array, is_object, plain

VERSION = 1
SET_FIELDS = (
    "version",
    "id",
    "name",
    "description",
    "metadata",
    "metrics",
    "trials",
    "cases",
    "extra",
)


def _recognises(data: Json) -> str | None:
    if not is_object(data) or "cases" not in data:
        return None
    if "version" in data:
        return "it has `version` and `cases`"
    cases = data["cases"]
    foreign = is_array(cases) and any(is_object(case) and "input" in case for case in cases)
    return None if foreign or "num_runs" in data or "thresholds" in data else "it has `cases`"


def _read(data: Json, stem: str) -> EvalSet:
    gathering = Gathering()
    given = mapping_at("", data, SET_FIELDS)
    extra = gathering.part("", lambda: extra_of(given, SET_FIELDS, ""), {})
    if given.get("version") != VERSION:
        told = f"version {shown(given.get('version'))}; this reads {VERSION}"
        raise wrong("version", told, f"Write `version: {VERSION}`")
    listed = given.get("cases")
    if not is_array(listed):
        raise wrong("cases", f"{shown(listed)} should be a list")
    cases = gathering.each(listed, "cases", read_case)
    gathering.unique(_named(listed))
    fields: dict[str, Any] = {
        name: gathering.part(name, lambda name=name: _typed(given, name), None)
        for name in ("name", "description", "metadata", "trials")
    }
    metrics = gathering.part("metrics", lambda: _metrics(given), [])
    set_id = gathering.part("id", lambda: checked_id(_typed(given, "id") or stem, "id"), "")
    gathering.settle()
    return EvalSet(set_id, cases, metrics=metrics or (), extra=extra or None, **fields)


def read_case(data: Json, place: str) -> Case:
    """One case, as `cases` lists them."""
    case = case_from(data, place)
    checked_id(case.id, at(place, "id"))
    return case


def _named(listed: list[Json]) -> list[tuple[str, str]]:
    """The ids that are given, each with its place."""
    ids = [case.get("id") if is_object(case) else None for case in listed]
    return [(one, at("cases", i, "id")) for i, one in enumerate(ids) if isinstance(one, str)]


_USUAL: dict[str, tuple[type, str, Any]] = {
    "id": (str, "a text", ""),
    "name": (str, "a text", ""),
    "description": (str, "a text", ""),
    "metadata": (dict, "a mapping", {}),
    "trials": (int, "a whole number", 1),
}


def _typed(given: Any, name: str) -> Any:
    kind, words, usual = _USUAL[name]
    value = given.get(name, usual)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise wrong(name, f"{shown(value)} should be {words}")
    if name == "trials" and value < 1:
        raise wrong(name, f"{value} should be 1 or more")
    return value


def _metrics(given: Any) -> list[Any]:
    listed = given.get("metrics", [])
    if not is_array(listed):
        raise wrong("metrics", f"{shown(listed)} should be a list")
    return list(metrics_from(listed, "metrics"))


def evalset_data(evalset: EvalSet) -> dict[str, Json]:
    """The eval set as our own shape; what is not set is left out, and so is what is code."""
    data: dict[str, Json] = {"version": VERSION, "id": evalset.id}
    if evalset.name:
        data["name"] = evalset.name
    if evalset.description:
        data["description"] = evalset.description
    if evalset.metadata:
        data["metadata"] = plain(evalset.metadata, "metadata")
    metrics = [metric_data(metric) for metric in evalset.metrics]
    if kept := [metric for metric in metrics if not is_code(metric)]:
        data["metrics"] = kept
    if evalset.trials != 1:
        data["trials"] = evalset.trials
    if evalset.extra:
        data["extra"] = plain(evalset.extra, "extra")
    data["cases"] = [written_data(case) for case in evalset.cases]
    return data


SHAPES = (
    Shape(OWN, "a mapping with `version` and a list `cases`", _recognises, _read, evalset_data),
)
