"""The options of an evaluation, each declared once.

`OPTIONS` is what the Python call, the command line, the pytest plug-in and the printed commands read. A new option is one entry there and one line in `Options`, which type checkers read.
Nothing heavy is imported: `greenroom --help` loads this too.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeGuard, cast

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig
    from greenroom.cases.parts import MetricLike
    from greenroom.results.report import Report
    from greenroom.store.store import Store
    from greenroom.suite.budget import Budget, UnknownPrices
    from greenroom.suite.cancel import Cancel
    from greenroom.suite.hooks import OnCase, OnEvent, OnMetric, OnResult
    from greenroom.suite.trial import OnError
    from greenroom.suite.workers.references import Workers
    from greenroom.world.answers import AnswerCache

MOST_WORKERS = 256


class Options(TypedDict, total=False):
    """The options of an evaluation; a comment gives the default."""

    # What is run, and how it is measured
    trials: int | Literal["auto"] | None  # None: as often as the set says
    min_pass_rate: float  # 1.0; what trials="auto" is to find out about
    baseline: "Report | Sequence[Report] | None"  # an earlier report of these cases, or several
    confirm: int | None  # None: 30 beside a baseline; how often suspects are run again, 0 for never
    metrics: "Iterable[MetricLike]"  # none beside those of cases, set and config
    config: "EvalConfig | str | Path | None"
    mocks: Mapping[str, Any]
    cache: "AnswerCache | str | Path | None"  # None: judges are asked anew
    seconds_per_metric: float  # 60.0

    # What may happen
    allow_tools: Collection[Any]
    allow_unfenced: bool  # False
    allow_opaque: bool  # False
    budget: "float | Budget | None"  # None: no limit
    unknown_prices: "UnknownPrices"  # "refuse": a budget that counts only some of it is none

    # How it goes on
    concurrency: int  # 4, or one for each worker
    workers: "int | Workers | None"  # None: in this process
    on_error: "OnError"  # "collect"
    fail_fast: bool  # False
    cancel: "Cancel | None"

    # What is kept, and who hears of it
    store: "Store | str | Path | bool | None"  # None: $GREENROOM_STORE, else .greenroom
    resume: str | bool  # False
    accept_changes: bool  # False
    retry_errors: bool  # False: a resumed run keeps the trials that ended in an error
    keep_ledgers: bool  # True
    on_case_start: "OnCase | None"
    on_case_complete: "OnResult | None"
    on_metric_complete: "OnMetric | None"
    on_event: "OnEvent | None"
    plugins: "Iterable[Any]"  # objects with any of the hooks as methods


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """How an option is given on the command line of `greenroom eval`."""

    names: tuple[str, ...]
    """The first is the one that printed commands use."""
    help: str
    metavar: str | None = None
    kind: Literal["value", "switch", "file", "folder", "list"] = "value"
    words: Mapping[str, Any] | None = None
    """Words that stand for a value: {"off": 0}."""
    in_watch: bool = False
    """Whether `eval watch` has it too, not only `eval run`."""
    in_rerun: bool = False
    """Whether the command that runs one case again needs it."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: what its value must be, and how each door offers it."""

    name: str
    accepts: Callable[[Any], bool]
    wanted: str
    """Completes "should be", in every refusal of a value."""
    choices: tuple[str, ...] = ()
    flag: Flag | None = None
    setting: str = ""
    """Its help as `--greenroom-NAME` and in `[tool.greenroom.pytest]`; empty: not offered there."""

    def problem(self, value: Any, typed: str | None = None) -> str:
        """Why a value cannot be used, as in "0 should be a whole number"; empty if it can.

        `typed` is what stands in the message in place of the value.
        """
        if self.accepts(value):
            return ""
        near = _nearest(value, self.choices)
        meant = f" Did you mean {near!r}?" if near else ""
        return f"{value if typed is None else typed!r} should be {self.wanted}.{meant}"


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?\d{1,18}", re.ASCII)


def as_number(text: str) -> int | float | str:
    """The number that was typed, or the text if it is none."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def check(options: Options) -> None:
    """Raise BadInput for the first option whose value cannot be used, before anything begins."""
    given: Mapping[str, Any] = {**options}
    for name, value in given.items():
        if name not in OPTIONS:
            raise TypeError(f"an evaluation has no option {name!r}.{_hint(name)}")
        if problem := OPTIONS[name].problem(value):
            raise _bad_input(f"{name}={problem}")
    if given.get("retry_errors") and given.get("resume", False) is False:
        raise _bad_input("retry_errors=True is for resume=: a new run has no errors to run again.")


def _hint(name: str) -> str:
    near = _nearest(name, OPTIONS)
    return f" Did you mean {near}?" if near else f" There are {', '.join(sorted(OPTIONS))}."


def _nearest(given: object, known: Iterable[str]) -> str:
    """The one of these words that was probably meant; empty if none is close."""
    from difflib import get_close_matches

    near = get_close_matches(given, list(known), 1) if isinstance(given, str) else []
    return near[0] if near else ""


def _bad_input(message: str) -> Exception:
    from greenroom.errors import BadInput

    return BadInput(message)


# What the values of options must be


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float)


def _is_whole(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _is_many(value: object) -> bool:
    """Whether it can be a list of things; one text is not meant as a list of its letters."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_tools(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _is_hook(value: object) -> bool:
    return value is None or callable(value)


def _is_config(value: object) -> bool:
    return value is None or isinstance(value, str | Path) or hasattr(value, "user_simulator")


def _is_store(value: object) -> bool:
    return value is None or isinstance(value, bool | str | Path) or hasattr(value, "runs")


def _is_baseline(value: object) -> bool:
    from greenroom.results.report import Report

    if value is None or isinstance(value, Report):
        return True
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return bool(several) and all(isinstance(one, Report) for one in several)


def _is_cache(value: object) -> bool:
    from greenroom.world.answers import AnswerCache

    return value is None or isinstance(value, AnswerCache | str | Path)


def _is_budget(value: Any) -> bool:
    if value is None or _is_number(value):
        return value is None or value > 0
    from greenroom.suite.budget import Budget

    return isinstance(value, Budget)


def _is_workers(value: Any) -> bool:
    if value is None or type(value) is int:
        return value is None or 1 <= value <= MOST_WORKERS
    from greenroom.suite.workers.references import Workers

    return isinstance(value, Workers)


def _is_cancel(value: object) -> bool:
    from greenroom.suite.cancel import Cancel

    return value is None or isinstance(value, Cancel)


# The table


def _switch(name: str, flag: Flag | None = None) -> Option:
    return Option(name, _is_switch, "True or False", flag=flag)


def _choice(name: str, *choices: str, flag: Flag | None = None) -> Option:
    wanted = f"one of {', '.join(map(repr, choices))}"
    return Option(
        name,
        lambda value: isinstance(value, str) and value in choices,
        wanted,
        choices=choices,
        flag=flag,
    )


_DECLARED = (
    Option(
        "config",
        _is_config,
        "an EvalConfig, or the path of a file with one",
        flag=Flag(
            names=("--config", "-c", "--config_file_path"),
            help="Judge by the criteria of this file too.",
            metavar="FILE",
            kind="file",
            in_watch=True,
            in_rerun=True,
        ),
        setting="The criteria by which they are judged.",
    ),
    Option(
        "trials",
        lambda value: value is None or value == "auto" or _is_whole(value),
        "a whole number of 1 or more, or 'auto'",
        flag=Flag(
            names=("--trials", "--num-runs", "--num_runs"),
            help="How often each case is run; 1, or what its set says. `auto` runs it until it is "
            "clear whether --min-pass-rate is reached; exit code 1 unless it clearly is.",
            metavar="N|auto",
            in_watch=True,
        ),
        setting="How often each of them is run.",
    ),
    Option(
        "concurrency",
        _is_whole,
        "a whole number of 1 or more",
        flag=Flag(
            names=("--max-concurrency",),
            help="How many cases are run at once. Usually 4, or one for each worker.",
            metavar="N",
            in_watch=True,
        ),
    ),
    Option(
        "workers",
        _is_workers,
        f"a whole number from 1 to {MOST_WORKERS}, or Workers(...)",
        flag=Flag(
            names=("--workers",),
            help="Run cases in N processes, one case each: for agents that block or compute.",
            metavar="N",
            in_watch=True,
        ),
    ),
    _switch(
        "fail_fast",
        Flag(
            names=("--fail-fast",),
            help="Skip the rest once a case did not pass.",
            kind="switch",
            in_watch=True,
        ),
    ),
    Option(
        "mocks",
        lambda value: isinstance(value, Mapping),
        "a mapping of answers by tool",
        flag=Flag(
            names=("--mocks",),
            help="Mocks for tools that a case has none for: a file, or mocks.py:name.",
            metavar="FILE",
            kind="file",
            in_watch=True,
            in_rerun=True,
        ),
    ),
    Option(
        "allow_tools",
        _is_tools,
        "a list of tools, or of their names",
        flag=Flag(
            names=("--allow-tool",),
            help="Let the real body of this tool run, inside the fence; may be repeated.",
            metavar="NAME",
            kind="list",
            in_watch=True,
            in_rerun=True,
        ),
        setting="Let the real body of this tool run, inside the fence; may be repeated.",
    ),
    _switch(
        "allow_opaque",
        Flag(
            names=("--allow-opaque",),
            help="Run an agent whose tools run where no gate can see them; results say so.",
            kind="switch",
            in_watch=True,
            in_rerun=True,
        ),
    ),
    _switch("allow_unfenced"),
    Option(
        "min_pass_rate",
        lambda value: _is_number(value) and 0 <= value <= 1,
        "a share from 0 to 1",
        flag=Flag(
            names=("--min-pass-rate",),
            help="The share of evaluated cases that must pass, from 0 to 1. Usually 1, and none "
            "beside a --baseline.",
            metavar="FLOAT",
        ),
        setting="The share of their cases that must pass, from 0 to 1, in place of all of them.",
    ),
    Option("baseline", _is_baseline, "a Report (Report.load(...)), or a list of them"),
    Option(
        "confirm",
        lambda value: value is None or (type(value) is int and value >= 0),
        "a whole number of 0 or more",
        flag=Flag(
            names=("--confirm",),
            help="With --baseline: run cases that fail though they passed in it up to N more times, "
            "to tell a change from chance. Usually 30.",
            metavar="N|off",
            words={"off": 0},
        ),
    ),
    Option("metrics", _is_many, "a list of metrics, or of their names"),
    Option(
        "seconds_per_metric",
        lambda value: _is_number(value) and value > 0,
        "a number of seconds above 0",
    ),
    Option("cache", _is_cache, "a folder, or an AnswerCache"),
    Option(
        "budget",
        _is_budget,
        "an amount of USD above 0, or a Budget",
        flag=Flag(
            names=("--budget",),
            help="What the run may cost: no case is begun that could take more than is left.",
            metavar="USD",
        ),
    ),
    _choice(
        "unknown_prices",
        "refuse",
        "allow",
        flag=Flag(
            names=("--unknown-prices",),
            help="With --budget: whether to go on once a model was asked whose price is unknown. "
            "Usually refuse.",
            metavar="[refuse|allow]",
        ),
    ),
    _choice("on_error", "collect", "stop", "skip"),
    Option("cancel", _is_cancel, "a greenroom.suite.Cancel"),
    Option(
        "store",
        _is_store,
        "a folder, a Store, or False",
        flag=Flag(
            names=("--store",),
            help="Where runs are kept: this folder instead of $GREENROOM_STORE or .greenroom.",
            metavar="DIR",
            kind="folder",
        ),
        setting="Write every rehearsal down as a run in this folder.",
    ),
    Option("resume", lambda value: isinstance(value, bool | str), "the id of a run, or True"),
    _switch(
        "accept_changes",
        Flag(
            names=("--accept-changes",),
            help="With --resume: go on though the agent, a case or a metric has changed.",
            kind="switch",
        ),
    ),
    _switch(
        "retry_errors",
        Flag(
            names=("--retry-errors",),
            help="With --resume: run trials that ended in an error again.",
            kind="switch",
        ),
    ),
    _switch("keep_ledgers"),
    Option("on_case_start", _is_hook, "a function"),
    Option("on_case_complete", _is_hook, "a function"),
    Option("on_metric_complete", _is_hook, "a function"),
    Option("on_event", _is_hook, "a function"),
    Option("plugins", _is_many, "a list of objects with hooks as methods"),
)

OPTIONS: Mapping[str, Option] = {option.name: option for option in _DECLARED}
"""Every option by its name, in the order in which help lists them."""
