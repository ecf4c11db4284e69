"""What is sent to a worker so that it finds agent, cases and metrics by itself: references and data.

Objects are not sent. An object in a module is referred to by the module and its name there; cases and
mocks that are data are sent as data; anything else is refused by name.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.criteria import Criterion, criterion_data
from greenroom.cases.data import case_data, live_parts, mock_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.liveness import is_live
from greenroom.cases.parts import MetricLike, metric_name
from greenroom.errors import BadInput
from greenroom.ledger.functions import Anything
from greenroom.ledger.plain import Json, is_object
from greenroom.suite.inputs.import_rules import is_import_allowed
from greenroom.suite.inputs.references import (
    FOLDER_FILES,
    split_reference,
)
from greenroom.suite.option_types import MOST_WORKERS, is_worker_count
from greenroom.suite.options import OPTIONS, Values
from greenroom.suite.workers.blobs import shared_folder
from greenroom.world.answers import AnswerCache
from greenroom.world.modules import loaded_from, reference_to
from greenroom.world.rates import read_rates

_INSTEAD = (
    "Workers import what they run: give it as a reference ('shop.py:agent', 'package.module:name'), "
    "or keep it under a name at the top of a module"
)


class Workers(Struct, frozen=True, kw_only=True):
    """How many processes run trials, and where they find what `evaluate` is given as objects.

    Each is a reference as a command line has it: the `agent`, the `cases` (a file, folder, glob or
    module; with `beside` all those next to that agent; with `configs` also judged by a config next to
    their file) and the `mocks`.
    """

    count: int | None = None
    agent: str = ""
    cases: str = ""
    beside: str = ""
    configs: bool = True
    mocks: str = ""

    def __post_init__(self) -> None:
        if self.count is not None and not is_worker_count(self.count):
            raise BadInput(
                f"workers={self.count!r} should be a whole number from 1 to {MOST_WORKERS}."
            )


def briefing(
    workers: Workers, agent: object, cases: object, evalset: EvalSet, options: Values
) -> dict[str, Json]:
    """What a worker needs, as JSON; BadInput names the first part that no worker could find again.

    `evalset` are the cases before mocks and config were added to them.
    """
    agent = workers.agent or _plain(agent, f"the agent {_shown(agent)}")
    found = _cases(workers, cases, evalset)
    given = dict(options)
    if workers.mocks:
        given["mocks"] = workers.mocks
    sent = {name: _option(name, given[name]) for name in OPTIONS if OPTIONS[name].per_trial}
    resources = sent["resources"]
    factories = [*resources.values()] if is_object(resources) else []
    return {
        "agent": agent,
        "cases": found,
        "ids": [*evalset.ids],
        "options": sent,
        "allow_import": is_import_allowed(),
        "attachments": str(shared_folder().path),
        "modules": _modules([agent, found, *sent.values(), *factories]),
    }


def _option(name: str, value: Any) -> Json:
    """An option as JSON: a list of tools or metrics one by one, an object as where it is found."""
    match name:
        case "metrics":
            return [_metric(metric) for metric in value]
        case "allow_tools":
            return [_plain(tool, f"the allowed tool {_shown(tool)}") for tool in value]
        case "middleware":
            members = getattr(value, "members", value)
            return [_plain(one, f"the middleware {_shown(one)}") for one in members]
        case "mocks":
            return value if isinstance(value, str) else _mocks(value)
        case "resources":
            return value if isinstance(value, str) else _resources(value)
        case "replay" | "on_drift":  # each trial is sent with its recording
            return OPTIONS[name].default
        case "rate":
            return dict[str, Json](read_rates(value) or {})
        case "cache":
            cache = AnswerCache.of(value)
            return None if cache is None else str(cache.path.absolute())
        case _:
            return _plain(value, f"the {name}")


def _plain(value: object, what: str) -> Json:
    """A string, a number or None as it is, anything else as a reference to it: `{"reference": ...}`."""
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    return {"reference": _found(value, what)}


def _found(thing: object, what: str) -> str:
    reference = reference_to(thing)
    if not reference:
        raise BadInput(
            f"{what} is an object that a worker process cannot find again: no module holds it under "
            f"a name, and a script that is run, or a notebook, does not count. {_INSTEAD}."
        )
    return reference


def _shown(thing: object) -> str:
    name = getattr(thing, "name", None) or getattr(thing, "__name__", None)
    return repr(name) if isinstance(name, str) else f"of type {type(thing).__qualname__}"


def _cases(workers: Workers, cases: object, evalset: EvalSet) -> dict[str, Json]:
    if workers.cases or workers.beside:
        kind = "gathered" if workers.cases else "beside"
        return {kind: workers.cases or workers.beside, "configs": workers.configs}
    if isinstance(cases, str | Path):
        return {"reference": str(cases)}
    if reference := reference_to(cases):
        return {"value": reference}
    return {
        "id": evalset.id,
        "cases": [_data_of(case) for case in evalset],
        "metrics": [_metric(metric) for metric in evalset.metrics],
        "usual": None if evalset.usual is None else [_metric(usual) for usual in evalset.usual],
    }


def _data_of(case: Case) -> Json:
    for part in live_parts(case):
        raise BadInput(
            f"the case has a part that is code, {part}, and code is not sent to worker processes. "
            f"Give the cases as a file, or as 'module:name' of a list of cases."
        )
    return case_data(case)


def _metric(metric: MetricLike) -> Json:
    if isinstance(metric, Criterion):
        return criterion_data(metric)
    return _plain(metric, f"the metric {metric_name(metric)!r}")


def _mocks(mocks: Mapping[str, Anything]) -> Json:
    """The mocks as data, or a reference to their mapping."""
    data = {tool: mock_data(mock) for tool, mock in mocks.items()}
    live = [tool for tool, mock in data.items() if is_live(mock)]
    return _found(mocks, f"the mock of {live[0]!r} is code, and `mocks`") if live else data


def _resources(factories: Mapping[str, object]) -> Json:
    """A reference to the mapping of functions that open resources, or to each of them."""
    if factories and (reference := reference_to(factories)):
        return {"reference": reference}
    return {
        name: _plain(factory, f"what opens the resource {name!r}")
        for name, factory in factories.items()
    }


def _modules(parts: Iterable[Json]) -> list[Json]:
    """The modules of all these references, by the names they have here."""
    found = (reference for part in parts for reference in _references_in(part))
    files = dict.fromkeys(file for reference in found for file in _files(reference))
    return [[*name] for file in files if (name := loaded_from(file))]


def _references_in(part: Json) -> Iterator[str]:
    match part:
        case str(found) | {"reference": str(found)} | {"value": str(found)}:
            yield found
        case {"gathered": str(found)} | {"beside": str(found)}:
            yield found
        case [*parts]:
            for one in parts:
                yield from _references_in(one)
        case _:
            return


def _files(reference: str) -> list[str]:
    """The Python files that a reference may lead to; none for data files and bare names."""
    where, _ = split_reference(reference)
    path = Path(where).resolve()
    if path.suffix == ".py":
        return [str(path)]
    return [str(path / name) for name in FOLDER_FILES] if where and path.is_dir() else []
