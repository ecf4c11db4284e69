"""What an evaluation may be told; the same for `evaluate`, `rehearse` and `stream`."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from greenroom.cases.parts import MetricLike
from greenroom.suite.budget import Budget
from greenroom.suite.cancelling import Cancel
from greenroom.suite.hooks import OnCase, OnEvent, OnMetric, OnResult
from greenroom.suite.playing import OnError
from greenroom.world.answers import AnswerCache

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig
    from greenroom.store.store import Store
    from greenroom.suite.workers.referring import Workers


class Options(TypedDict, total=False):
    """Everything an evaluation may be told, with what holds unless it is."""

    # What is played, and how it is measured
    trials: int | Literal["auto"] | None  # None: as often as the set says
    min_pass_rate: float  # 1.0; what trials="auto" is to find out about
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

    # How it goes on
    concurrency: int  # 4
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
HOOKS = ("on_case_start", "on_case_complete", "on_metric_complete", "on_event")
