"""Writes eval sets to files: atomically, and nothing is lost silently."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from greenroom.cases.case import MAX_SECONDS, MAX_TURNS
from greenroom.cases.data import live_parts, metric_data, written_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.adk_expect import says_more
from greenroom.cases.files.criteria import by_verdict, measure_all
from greenroom.cases.files.documents import Document, parsed_text
from greenroom.cases.files.originals import says_only_text, settled
from greenroom.cases.files.own import evalset_data
from greenroom.cases.files.shapes import OWN, TABLE, Shape, shape_named
from greenroom.cases.files.tables import csv_text
from greenroom.cases.files.yaml_text import yaml_text
from greenroom.cases.liveness import is_code
from greenroom.cases.merged import measured_by
from greenroom.cases.problems import at
from greenroom.cases.suffixes import SUFFIXES, YAML
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.blobs import keep_beside
from greenroom.ledger.plain import Json, as_array, as_object, is_array, is_object, plain
from greenroom.ledger.whole_files import put_whole

_SHOWN = 20


def write_evalset(
    evalset: EvalSet, path: str | Path, *, shape: str | None = None, lossy: bool = False
) -> None:
    """Write an eval set in Greenroom's own shape, or in the named one.

    Code, and whatever the shape cannot hold, is refused with a list; `lossy` leaves it out.
    """
    target = Path(path)
    text = evalset_text(evalset, target, shape=shape, lossy=lossy)
    keep_beside(target, text)
    save_text(text, target)


def evalset_text(
    evalset: EvalSet, target: Path, *, shape: str | None = None, lossy: bool = False
) -> str:
    """The text that `write_evalset` writes."""
    if target.suffix not in SUFFIXES:
        raise BadFile(f"{target} is not one of {', '.join(SUFFIXES)}; eval sets are kept in these.")
    is_table = Document(target, None, lambda _: {}).is_table
    if shape is not None and (shape == TABLE) != is_table:
        raise BadFile(f"{target} cannot be written as {shape!r}: tables end in .csv or .jsonl.")
    chosen = shape_named(shape or (TABLE if is_table else OWN))
    if chosen.name == TABLE and not evalset.cases:
        raise BadFile(
            f"{target} is a table, in which each row is a case, and the set has none. Write the set to a "
            f".yaml or .json file."
        )
    kept = settled(_judged_alike(evalset, chosen))
    text = _text(plain(chosen.write(kept), str(target)), target)
    if not lossy:
        code = [place for case in kept for place in live_parts(case)]
        metrics = [metric_data(metric) for metric in kept.metrics]
        code += [f"metrics.{metric['name']}" for metric in metrics if is_code(metric)]
        more = list(_missing(kept, chosen, text, target))
        losses = [f"what is code: {_some(code)}"] if code else []
        losses += [f"what has no place in the shape {chosen.name}: {_some(more)}"] if more else []
        if losses:
            raise BadFile(
                f"{target} would lose {', and '.join(losses)}. Keep that in Python or in another shape."
            )
    return text


def _judged_alike(evalset: EvalSet, shape: Shape) -> EvalSet:
    """The set with its default criteria written out, if the shape has no default."""
    if shape.usual is not None or not evalset.usual:
        return evalset
    if shape.name == TABLE:  # a table has no place for settings of the whole set
        cases = [measured_by(case, evalset.usual) for case in evalset]
        return replace(evalset, cases=cases, usual=None)
    return replace(evalset, metrics=[*evalset.metrics, *evalset.usual], usual=None)


def save_text(text: str, target: Path) -> None:
    """Write a file atomically: another process reads the old or the new text, never a part."""
    try:
        put_whole([text.encode()], target)
    except (OSError, UnicodeEncodeError) as error:
        raise BadFile(f"cannot write {target}: {error}.") from error


# What would be lost


def _some(places: list[str]) -> str:
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return f"{', '.join(places[:_SHOWN])}{more}"


def _missing(evalset: EvalSet, shape: Shape, text: str, target: Path) -> Iterator[str]:
    """The places that are lost when the written text is read back."""
    if "\0" in text:
        yield "a string with a null character"
        return
    try:
        document = parsed_text(target, text)
        again = shape.read(document.data, document.stem)
    except BadInput as error:
        raise BadFile(
            f"{target} cannot be written, since it could not be read again: {error}"
        ) from error
    else:
        if shape.called_by_file == "case":  # such a file has one case, named after the file
            again = replace(
                again,
                cases=[replace(one, id=was.id) for one, was in zip(again, evalset, strict=False)],
            )
        yield from _differences(_compared(evalset, shape), _compared(again, shape))


def _compared(evalset: EvalSet, shape: Shape) -> dict[str, Json]:
    """The set as data for comparison: single turns written alike, and cases by id."""
    data = evalset_data(replace(evalset, cases=()))
    metrics = [by_verdict(metric) for metric in as_array(data.pop("metrics", []))]
    if shape.called_by_file:
        del data["id"]
    cases = [
        written_data(replace(case, says="", attachments=(), expect=None, turns=case.script))
        for case in evalset
    ]
    for case, whole in zip(cases, evalset, strict=True):
        for turn in map(as_object, as_array(case.get("turns", []))):
            # The kept form of a message that is only text is left out.
            extra = turn.get("extra")
            if is_object(extra) and says_only_text(extra.get("user_content")):
                del extra["user_content"]
                if not extra:
                    del turn["extra"]
        if case.get("stop") == _USUAL_STOP:
            del case["stop"]
        # Such files are judged by their own tool, and what it does not measure is always implied.
        if (shape.usual is not None and not says_more(whole)) or measure_all(metrics, case):
            case.pop("implied", None)
    return {
        **data,
        "metrics": metrics,
        "cases": {str(case["id"]): case for case in cases},
        "order": [c["id"] for c in cases],
    }


_USUAL_STOP: Json = {"max_turns": MAX_TURNS, "max_seconds": MAX_SECONDS}


def _differences(one: Json, other: Json, place: str = "") -> Iterator[str]:
    if is_object(one) and is_object(other):
        pairs = [(key, one.get(key), other.get(key)) for key in {**one, **other}]
    elif is_array(one) and is_array(other):
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip_longest(one, other))]
    else:
        if one != other or type(one) is not type(other):
            yield place.removeprefix("cases.")
        return
    for key, a, b in pairs:
        yield from _differences(a, b, at(place, key))


# Text


def _text(data: Json, target: Path) -> str:
    match target.suffix:
        case ".jsonl" | ".ndjson":
            return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in as_array(data))
        case ".csv" | ".tsv":
            return csv_text(data, "\t" if target.suffix == ".tsv" else ",")
        case _:
            return json_or_yaml(data, target)


def json_or_yaml(data: Json, target: Path) -> str:
    """The data as text for a file with this ending."""
    if target.suffix in YAML:
        return yaml_text(data)
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
