"""Configs: how an eval set is judged (criteria), and the model that simulates its users, in a file next to it.

Three shapes are read: our own (`metrics`, a list), and the map of `criteria` as AgentFlow and ADK's
`test_config.json` write it. Nothing in a config can name code to be run, except the model of a judge.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, cast

from greenroom.cases.criteria import (
    COUNTS,
    Criterion,
    counted_as_adk,
    criterion_data,
    criterion_from,
)
from greenroom.cases.criteria_map import mapped_criterion, read_criteria_map
from greenroom.cases.fields import Fields, ProblemList
from greenroom.cases.files.documents import Document, parsed, parsed_text
from greenroom.cases.files.originals import put_back
from greenroom.cases.files.save import json_or_yaml, save_text
from greenroom.cases.files.shapes import CASE_LISTS
from greenroom.cases.problems import invalid, problems_of, shown, wrong
from greenroom.cases.reader import extra_from, metrics_from
from greenroom.errors import BadFile, BadInput, BadMetric
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.plain import Json, as_object, is_object, plain

VERSION = 1
MAX_INVOCATIONS = 10
ADK_INVOCATIONS = 20
_CRITERIA = (
    "criteria",
    "custom_metrics",
    "user_simulator_config",
    "live_model_config",
    "parallel_criteria",
    "fail_fast",
)
_SIMULATOR = ("model", "max_allowed_invocations")
_ADK_SIMULATOR = (
    *_SIMULATOR,
    "type",
    "model_configuration",
    "custom_instructions",
    "include_function_calls",
    "audio_model",
    "audio_model_configuration",
    "include_text_with_audio",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSimulator:
    """Which model simulates the users of scenarios, and how often they may speak.

    The first message counts. A case or user with a lower limit keeps its own.
    """

    model: str = ""
    max_allowed_invocations: int = MAX_INVOCATIONS
    extra: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalConfig:
    """How cases are judged. A criterion without a threshold uses its metric's own.

    `criteria` are a list, or a mapping of names as AgentFlow and ADK write it: `{"exact": 1.0}`,
    `{"response_match_score": {"threshold": 0.7}}`. `user_simulator` may be a mapping too:
    `{"model": "gpt-4o", "max_allowed_invocations": 10}`. `seconds_per_metric` and `seconds_per_case` are
    limits for runs that set none. `shape` says what kind of file it was read from, `extra`
    keeps anything else that the file said.
    """

    criteria: Sequence[Criterion] = ()
    user_simulator: UserSimulator | None = None
    parallel_criteria: bool = False
    fail_fast: bool = False
    seconds_per_metric: float | None = None
    seconds_per_case: float | None = None
    extra: Mapping[str, Json] | None = None
    shape: str = field(default="", compare=False)
    folder: Path | None = field(default=None, compare=False)
    """The file that it was read from."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "criteria", _criteria_from(self.criteria))
        object.__setattr__(self, "user_simulator", _simulator_from(self.user_simulator))
        names = [criterion.name for criterion in self.criteria]
        if twice := [name for name in names if names.count(name) > 1]:
            raise BadMetric(f"the config has two criteria {twice[0]!r}; keep one.")
        if self.parallel_criteria is not False:
            raise BadInput(f"parallel_criteria={self.parallel_criteria!r}: {_ONE_BY_ONE}.")
        for name in _LIMITS:
            if not _is_limit(given := getattr(self, name)):
                raise BadInput(f"{name}={given!r} {_LIMIT}.")

    @classmethod
    def default(cls) -> "EvalConfig":
        """The default config: calls as expected, and responses that resemble their reference."""
        return cls(
            criteria=[Criterion("tool_trajectory_avg_score"), Criterion("response_match_score")]
        )

    @classmethod
    def load(cls, path: str | Path) -> "EvalConfig":
        """The config in a file."""
        return read_config(path)


_LIMITS = ("seconds_per_metric", "seconds_per_case")
_LIMIT = "should be a number of seconds above 0"


def _is_limit(value: object) -> bool:
    if value is None or isinstance(value, bool):
        return value is None
    return isinstance(value, int | float) and 0 < value < inf


_ONE_BY_ONE = (
    "the criteria of a case are measured one after the other; leave it out, and let cases run at "
    "once with concurrency="
)


def _criteria_from(given: object) -> tuple[Criterion, ...]:
    """Criteria from a list of them, of names or of mappings, or from a mapping by name."""
    if isinstance(given, Mapping):
        return tuple(
            read_criteria_map(cast("Mapping[str, Json]", given), ProblemList(), settle=True)
        )
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadMetric(f"EvalConfig(criteria={given!r}) must be a list, or a mapping by name.")
    listed = enumerate(cast("Iterable[Any]", given))
    return tuple(
        one if isinstance(one, Criterion) else criterion_from(one, f"criteria[{i}]")
        for i, one in listed
    )


def _simulator_from(given: object) -> UserSimulator | None:
    """A simulator from a mapping too, as our own files have it."""
    if given is None or isinstance(given, UserSimulator):
        return given
    return _own_simulator(plain(given), "user_simulator")


def read_config(path: str | Path) -> EvalConfig:
    """The config in a JSON or YAML file of any known shape."""
    document = parsed(Path(path))
    shape = _shape_of(document)
    try:
        return replace(_read(document.data, shape), folder=Path(path).parent)
    except BadInput as error:
        problems = document.located(problems_of(error, ""))
        raise BadFile(invalid(path, problems, f"config format: {shape}"), problems) from error


def _shape_of(document: Document) -> str:
    data, source = document.data, document.source
    if is_object(data) and is_object(data.get("criteria")):
        return "adk" if _is_adk(data) else "agentflow"
    if is_object(data) and (sign := next((name for name in CASE_LISTS if name in data), None)):
        raise BadFile(
            f"{source} is an eval set, not a config: it has `{sign}`. Give it as the cases."
        )
    if is_object(data) and "version" in data:
        return "greenroom"
    raise BadFile(
        f"{source} is not a config. Looked for:\n- greenroom: a mapping with `version` and `metrics`\n"
        f"- agentflow, adk: a mapping with `criteria`, itself a mapping of names"
    )


def _is_adk(data: dict[str, Json]) -> bool:
    if any(name in data for name in ("custom_metrics", "customMetrics", "live_model_config")):
        return True
    simulator = data.get("user_simulator_config")
    if is_object(simulator) and ("type" in simulator or "model_configuration" in simulator):
        return True
    settings = as_object(data["criteria"], "criteria").values()
    signs = ("judge_model_options", COUNTS)
    return any(not is_object(one) or any(sign in one for sign in signs) for one in settings)


def _read(data: Json, shape: str) -> EvalConfig:
    found = _read_own(data) if shape == "greenroom" else _read_criteria(data, shape)
    if shape == "adk":
        found = replace(found, criteria=[_counted(criterion) for criterion in found.criteria])
    return replace(found, shape=shape)


def _counted(criterion: Criterion) -> Criterion:
    """A judge in google-adk's config counts votes as google-adk does, unless the config says otherwise."""
    if criterion.options.get(COUNTS) != "greenroom":
        return counted_as_adk(criterion)
    others = {name: value for name, value in criterion.options.items() if name != COUNTS}
    return replace(criterion, options=others)


# Our own


OWN_FIELDS = (
    "version",
    "metrics",
    "user_simulator",
    "parallel_criteria",
    "fail_fast",
    *_LIMITS,
    "extra",
)


def _read_own(data: Json) -> EvalConfig:
    fields = Fields(data, "", OWN_FIELDS, camel=False)
    version = fields.take("version")
    if type(version) is not int or version != VERSION:  # true and 1.0 are equal to 1
        raise wrong("version", f"version {shown(version)} is not supported; use {VERSION}")
    given: dict[str, Any] = {
        "criteria": fields.read("metrics", metrics_from, []),
        "user_simulator": fields.read("user_simulator", _own_simulator, None),
        "fail_fast": _flag(fields, "fail_fast"),
        "extra": fields.read("extra", extra_from, None),
        **{name: _limit(fields, name) for name in _LIMITS},
    }
    _refuse_parallel(fields)
    fields.settle()
    return EvalConfig(**given)


def _flag(fields: Fields, name: str) -> bool:
    value = fields.take(name, False)
    if not isinstance(value, bool):
        fields.remember(name, f"{shown(value)} should be true or false")
    return value is True


def _limit(fields: Fields, name: str) -> float | None:
    value: Any = fields.take(name)
    if _is_limit(value):
        return value
    fields.remember(name, f"{shown(value)} {_LIMIT}")
    return None


def _refuse_parallel(fields: Fields) -> None:
    if _flag(fields, "parallel_criteria"):
        fields.remember("parallel_criteria", _ONE_BY_ONE)


def _simulator(
    data: Json, place: str, *, known: Sequence[str], usual: int, camel: bool = True
) -> UserSimulator:
    fields = Fields(data, place, known, camel=camel)
    extra = fields.mapping("extra") if "extra" in known else {}
    model, limit = fields.text("model"), fields.whole("max_allowed_invocations", usual)
    if limit < 1:
        fields.remember(fields.at("max_allowed_invocations"), f"{limit} should be 1 or more")
    extra |= fields.rest()
    fields.settle()
    return UserSimulator(model=model, max_allowed_invocations=limit, extra=extra or None)


_own_simulator = partial(
    _simulator, known=(*_SIMULATOR, "extra"), usual=MAX_INVOCATIONS, camel=False
)
_agentflow_simulator = partial(_simulator, known=_SIMULATOR, usual=MAX_INVOCATIONS)
_adk_simulator = partial(_simulator, known=_ADK_SIMULATOR, usual=ADK_INVOCATIONS)


def _own_data(config: EvalConfig) -> Json:
    data: dict[str, Json] = {"version": VERSION}
    data["metrics"] = [criterion_data(criterion) for criterion in config.criteria]
    if config.user_simulator is not None:
        data["user_simulator"] = _simulator_data(config.user_simulator)
        if config.user_simulator.extra:
            data["user_simulator"]["extra"] = plain(config.user_simulator.extra)
    data |= {"fail_fast": True} if config.fail_fast else {}
    data |= {name: value for name in _LIMITS if (value := getattr(config, name)) is not None}
    if config.extra:
        data["extra"] = plain(config.extra)
    return data


def _simulator_data(simulator: UserSimulator) -> dict[str, Json]:
    data: dict[str, Json] = {"model": simulator.model} if simulator.model else {}
    data["max_allowed_invocations"] = simulator.max_allowed_invocations
    return data


# A map of criteria


def _read_criteria(data: Json, shape: str) -> EvalConfig:
    fields = Fields(data, "", _CRITERIA)
    criteria = read_criteria_map(fields.mapping("criteria"), fields.problems)
    simulator = fields.read(
        "user_simulator_config", _adk_simulator if shape == "adk" else _agentflow_simulator, None
    )
    fail_fast = _flag(fields, "fail_fast")
    _refuse_parallel(fields)
    extra = fields.rest()
    fields.settle()
    return EvalConfig(
        criteria=criteria, user_simulator=simulator, fail_fast=fail_fast, extra=extra or None
    )


def _criteria_data(config: EvalConfig, shape: str) -> Json:
    criteria = {c.name: mapped_criterion(c, shape) for c in config.criteria}
    data: dict[str, Json] = {"criteria": criteria}
    data |= {"fail_fast": True} if config.fail_fast else {}
    if (simulator := config.user_simulator) is not None:
        known = _ADK_SIMULATOR if shape == "adk" else _SIMULATOR
        kept = {name: value for name, value in (simulator.extra or {}).items() if name in known}
        data["user_simulator_config"] = {
            **_simulator_data(simulator),
            **as_object(plain(kept)),
        }
    put_back(data, config.extra, _CRITERIA)
    return data


# Writing


_WRITERS: dict[str, Callable[[EvalConfig], Json]] = {
    "greenroom": _own_data,
    "agentflow": partial(_criteria_data, shape="agentflow"),
    "adk": partial(_criteria_data, shape="adk"),
}


def write_config(config: EvalConfig, path: str | Path, *, shape: str = "greenroom") -> None:
    """Write a config in our own shape or in another; what would be lost is refused."""
    if message := choice_problem(shape, _WRITERS):
        raise BadFile(f"the shape of a config is wrong: {message}")
    target = Path(path)
    data = plain(_WRITERS[shape](config), str(target))
    text = json_or_yaml(data, target)
    document = parsed_text(target, text)
    again = _read(document.data, shape)
    if _own_data(again) != plain(_own_data(config)):
        raise BadFile(f"{target} would lose some of the config, written as {shape}.")
    save_text(text, target)
