"""`greenroom eval`: the commands that play cases and judge, and their options."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import EXIT_CODES, FILE, examples

_FORMATS = "json, junit, html, markdown or console; json=PATH says where"
_RUN_EXAMPLES = examples(
    "greenroom eval run weather.py",
    "greenroom eval run weather.py cases.yaml --filter tag:smoke",
    "greenroom eval run my_agent/ 'tests/*.evalset.json' --min-pass-rate 0.9",
    "greenroom eval run weather.py --allow-tool to_celsius --fail-fast",
    "greenroom eval run weather.py:old --agent weather.py:new cases.yaml",
    "greenroom eval run weather.py cases.yaml -f junit -f html -o reports/",
)


@click.group("eval")
def eval_group() -> None:
    """Rehearse an agent on cases and judge what happened."""


def _which_cases(command: Any) -> Any:
    """The options of `run` and `watch` that say what is played, by whom, and how it is judged."""
    for option in (
        options.verbose,
        click.option(
            "--no-cache", is_flag=True, help="Ask judges anew, whatever they answered before."
        ),
        options.tools,
        click.option("--fail-fast", is_flag=True, help="Skip the rest once a case did not pass."),
        options.concurrency,
        click.option(
            "--trials",
            "--num-runs",
            "--num_runs",
            "trials",
            type=click.IntRange(min=1),
            metavar="N",
            help="How often each case is played; 1, or what its set says.",
        ),
        click.option(
            "--model",
            default="",
            metavar="NAME",
            help="Let this model play the agent: openai:gpt-4o-mini, or models.py:name.",
        ),
        click.option(
            "--seed",
            type=int,
            default=0,
            show_default=True,
            metavar="N",
            help="Which sample is drawn.",
        ),
        click.option(
            "--sample",
            type=click.IntRange(min=1),
            metavar="N",
            help="Only N cases drawn by lot, the same ones everywhere.",
        ),
        click.option(
            "--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N cases."
        ),
        options.filters,
        options.config,
        click.option("--test-file", type=FILE, default="", hidden=True),
        click.argument("cases", required=False, default="", type=FILE),
        click.argument("agent", type=FILE),
    ):
        command = option(command)
    return command


@eval_group.command("run", epilog=f"{_RUN_EXAMPLES}\n\n{EXIT_CODES}")
@_which_cases
@click.option(
    "--agent",
    "variants",
    multiple=True,
    type=FILE,
    metavar="AGENT",
    help="Play another agent on the same cases, to see them side by side; may be repeated.",
)
@click.option(
    "--min-pass-rate",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="FLOAT",
    help="The share of evaluated cases that must pass, from 0 to 1.",
)
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="How many cases may end in an error, unmeasured ones among them, before exit code 2.",
)
@click.option(
    "--baseline",
    type=FILE,
    default="",
    metavar="REPORT",
    help="Compare with this earlier report; what got worse is exit code 1.",
)
@click.option(
    "-f",
    "--format",
    "formats",
    multiple=True,
    metavar="FORMAT",
    help=f"Also write the report as {_FORMATS}; may be repeated.",
)
@options.output(help="Where reports go: a file, or a folder if there are several formats.")
@click.option(
    "--save-failures",
    type=FILE,
    default="",
    metavar="FILE",
    help="Write the cases that did not pass to an eval-set file.",
)
@click.option(
    "--suggest-mocks",
    is_flag=True,
    help="Play nothing; print mocks for the tools that lack one, to paste or for --mocks.",
)
@click.option("-q", "--quiet", is_flag=True, help="Nothing but the line of counts.")
@options.as_json
@click.option("--first", multiple=True, hidden=True)
@click.option("--leave-report", type=FILE, default="", hidden=True)
def eval_run(max_concurrency: int, parallel: bool, **given: Any) -> int:
    """Rehearse AGENT on CASES and report what came of it.

    AGENT is a path with an optional name in it: agent.py, agent.py:my_agent, a folder, or a dotted
    module. CASES may be such a path too, an eval-set file (.json, .yaml, .jsonl, .csv), a folder of
    them or a glob; cases.json:first,second takes two cases of it. Without CASES every case in
    AGENT's file is played, and every eval set that lies beside it.
    """
    if given["quiet"] and (given["verbose"] or given["as_json"]):
        other = "--verbose" if given["verbose"] else "--json"
        raise click.UsageError(f"{other} and --quiet contradict each other; give one of them.")
    from greenroom.apps.cli.evaluation import run
    from greenroom.apps.cli.orders import Order

    return run(Order(concurrency=max_concurrency if parallel else 1, **_one_place(given)))


def _one_place(given: dict[str, Any]) -> dict[str, Any]:
    """The cases, which may be named in two ways but not in both."""
    file = given.pop("test_file")
    if file and given["cases"]:
        raise click.UsageError("--test-file names the cases, and CASES does too; give one of them.")
    return {**given, "cases": given["cases"] or file}


@eval_group.command(
    "watch",
    epilog=examples(
        "greenroom eval watch weather.py",
        "greenroom eval watch my_agent/ evals/ --filter tag:smoke --notify",
    ),
)
@_which_cases
@click.option(
    "-i",
    "--interval",
    type=click.FloatRange(min=0.05),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="How long to gather changes before playing again.",
)
@click.option("--notify", is_flag=True, help="Tell the desktop, or ring the bell, when it is over.")
def eval_watch(max_concurrency: int, parallel: bool, **given: Any) -> int:
    """Play the cases again whenever the agent, the cases or the config change.

    Each time in a fresh process, those first that failed or changed. The last verdict stays on the
    screen. Ctrl-C ends it. Needs the extra `watch`.
    """
    from greenroom.apps.cli.orders import Order
    from greenroom.apps.cli.watching import watch

    interval, notify = given.pop("interval"), given.pop("notify")
    order = Order(concurrency=max_concurrency if parallel else 1, **_one_place(given))
    return watch(order, interval, notify)


@eval_group.command(
    "compare",
    epilog=examples(
        "greenroom eval compare new.json --baseline old.json",
        "greenroom eval compare monday.json tuesday.json --baseline good.json -o compared.json",
    ),
)
@click.argument("reports", nargs=-1, required=True, type=FILE)
@click.option("--baseline", type=FILE, default="", metavar="REPORT", help="What to compare with.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    metavar="FLOAT",
    help="By how much a score must fall to have got worse.",
)
@options.output(help="Also write the comparison to this JSON file.")
@options.as_json
def eval_compare(**given: Any) -> int:
    """Compare REPORTS, written by `eval run -f json`, with a baseline.

    Without --baseline the first report is it. Exit code 1 if a case got worse.
    """
    from greenroom.apps.cli.comparing import compare_reports

    return compare_reports(**given)


@eval_group.command("clear-cache")
def eval_clear_cache() -> int:
    """Forget what judges answered before, in $GREENROOM_JUDGES or .greenroom/judges."""
    from greenroom.world.answers import AnswerCache

    cache = AnswerCache()
    forgotten = cache.clear()
    click.echo(f"{forgotten} answers forgotten in {cache.path}")
    return 0
