"""`greenroom labels`: trials that people grade blind, and how far they agree."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples


@click.group("labels")
def labels_group() -> None:
    """Let people grade trials blind, and see how far they agree with each other and with a judge."""


@labels_group.command(
    "draw",
    epilog=examples(
        "greenroom labels draw 20260102-09 --question 'Is the agent polite?' --metric polite -o labels/polite",
        "greenroom labels draw 20260102 20260103 --question 'Was the wish met?' --count 100 -o labels/met",
    ),
)
@click.argument("runs", nargs=-1, required=True)
@click.option("--question", required=True, metavar="TEXT", help="What people are asked.")
@click.option(
    "--metric",
    default="",
    metavar="NAME",
    help="The metric to compare people's grades with (default: the verdict on the whole trial).",
)
@click.option(
    "--count", type=click.IntRange(min=1), default=50, show_default=True, help="How many trials."
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="A different seed draws different trials.",
)
@click.option("-o", "--output", type=FILE, required=True, metavar="FOLDER", help="A new folder.")
@options.stored
@options.verbose_errors
def labels_draw(**given: Any) -> None:
    """Draw random trials of RUNS into a folder, to grade them there or on the page of `greenroom web`.

    Their conversations are copied, without secrets, so a run may be deleted later. One trial of each case
    is drawn before any case gets a second.
    """
    from greenroom.apps.cli.labels import draw

    draw(**given)


@labels_group.command("grade", epilog=examples("greenroom labels grade labels/polite --rater ana"))
@click.argument("folder", type=FILE)
@click.option("--rater", required=True, metavar="NAME", help="Who you are.")
@options.verbose_errors
def labels_grade(**given: Any) -> None:
    """Grade the conversations in FOLDER one after the other; no verdict and no agent is shown.

    Your grades are kept: leave at any time, and continue later.
    """
    from greenroom.apps.cli.labels import grade

    grade(**given)


@labels_group.command(
    "agreement",
    epilog=examples(
        "greenroom labels agreement labels/polite",
        "greenroom labels agreement labels/polite --json",
    ),
)
@click.argument("folder", type=FILE)
@options.as_json
@options.verbose_errors
def labels_agreement(**given: Any) -> None:
    """Say how far the people who graded FOLDER agree with each other and with the judge.

    Cohen's kappa for each pair, with its 95 % interval; Krippendorff's alpha for three or more people.
    """
    from greenroom.apps.cli.labels import show_agreement

    show_agreement(**given)


@labels_group.command(
    "calibrate",
    epilog=examples(
        "greenroom labels calibrate labels/polite 20260102-09",
        "greenroom labels calibrate labels/polite 20260102 20260103 --json",
    ),
)
@click.argument("folder", type=FILE)
@click.argument("runs", nargs=-1, required=True)
@options.stored
@options.as_json
@options.verbose_errors
def labels_calibrate(**given: Any) -> None:
    """Estimate the pass rate that people would give RUNS, from how often the judge agrees with FOLDER's grades.

    The interval accounts for chance in the run and in the grades. A judge that has changed since the trials
    were drawn is refused.
    """
    from greenroom.apps.cli.labels import calibrate

    calibrate(**given)
