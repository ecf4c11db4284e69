"""The options of the quality gate: what is good enough, and what counts as worse than a baseline."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE

if TYPE_CHECKING:
    from greenroom.results import Gate

against = options.together(
    click.option(
        "--gate-tag",
        "gate_tags",
        multiple=True,
        metavar="TAG",
        help="Also apply the quality gate to the cases with this tag, as a group; may be repeated.",
    ),
    click.option(
        "--threshold",
        type=options.Number(0, 1),
        default=0.05,
        show_default=True,
        metavar="FLOAT",
        help="How far the mean of a metric must fall to count as worse.",
    ),
)
"""The options that say what counts as worse than a baseline."""


fail_on = click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(["regression", "unclear", "removed", "skipped"]),
    help="What else leads to exit code 1, besides getting significantly worse than the baseline: "
    "what may have got worse, a case that only the baseline has, one that was skipped. May be "
    "repeated.",
)


of_run = options.together(
    against,
    click.option(
        "--baseline",
        "baselines",
        multiple=True,
        type=FILE,
        metavar="REPORT",
        help="Compare with this earlier report or run: exit code 1 if anything got significantly "
        "worse. No minimum applies then unless --min-pass-rate is given. Several count together.",
    ),
    fail_on,
    options.max_errors,
    click.option(
        "--confident",
        is_flag=True,
        help="The lower end of the pass rate's 95 % interval must reach the minimum too; needs a "
        "minimum below 1.",
    ),
)
"""The options of `run` that say what is good enough."""


baselines = click.option(
    "--baseline",
    "baselines",
    multiple=True,
    type=FILE,
    metavar="REPORT",
    help="The report or run to compare with; several count together.",
)
min_pass_rate = click.option(
    "--min-pass-rate",
    type=options.Number(0, 1),
    metavar="SHARE",
    help="The share of evaluated cases that must pass (default: all, or as many as in the baseline).",
)


of_recorded = options.together(options.max_errors, against, min_pass_rate, baselines)
"""The options of `merge` and `score`, which judge recorded trials the way a run is judged."""


def check_baseline(given: dict[str, Any], baselines: Sequence[str]) -> None:
    """Refuse options that only mean something against a baseline, if there is none."""
    if baselines:
        return
    against = [name for name in given.get("fail_on", ()) if name != "skipped"]
    for wrong, option in (
        (against, f"--fail-on {''.join(against[:1])}"),
        (given["gate_tags"], "--gate-tag"),
        (is_written("threshold"), "--threshold"),
    ):
        if wrong:
            raise click.UsageError(f"{option} needs a --baseline.")


def is_written(option: str) -> bool:
    """Whether an option that has a default was written on the command line."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def gate_of(given: dict[str, Any], baselines: Sequence[str]) -> "Gate":
    """The gate that these options describe; they are removed from `given`."""
    from greenroom.results import Gate  # loaded when a command runs, not for its help

    check_baseline(given, baselines)
    return Gate(
        min_pass_rate=given.pop("min_pass_rate"),
        threshold=given.pop("threshold"),
        tags=given.pop("gate_tags"),
        max_errors=given.pop("max_errors"),
    )
