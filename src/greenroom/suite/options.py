"""What an evaluation may be told; the same for `evaluate`, `rehearse` and `stream`."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from greenroom.cases.parts import MetricLike
from greenroom.errors import BadInput
from greenroom.results.report import Report
from greenroom.suite.budget import Budget, UnknownPrices
from greenroom.suite.cancel import Cancel
from greenroom.suite.hooks import HOOKS, OnCase, OnEvent, OnMetric, OnResult
from greenroom.suite.trial import OnError
from greenroom.world.answers import AnswerCache

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig
    from greenroom.store.store import Store
    from greenroom.suite.workers.references import Workers


class Options(TypedDict, total=False):
    """Everything an evaluation may be told, with what holds unless it is."""

    # What is played, and how it is measured
    trials: int | Literal["auto"] | None  # None: as often as the set says
    min_pass_rate: float  # 1.0; what trials="auto" is to find out about
    baseline: "Report | Sequence[Report] | None"  # an earlier report of these cases, or several
    confirm: (
        int | None
    )  # None: 30 beside a baseline; how often suspects are played again, 0 for never
    metrics: Iterable[MetricLike]  # none beside those of cases, set and config
    config: "EvalConfig | str | Path | None"
    mocks: Mapping[str, Any]
    cache: AnswerCache | str | Path | None  # None: judges are asked anew
    seconds_per_metric: float  # 60.0

    # What may happen
    allow_tools: Collection[Any]
    allow_unfenced: bool  # False
    allow_opaque: bool  # False
    budget: float | Budget | None  # None: as much as it takes
    unknown_prices: UnknownPrices  # "refuse": a budget that counts only some of it is none

    # How it goes on
    concurrency: int  # 4, or one for each worker
    workers: "int | Workers | None"  # None: in this process
    on_error: OnError  # "collect"
    fail_fast: bool  # False
    cancel: Cancel | None

    # What is kept, and who hears of it
    store: "Store | str | Path | bool | None"  # None: $GREENROOM_STORE, else .greenroom
    resume: str | bool  # False
    accept_changes: bool  # False
    retry_errors: bool  # False: a resumed run keeps the trials that ended in an error
    keep_ledgers: bool  # True
    on_case_start: OnCase | None
    on_case_complete: OnResult | None
    on_metric_complete: OnMetric | None
    on_event: OnEvent | None
    plugins: Iterable[Any]  # objects with any of the hooks as methods


KNOWN = frozenset(Options.__annotations__)


def check(options: Options) -> None:
    """Refuse what no evaluation can be told, before anything is begun."""
    given = cast("Mapping[str, Any]", options)
    for name in given:
        if name not in KNOWN:
            near = get_close_matches(name, KNOWN, 1)
            hint = (
                f" Did you mean {near[0]}?" if near else f" There are {', '.join(sorted(KNOWN))}."
            )
            raise TypeError(f"an evaluation has no option {name!r}.{hint}")
    for name, (is_right, wanted) in _RULES.items():
        if name in given and not is_right(given[name]):
            raise BadInput(f"{name}={given[name]!r} should be {wanted}.")
    if given.get("retry_errors") and given.get("resume", False) is False:
        raise BadInput("retry_errors=True is for resume=: a new run has no errors to play again.")


_SWITCHES = (
    "allow_unfenced",
    "allow_opaque",
    "fail_fast",
    "accept_changes",
    "retry_errors",
    "keep_ledgers",
)


def _is_config(value: object) -> bool:
    return value is None or isinstance(value, str | Path) or hasattr(value, "user_simulator")


def _is_whole(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_baseline(value: object) -> bool:
    if value is None or isinstance(value, Report):
        return True
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return bool(several) and all(isinstance(one, Report) for one in several)


def _is_hook(value: object) -> bool:
    return value is None or callable(value)


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "trials": (
        lambda value: value is None or value == "auto" or _is_whole(value),
        "a whole number of 1 or more, or 'auto'",
    ),
    "min_pass_rate": (
        lambda value: type(value) in (int, float) and 0 <= value <= 1,
        "a share from 0 to 1",
    ),
    "baseline": (_is_baseline, "a Report (Report.load(...)), or a list of them"),
    "confirm": (
        lambda value: value is None or value == 0 or _is_whole(value),
        "a whole number of 0 or more",
    ),
    "concurrency": (_is_whole, "a whole number of 1 or more"),
    "seconds_per_metric": (
        lambda value: type(value) in (int, float) and value > 0,
        "a number of seconds above 0",
    ),
    "config": (_is_config, "an EvalConfig, or the path of a file with one"),
    "mocks": (lambda value: isinstance(value, Mapping), "a mapping of answers by tool"),
    "allow_tools": (
        lambda value: isinstance(value, Collection) and not isinstance(value, str),
        "a list of tools, or of their names",
    ),
    "cache": (
        lambda value: value is None or isinstance(value, AnswerCache | str | Path),
        "a folder, or an AnswerCache",
    ),
    "budget": (
        lambda value: value is None or isinstance(value, Budget) or type(value) in (int, float),
        "an amount of USD, or a Budget",
    ),
    "cancel": (
        lambda value: value is None or isinstance(value, Cancel),
        "a greenroom.suite.Cancel",
    ),
    "plugins": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, str),
        "a list of objects with hooks as methods",
    ),
    "store": (
        lambda value: (
            value is None or isinstance(value, bool | str | Path) or hasattr(value, "runs")
        ),
        "a folder, a Store, or False",
    ),
    "resume": (lambda value: isinstance(value, bool | str), "the id of a run, or True"),
    **dict.fromkeys(HOOKS, (_is_hook, "a function")),
    **dict.fromkeys(_SWITCHES, (lambda value: isinstance(value, bool), "True or False")),
}
"""What the value of an option must be; those that are not here are looked at where they are used."""
