"""The options of an evaluation, each declared once: its type, check, default, and how each entry point offers it.

`Options` is what type checkers read, and `OPTIONS` is made from it. The Python call, the command line with its
help and completion, the pytest plug-in, worker processes and the printed commands all read that table.
A new option is one entry in `Options`. Nothing heavy is imported: `greenroom --help` loads this too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast

from greenroom.suite.option_types import (
    MOST_WORKERS,
    Flag,
    Option,
    choice,
    is_baseline,
    is_budget,
    is_cache,
    is_cancel,
    is_config,
    is_fence,
    is_folder,
    is_hook,
    is_list,
    is_middleware,
    is_mocks,
    is_model,
    is_number,
    is_on,
    is_rates,
    is_resources,
    is_seconds,
    is_shard,
    is_store,
    is_tools,
    is_whole,
    is_word,
    is_workers,
    nearest,
    switch,
)

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig
    from greenroom.cases.parts import MetricLike
    from greenroom.ledger.functions import Anything
    from greenroom.models.model import Model
    from greenroom.results.report import Report
    from greenroom.simulation.recorded.replay import OnDrift
    from greenroom.store.store import Store
    from greenroom.suite.budget import Budget, UnknownPrices
    from greenroom.suite.cancel import Cancel
    from greenroom.suite.checks.contracts import Checking
    from greenroom.suite.hooks import OnCase, OnEvent, OnMetric, OnResult
    from greenroom.suite.settings import OnError
    from greenroom.suite.workers.ray.settings import Ray
    from greenroom.suite.workers.references import Workers
    from greenroom.world.answers import AnswerCache
    from greenroom.world.middleware.stack import MiddlewareStack
    from greenroom.world.resources import Factories

CONCURRENCY = 4
METRIC_SECONDS = 60.0
METRIC_ATTEMPTS = 3

Values = Mapping[str, Any]
"""Every option of an evaluation by its name, with its default where no value was given."""

_HOOK = Option(is_hook, "a function")


class Options(TypedDict, total=False):
    """The options of an evaluation, in the order in which help lists them."""

    config: Annotated[
        "EvalConfig | str | Path | None",
        Option(
            is_config,
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
            lambda value: value is None or is_whole(value) or is_word(value, "auto"),
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
            is_whole,
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
            is_workers,
            f"a whole number from 1 to {MOST_WORKERS}, or Workers(...)",
            flag=Flag(
                names=("--workers",),
                help="Run cases in N processes, one case each: for agents that block or compute.",
                metavar="N",
                in_watch=True,
            ),
        ),
    ]
    on: Annotated[
        "str | Ray | None",
        Option(
            is_on,
            "'ray', 'ray://HOST:PORT', or Ray(...)",
            flag=Flag(
                names=("--on",),
                help="Run cases on the nodes of a Ray cluster: ray for the one of this machine or $RAY_ADDRESS, or "
                "ray://HOST:PORT; with ?env=NAME,NAME for variables that its nodes need.",
                metavar="ray[://HOST:PORT]",
                in_watch=True,
            ),
        ),
    ]
    rate: Annotated[
        Mapping[str, str | float] | Collection[str],
        Option(
            is_rates,
            "rates by model, such as {'openai:gpt-x': '8000/min'} or ['openai:gpt-x=20/s']",
            (),
            per_trial=True,
            flag=Flag(
                names=("--rate",),
                help="How often a model may be asked, by all cases, workers and nodes together: "
                "openai:gpt-x=8000/min, or /s, or /h; may be repeated.",
                metavar="MODEL=N/min",
                kind="list",
                in_watch=True,
            ),
            setting="How often a model may be asked, MODEL=N/min; may be repeated.",
        ),
    ]
    fail_fast: Annotated[
        bool,
        switch(
            Flag(
                names=("--fail-fast",),
                help="Skip the remaining cases as soon as one does not pass.",
                kind="switch",
                in_watch=True,
            )
        ),
    ]
    mocks: Annotated[
        "Mapping[str, Anything]",
        Option(
            is_mocks,
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
    model: Annotated[
        "Model | str | None",
        Option(
            is_model,
            "a model such as Scripted(...), a name such as 'openai:gpt-4o-mini', or models.py:name",
            per_trial=True,
            flag=Flag(
                names=("--model",),
                help="Let this model answer in place of the agent's own: openai:gpt-4o-mini, or "
                "models.py:name.",
                metavar="NAME",
                kind="file",
                in_watch=True,
            ),
            setting="Let this model answer in place of the agent's own: a name, or models.py:name.",
        ),
    ]
    resources: Annotated[
        "Factories | str",
        Option(
            is_resources,
            "a mapping from names to functions that open them, or a reference like resources.py:name",
            {},
            per_trial=True,
            flag=Flag(
                names=("--resources",),
                help="Resources of the tools that run for real: resources.py:name, a mapping from "
                "each resource's name to a function that opens it.",
                metavar="FILE:NAME",
                kind="file",
                in_watch=True,
            ),
            setting="Resources of the tools that run for real: resources.py:name.",
        ),
    ]
    middleware: Annotated[
        "Collection[object] | MiddlewareStack",
        Option(
            is_middleware,
            "a list of middleware, or of references like audit.py:name",
            (),
            per_trial=True,
            flag=Flag(
                names=("--middleware",),
                help="Middleware around the agent's model and tool calls: audit.py:name, where name is one "
                "middleware, a list, or a function that returns them. May be repeated; the first is the "
                "outermost.",
                metavar="FILE:NAME",
                kind="files",
                in_watch=True,
            ),
            setting="Middleware around the agent's model and tool calls: audit.py:name; may be repeated.",
        ),
    ]
    allow_tools: Annotated[
        Collection[object],
        Option(
            is_tools,
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
        switch(
            Flag(
                names=("--allow-opaque",),
                help="Accept an agent whose tools run where no gate can see them; results say so.",
                kind="switch",
                in_watch=True,
            ),
            per_trial=True,
        ),
    ]
    allow_unfenced: Annotated[bool, switch(per_trial=True)]
    fence: Annotated[
        str,
        Option(
            is_fence,
            "'process', 'kernel', or 'kernel:HOST,HOST'",
            "process",
            choices=("process", "kernel"),
            per_trial=True,
            flag=Flag(
                names=("--fence",),
                help="What enforces the fence: each process itself (the default), or the kernel as "
                "well, which lets worker processes reach only model providers, the hosts of "
                "live tools, and the hosts named here.",
                metavar="process|kernel[:HOST,...]",
                in_watch=True,
            ),
            setting="What enforces the fence: process (the default), kernel, or kernel:HOST,HOST.",
        ),
    ]
    check: Annotated[
        "Checking",
        choice(
            "warn",
            "error",
            "off",
            flag=Flag(
                names=("--check",),
                help="Check the agent's contracts before the first model call, and note errors (the "
                "default) or stop at them; `off` skips the check.",
                metavar="[warn|error|off]",
                in_watch=True,
            ),
        ),
    ]
    min_pass_rate: Annotated[
        float,
        Option(
            lambda value: is_number(value) and 0 <= value <= 1,
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
        Option(is_baseline, "a Report (Report.load(...)), or a list of them"),
    ]
    confirm: Annotated[
        int | None,
        Option(
            lambda value: value is None or (type(value) is int and value >= 0),
            "a whole number of 0 or more",
            needs=("baseline",),
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
        Option(is_list, "a list of metrics, or of their names", (), per_trial=True),
    ]
    seconds_per_metric: Annotated[
        float | None,
        Option(
            is_seconds,
            "a number of seconds above 0",
            per_trial=True,
            flag=Flag(
                names=("--seconds-per-metric",),
                help=f"How long a metric may take (default: {METRIC_SECONDS:g}, or what the config says); "
                "after that it is unmeasured.",
                metavar="SECONDS",
                in_watch=True,
            ),
            setting="How long a metric may take, in seconds; after that it is unmeasured.",
        ),
    ]
    seconds_per_case: Annotated[
        float | None,
        Option(
            is_seconds,
            "a number of seconds above 0",
            per_trial=True,
            flag=Flag(
                names=("--seconds-per-case",),
                help="How long a conversation may take at most; a case with its own lower limit keeps it.",
                metavar="SECONDS",
                in_watch=True,
            ),
            setting="How long a conversation may take at most, in seconds.",
        ),
    ]
    metric_attempts: Annotated[
        int,
        Option(
            is_whole,
            "a whole number of 1 or more",
            METRIC_ATTEMPTS,
            per_trial=True,
            flag=Flag(
                names=("--metric-attempts",),
                help="How often to try a metric that hits a rate limit, a time-out or a lost "
                f"connection (default: {METRIC_ATTEMPTS}).",
                metavar="N",
                in_watch=True,
            ),
            setting="How often to try a metric that hits a rate limit, a time-out or a lost connection.",
        ),
    ]
    cache: Annotated[
        "AnswerCache | str | Path | None",
        Option(is_cache, "a folder, or an AnswerCache", per_trial=True),
    ]
    budget: Annotated[
        "float | Budget | None",
        Option(
            is_budget,
            "an amount of USD above 0, or a Budget",
            flag=Flag(
                names=("--budget",),
                help="What the run may cost: no case begins that could cost more than is left.",
                metavar="USD",
            ),
        ),
    ]
    unknown_prices: Annotated[
        "UnknownPrices",
        choice(
            "refuse",
            "allow",
            needs=("budget",),
            flag=Flag(
                names=("--unknown-prices",),
                help="With --budget: whether to continue after asking a model whose price is unknown "
                "(default: refuse).",
                metavar="[refuse|allow]",
            ),
        ),
    ]
    on_error: Annotated["OnError", choice("collect", "stop", "skip")]
    cancel: Annotated["Cancel | None", Option(is_cancel, "a greenroom.suite.Cancel")]
    store: Annotated[
        "Store | str | Path | bool | None",
        Option(
            is_store,
            "a folder, the address of a server, a Store, or False",
            flag=Flag(
                names=("--store",),
                help="Keep runs in this folder, or on this server (postgresql://…), instead of "
                "$GREENROOM_STORE or .greenroom.",
                metavar="DIR|URL",
                kind="folder",
            ),
            setting="Record every rehearsal as a run in this folder.",
        ),
    ]
    resume: Annotated[
        str | bool,
        Option(lambda value: isinstance(value, bool | str), "the id of a run, or True", False),
    ]
    resume_or_new: Annotated[
        str | None,
        Option(
            lambda value: value is None or (isinstance(value, str) and bool(value.strip())),
            "a name for the run",
            None,
            flag=Flag(
                names=("--resume-or-new",),
                help="Resume the unfinished run of this set that was started under NAME, or start it; "
                "with --shard, several processes share that run.",
                metavar="NAME",
                kind="value",
            ),
        ),
    ]
    shard: Annotated[
        str,
        Option(
            is_shard,
            "which part of how many, such as '2/4'",
            "",
            flag=Flag(
                names=("--shard",),
                help="Only every PARTS-th case, from the N-th on; `eval merge` puts the reports together, or "
                "--resume-or-new makes one run of them.",
                metavar="N/PARTS",
                in_watch=True,
            ),
        ),
    ]
    accept_changes: Annotated[
        bool,
        switch(
            Flag(
                names=("--accept-changes",),
                help="With --resume or --resume-or-new: continue although the agent, a case or a metric has "
                "changed.",
                kind="switch",
            ),
            needs=("resume", "resume_or_new"),
        ),
    ]
    retry_errors: Annotated[
        bool,
        switch(
            Flag(
                names=("--retry-errors",),
                help="With --resume: run trials that ended in an error again.",
                kind="switch",
            ),
            needs=("resume",),
        ),
    ]
    omit_questions: Annotated[
        bool,
        switch(
            Flag(
                names=("--omit-questions",),
                help="Leave the requests to models out of the ledgers.",
                kind="switch",
                in_watch=True,
            ),
            per_trial=True,
            setting="Leave the requests to models out of the ledgers.",
        ),
    ]
    record: Annotated[
        "str | Path | None",
        Option(
            is_folder,
            "a folder",
            flag=Flag(
                names=("--record",),
                help="Keep the models' answers in this folder, so that --replay can repeat them.",
                metavar="DIR",
                kind="folder",
            ),
            setting="Keep the models' answers in this folder, so that `replay` can repeat them.",
        ),
    ]
    replay: Annotated[
        "str | Path | None",
        Option(
            is_folder,
            "a folder with a recording, or the id of a run",
            per_trial=True,
            flag=Flag(
                names=("--replay",),
                help="Ask no model: the agent, users and judges are answered from a recording in "
                "this folder, or from a run in the store. Results say so.",
                metavar="DIR|RUN",
                kind="folder",
                in_watch=True,
            ),
            setting="Ask no model: the recording in this folder answers. Results say so.",
        ),
    ]
    on_drift: Annotated[
        "OnDrift",
        choice(
            "error",
            "live",
            needs=("replay",),
            per_trial=True,
            flag=Flag(
                names=("--on-drift",),
                help="With --replay: what to do if something is asked that was not recorded: stop "
                "with an error that says what differs (the default), or ask the model.",
                metavar="[error|live]",
                in_watch=True,
            ),
            setting="With `replay`: whether a question that was not recorded is an error, or asked live.",
        ),
    ]
    keep_ledgers: Annotated[bool, switch(default=True)]
    on_case_start: Annotated["OnCase | None", _HOOK]
    on_case_complete: Annotated["OnResult | None", _HOOK]
    on_metric_complete: Annotated["OnMetric | None", _HOOK]
    on_event: Annotated["OnEvent | None", _HOOK]
    plugins: Annotated[
        "Iterable[object]", Option(is_list, "a list of objects with hooks as methods", ())
    ]
    progress: Annotated[bool, switch(default=True)]


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
        those = " or ".join(f"{one}=" for one in needs)
        raise _bad_input(f"{name}={given[name]!r} is for {those}; give that too, or leave it out.")
    _check_minimum(given.get("trials"), given.get("min_pass_rate", 1))


def _check_minimum(trials: object, minimum: float) -> None:
    """Refuse trials that nothing could end early, and a minimum that nothing would look at."""
    if trials == "auto" and minimum == 1:
        raise _bad_input(
            "trials='auto' needs a min_pass_rate below 1: no number of trials shows that a case always passes."
        )
    if trials != "auto" and minimum != 1:
        raise _bad_input(
            f"min_pass_rate={minimum!r} says when trials='auto' may stop; give that too, or leave it out. "
            f"Whether a report reaches a minimum is for greenroom.results.Gate."
        )


def lacking(given: Values) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Options that mean nothing without one of some others, which are not given; and those others."""
    for name, option in OPTIONS.items():
        if not option.needs or any(_is_given(given.get(other)) for other in option.needs):
            continue
        # A value that means none, or the default, asks for nothing.
        if given.get(name) not in (None, False, 0, option.default):
            yield name, option.needs


def _is_given(value: object) -> bool:
    return value is not None and value is not False


def complete(options: Options) -> Values:
    """Every option of an evaluation, checked: as given, else its default."""
    check(options)
    values: dict[str, Any] = {name: option.default for name, option in OPTIONS.items()}
    for name, value in options.items():
        # An iterator can be read only once, so it is read here.
        values[name] = list(cast("Iterator[Any]", value)) if isinstance(value, Iterator) else value
    return values


def _bad_input(message: str) -> Exception:
    from greenroom.errors import BadInput  # a pytest run without rehearsals loads no room

    return BadInput(message)
