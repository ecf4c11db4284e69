"""`greenroom eval`: the commands that judge recorded results; no agent runs."""

from dataclasses import fields
from typing import Any

import click

from greenroom.apps.cli import gate_options, options
from greenroom.apps.cli.options import EXIT_CODES, FILE, examples


@click.command(
    "compare",
    epilog=examples(
        "greenroom eval compare new.json --baseline old.json",
        "greenroom eval compare monday.json tuesday.json --baseline good.json -o compared.json",
        "greenroom eval compare 20260102-090000-1f3a 20260103-090000-77c0",
    ),
)
@click.argument("reports", nargs=-1, required=True, type=FILE)
@gate_options.baselines
@gate_options.against
@options.max_errors
@gate_options.fail_on
@click.option(
    "-f",
    "--format",
    "shown_as",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="How the comparison is printed.",
)
@options.output(
    help="Also write the comparison to this file: Markdown if it ends in .md, else JSON."
)
@options.stored
@options.as_json
def eval_compare(
    threshold: float,
    gate_tags: tuple[str, ...],
    max_errors: int,
    fail_on: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Compare REPORTS with a baseline.

    Each of them is a file written by `eval run -f json`, or the id of a run, as `runs list` shows
    it. Without --baseline, the first report is the baseline. Exit code 1 if the pass rate, the mean of a metric or
    a case got significantly worse, 2 if cases ended in errors, 3 if nothing can be compared.
    """
    from greenroom.apps.cli.judging import compare_reports
    from greenroom.results import Gate

    gate: Any = {"threshold": threshold, "tags": gate_tags, "max_errors": max_errors}
    gate["fail_on"] = ("regression", *fail_on)
    if as_json:
        given["shown_as"] = "json"
    compare_reports(gate=Gate(**gate), **given)


@click.command(
    "merge",
    epilog=examples(
        "greenroom eval merge shard-*.json -f junit -f markdown -o reports/ --baseline main.json",
    ),
)
@click.argument("reports", nargs=-1, required=True, type=FILE)
@gate_options.of_recorded
@options.formats
@options.stored
@options.verbose
@options.quiet
@options.as_json
def eval_merge(
    reports: tuple[str, ...],
    baselines: tuple[str, ...],
    store: str,
    **given: Any,
) -> None:
    """Put the REPORTS of shards together, and judge them as one.

    Each is a file written by `eval run --shard N/PARTS -f json`. A trial that is in two of them is
    refused. The exit code is that of a run of all cases at once.
    """
    options.loudness(given)
    from greenroom.apps.cli.judging import merge_reports
    from greenroom.apps.cli.report_output import Showing

    gate = gate_options.gate_of(given, baselines)
    merge_reports(reports, baselines, gate, store, Showing(**given))


@click.command(
    "rescore",
    epilog=examples(
        "greenroom eval rescore 20260102-090000-1f3a",
        "greenroom eval rescore 20260102-090000-1f3a --config strict.json",
        "greenroom eval rescore 20260102 cases.yaml -f json=rescored.json",
    ),
)
@click.argument("run")
@click.argument("cases", required=False, default="", type=FILE)
@options.config
@options.formats
@options.stored
@options.no_cache
@options.verbose
@options.quiet
@options.as_json
def eval_rescore(
    run: str, cases: str, config: str, store: str, no_cache: bool, **given: Any
) -> None:
    """Measure an earlier RUN again, without the agent, and show which verdicts flip.

    --config gives the criteria. CASES, which may have changed since, give what each case expects and its
    own metrics; without CASES, the recorded ones are used. Without both, what the run measured is measured
    again; what was given to the run, as by its config, stays as recorded. The run itself is not changed.
    Trials that broke when they were run stay errors. Exit code 2 if another trial could not be measured,
    or if all of them broke.
    """
    options.loudness(given)
    from greenroom.apps.cli.judging import rescore_run
    from greenroom.apps.cli.report_output import Showing

    rescore_run(run, cases, config, store, no_cache, Showing(**given))


@click.command(
    "score",
    epilog=examples(
        "greenroom eval score traces/*.json --metrics safety_v1,called:lookup",
        "greenroom eval score helm.json --cases helm.evalset.json --metrics tool_trajectory_avg_score",
        "greenroom eval score ledgers/ --metrics metrics.py:polite -f html -o scored.html",
        "greenroom eval score prod/ --metrics 'turns_within={\"at_most\": 6}' --baseline last-week.json",
    )
    + f"\n\n{EXIT_CODES}",
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@options.metrics
@click.option(
    "--cases",
    type=FILE,
    default="",
    metavar="CASES",
    help="Compare each conversation with its case in this set, found by id or by the user's first words.",
)
@options.config
@options.trace_reader
@gate_options.of_recorded
@options.formats
@options.stored
@options.no_cache
@options.verbose
@options.quiet
@options.as_json
def eval_score(**given: Any) -> None:
    """Measure conversations that were recorded elsewhere, in FILES or folders of them.

    They may be traces (OTLP, Jaeger), logs of other tools, or ledgers; the format is detected. No agent
    runs. What a recording does not contain is unknown: a metric that needs it is unmeasured, which is an
    error (--max-errors). A file that cannot be read leads to exit code 3, after the others are measured.
    """
    options.loudness(given)
    from greenroom.apps.cli.judging import ScoreRequest, score_files
    from greenroom.apps.cli.report_output import Showing

    gate = gate_options.gate_of(given, given["baselines"])
    asked = {field.name: given.pop(field.name) for field in fields(ScoreRequest)}
    score_files(ScoreRequest(**asked), gate, Showing(**given))


@click.command("clear-cache")
def eval_clear_cache() -> None:
    """Delete the cached answers of judges, in $GREENROOM_JUDGES or .greenroom/judges."""
    from greenroom.apps.cli.exits import put_out
    from greenroom.world.answers import AnswerCache

    cache = AnswerCache()
    put_out(f"deleted {cache.clear()} answers from {cache.path}")


JUDGING = (eval_compare, eval_merge, eval_rescore, eval_score, eval_clear_cache)
