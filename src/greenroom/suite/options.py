"""The options of an evaluation, each declared once: its type, its check, its default, and how each door offers it.

`Options` is what type checkers read, and `OPTIONS` is made of it. The Python call, the command line with its
help and completion, the pytest plug-in, worker processes and the printed commands all read that table.
A new option is one entry in `Options`. Nothing heavy is imported: `greenroom --help` loads this too.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeGuard, cast

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

CONCURRENCY = 4
METRIC_SECONDS = 60.0
MOST_WORKERS = 256

Values = Mapping[str, Any]
"""Every option of an evaluation by its name, with its default where no value was given."""


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


@dataclass(frozen=True, slots=True)
class Option:
    """What the value of an option must be, and how each door offers it."""

    accepts: Callable[[Any], bool]
    wanted: str
    """Completes "should be", in every refusal of a value."""
    default: Any = None
    choices: tuple[str, ...] = ()
    needs: str = ""
    """Another option, without which this one means nothing."""
    per_trial: bool = False
    """Whether it changes how a single trial runs: workers are sent it, and the command that runs one case again repeats it."""
    flag: Flag | None = None
    setting: str = ""
    """Its help as `--greenroom-NAME` and in `[tool.greenroom.pytest]`; empty: not offered there."""

    def problem(self, value: Any, typed: str | None = None) -> str:
        """Why a value cannot be used, as in "0 should be a whole number"; empty if it can.

        `typed` stands in the message in place of the value.
        """
        if self.accepts(value):
            return ""
        near = nearest(value, self.choices)
        meant = f" Did you mean {near!r}?" if near else ""
        return f"{value if typed is None else typed!r} should be {self.wanted}.{meant}"


# What the values of options must be


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float)


def _is_whole(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_path(value: object) -> bool:
    return isinstance(value, Path) or (isinstance(value, str) and value not in ("", "\0"))


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    """Whether it can be a list of things; a single text is not meant as a list of its letters."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_tools(value: object) -> bool:
    return (
        _is_list(value)
        and isinstance(value, Collection)
        and all(tool if isinstance(tool, str) else _is_tool(tool) for tool in value)
    )


def _is_tool(value: object) -> bool:
    return callable(value) or hasattr(value, "name")


def _is_mocks(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(tool, str) for tool in cast("Mapping[object, object]", value)
    )


def _is_hook(value: object) -> bool:
    return value is None or callable(value)


def _is_config(value: object) -> bool:
    if value is None or isinstance(value, str | Path):
        return value is None or _is_path(value)
    from greenroom.cases.config import EvalConfig

    return isinstance(value, EvalConfig)


def _is_store(value: object) -> bool:
    if value is None or isinstance(value, bool | str | Path):
        return value is None or isinstance(value, bool) or _is_path(value)
    from greenroom.store.store import Store

    return isinstance(value, Store)


def _is_baseline(value: object) -> bool:
    from greenroom.results.report import Report

    if value is None or isinstance(value, Report):
        return True
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return bool(several) and all(isinstance(one, Report) for one in several)


def _is_cache(value: object) -> bool:
    from greenroom.world.answers import AnswerCache

    return value is None or isinstance(value, AnswerCache) or _is_path(value)


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


def _switch(
    flag: Flag | None = None, *, default: bool = False, needs: str = "", per_trial: bool = False
) -> Option:
    return Option(
        lambda value: isinstance(value, bool),
        "True or False",
        default,
        needs=needs,
        per_trial=per_trial,
        flag=flag,
    )


def _choice(*choices: str, needs: str = "", flag: Flag | None = None) -> Option:
    """One of these words; the first is the default."""
    return Option(
        lambda value: isinstance(value, str) and value in choices,
        f"one of {', '.join(map(repr, choices))}",
        choices[0],
        choices,
        needs,
        flag=flag,
    )


_HOOK = Option(_is_hook, "a function")


class Options(TypedDict, total=False):
    """The options of an evaluation, in the order in which help lists them."""

    config: Annotated[
        "EvalConfig | str | Path | None",
        Option(
            _is_config,
            "an EvalConfig, or the path of a file with one",
            per_trial=True,
            flag=Flag(
                names=("--config", "-c", "--config_file_path"),
                help="Also judge by the criteria in this file.",
                metavar="FILE",
                kind="file",
                in_watch=True,
            ),
            setting="Also judge eval-set files by the criteria in this file.",
        ),
    ]
    trials: Annotated[
        int | Literal["auto"] | None,
        Option(
            lambda value: value is None or value == "auto" or _is_whole(value),
            "a whole number of 1 or more, or 'auto'",
            flag=Flag(
                names=("--trials", "--num-runs", "--num_runs"),
                help="How often each case runs (default: 1, or what its set says). `auto` repeats "
                "cases until it is clear whether --min-pass-rate is reached; exit code 1 unless it "
                "clearly is.",
                metavar="N|auto",
                in_watch=True,
            ),
            setting="How often each case of an eval-set file runs.",
        ),
    ]
    concurrency: Annotated[
        int,
        Option(
            _is_whole,
            "a whole number of 1 or more",
            flag=Flag(
                names=("--max-concurrency",),
                help=f"How many cases run at once (default: {CONCURRENCY}, or one per worker).",
                metavar="N",
                in_watch=True,
            ),
        ),
    ]
    workers: Annotated[
        "int | Workers | None",
        Option(
            _is_workers,
            f"a whole number from 1 to {MOST_WORKERS}, or Workers(...)",
            flag=Flag(
                names=("--workers",),
                help="Run cases in N processes, one case each: for agents that block or compute.",
                metavar="N",
                in_watch=True,
            ),
        ),
    ]
    fail_fast: Annotated[
        bool,
        _switch(
            Flag(
                names=("--fail-fast",),
                help="Skip the remaining cases as soon as one does not pass.",
                kind="switch",
                in_watch=True,
            )
        ),
    ]
    mocks: Annotated[
        Mapping[str, Any],
        Option(
            _is_mocks,
            "a mapping of answers by tool",
            {},
            per_trial=True,
            flag=Flag(
                names=("--mocks",),
                help="Mocks for tools that a case does not mock itself: a file, or mocks.py:name.",
                metavar="FILE",
                kind="file",
                in_watch=True,
            ),
        ),
    ]
    allow_tools: Annotated[
        Collection[Any],
        Option(
            _is_tools,
            "a list of tools, or of their names",
            (),
            per_trial=True,
            flag=Flag(
                names=("--allow-tool",),
                help="Let the real body of this tool run, inside the fence; may be repeated.",
                metavar="NAME",
                kind="list",
                in_watch=True,
            ),
            setting="Let the real body of this tool run, inside the fence; may be repeated.",
        ),
    ]
    allow_opaque: Annotated[
        bool,
        _switch(
            Flag(
                names=("--allow-opaque",),
                help="Accept an agent whose tools run where no gate can see them; results say so.",
                kind="switch",
                in_watch=True,
            ),
            per_trial=True,
        ),
    ]
    allow_unfenced: Annotated[bool, _switch(per_trial=True)]
    min_pass_rate: Annotated[
        float,
        Option(
            lambda value: _is_number(value) and 0 <= value <= 1,
            "a share from 0 to 1",
            1.0,
            flag=Flag(
                names=("--min-pass-rate",),
                help="The share of evaluated cases that must pass, from 0 to 1 (default: 1; none "
                "with a --baseline).",
                metavar="FLOAT",
            ),
            setting="The share of eval-set cases that must pass, from 0 to 1, instead of all.",
        ),
    ]
    baseline: Annotated[
        "Report | Sequence[Report] | None",
        Option(_is_baseline, "a Report (Report.load(...)), or a list of them"),
    ]
    confirm: Annotated[
        int | None,
        Option(
            lambda value: value is None or (type(value) is int and value >= 0),
            "a whole number of 0 or more",
            needs="baseline",
            flag=Flag(
                names=("--confirm",),
                help="With --baseline: run cases that passed there and fail now up to N more times, "
                "to tell a change from chance (default: 30).",
                metavar="N|off",
                words={"off": 0},
            ),
        ),
    ]
    metrics: Annotated[
        "Iterable[MetricLike]",
        Option(_is_list, "a list of metrics, or of their names", (), per_trial=True),
    ]
    seconds_per_metric: Annotated[
        float,
        Option(
            lambda value: _is_number(value) and value > 0,
            "a number of seconds above 0",
            METRIC_SECONDS,
            per_trial=True,
        ),
    ]
    cache: Annotated[
        "AnswerCache | str | Path | None",
        Option(_is_cache, "a folder, or an AnswerCache", per_trial=True),
    ]
    budget: Annotated[
        "float | Budget | None",
        Option(
            _is_budget,
            "an amount of USD above 0, or a Budget",
            flag=Flag(
                names=("--budget",),
                help="What the run may cost: no case begins that could take more than is left.",
                metavar="USD",
            ),
        ),
    ]
    unknown_prices: Annotated[
        "UnknownPrices",
        _choice(
            "refuse",
            "allow",
            needs="budget",
            flag=Flag(
                names=("--unknown-prices",),
                help="With --budget: whether to continue after asking a model whose price is unknown "
                "(default: refuse).",
                metavar="[refuse|allow]",
            ),
        ),
    ]
    on_error: Annotated["OnError", _choice("collect", "stop", "skip")]
    cancel: Annotated["Cancel | None", Option(_is_cancel, "a greenroom.suite.Cancel")]
    store: Annotated[
        "Store | str | Path | bool | None",
        Option(
            _is_store,
            "a folder, a Store, or False",
            flag=Flag(
                names=("--store",),
                help="Keep runs in this folder instead of $GREENROOM_STORE or .greenroom.",
                metavar="DIR",
                kind="folder",
            ),
            setting="Record every rehearsal as a run in this folder.",
        ),
    ]
    resume: Annotated[
        str | bool,
        Option(lambda value: isinstance(value, bool | str), "the id of a run, or True", False),
    ]
    accept_changes: Annotated[
        bool,
        _switch(
            Flag(
                names=("--accept-changes",),
                help="With --resume: continue although the agent, a case or a metric has changed.",
                kind="switch",
            ),
            needs="resume",
        ),
    ]
    retry_errors: Annotated[
        bool,
        _switch(
            Flag(
                names=("--retry-errors",),
                help="With --resume: run trials that ended in an error again.",
                kind="switch",
            ),
            needs="resume",
        ),
    ]
    keep_ledgers: Annotated[bool, _switch(default=True)]
    on_case_start: Annotated["OnCase | None", _HOOK]
    on_case_complete: Annotated["OnResult | None", _HOOK]
    on_metric_complete: Annotated["OnMetric | None", _HOOK]
    on_event: Annotated["OnEvent | None", _HOOK]
    plugins: Annotated[
        "Iterable[Any]", Option(_is_list, "a list of objects with hooks as methods", ())
    ]


OPTIONS: dict[str, Option] = {
    name: declared.__metadata__[0] for name, declared in Options.__annotations__.items()
}
"""Every option by its name, in the order in which help lists them."""


# Reading and checking what was given


def check(options: Options) -> None:
    """Raise BadInput for the first option whose value cannot be used, before anything begins."""
    given: Values = {**options}
    for name, value in given.items():
        if name not in OPTIONS:
            near = nearest(name, OPTIONS)
            meant = f"Did you mean {near}?" if near else f"There are {', '.join(sorted(OPTIONS))}."
            raise TypeError(f"an evaluation has no option {name!r}. {meant}")
        if problem := OPTIONS[name].problem(value):
            raise _bad_input(f"{name}={problem}")
    for name, needs in lacking(given):
        raise _bad_input(f"{name}={given[name]!r} is for {needs}=; give that too, or leave it out.")


def lacking(given: Values) -> Iterator[tuple[str, str]]:
    """Options that mean nothing without another one, which is not given; and that other one."""
    for name, option in OPTIONS.items():
        # A value that counts as none, or the usual one, asks for nothing.
        is_given = given.get(name) not in (None, False, 0, option.default)
        if is_given and option.needs and given.get(option.needs) in (None, False):
            yield name, option.needs


def complete(options: Options) -> Values:
    """Every option of an evaluation, checked: as given, else its default."""
    check(options)
    values: dict[str, Any] = {name: option.default for name, option in OPTIONS.items()}
    for name, value in options.items():
        # What can be read only once is read here.
        values[name] = list(cast("Iterator[Any]", value)) if isinstance(value, Iterator) else value
    return values


def nearest(given: object, known: Iterable[str]) -> str:
    """The one of these words that was probably meant; empty if none is close."""
    from difflib import get_close_matches  # slow to load, and only a mistake needs it

    near = get_close_matches(given, list(known), 1) if isinstance(given, str) else []
    return near[0] if near else ""


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?\d{1,18}", re.ASCII)


def as_number(text: str) -> int | float | str:
    """The number that was typed, or the text if it is none."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _bad_input(message: str) -> Exception:
    from greenroom.errors import BadInput

    return BadInput(message)
