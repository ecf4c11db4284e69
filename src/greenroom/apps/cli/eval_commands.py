"""`greenroom eval`: the commands that run cases, and their options."""

from typing import Any

import click

from greenroom.apps.cli import gate_options, options
from greenroom.apps.cli.options import EXIT_CODES, FILE, examples
from greenroom.suite.options import OPTIONS, lacking

_RUN_EXAMPLES = examples(
    "greenroom eval run weather.py",
    "greenroom eval run weather.py cases.yaml --filter tag:smoke",
    "greenroom eval run my_agent/ 'tests/*.evalset.json' --min-pass-rate 0.9",
    "greenroom eval run weather.py --allow-tool to_celsius --fail-fast",
    "greenroom eval run weather.py:old --agent weather.py:new cases.yaml",
    "greenroom eval run weather.py cases.yaml -f junit -f html -o reports/",
    "greenroom eval run weather.py cases.yaml --trials 5 --budget 2.50",
    "greenroom eval run weather.py cases.yaml --trials 5 --resume",
    "greenroom eval run weather.py cases.yaml --trials 5 --dry-run",
)


@click.group("eval")
def eval_group() -> None:
    """Rehearse an agent on cases and judge what happened."""


_which_cases = options.together(
    options.verbose,
    options.no_cache,
    options.import_network,
    options.parallel,
    options.of_evaluation(in_watch=True),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="The seed of --sample.",
    ),
    click.option(
        "--sample",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only N cases chosen at random, the same on every machine.",
    ),
    click.option(
        "--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N cases."
    ),
    options.filters,
    click.option("--test-file", type=FILE, default="", hidden=True),
    click.argument("cases", required=False, default="", type=FILE),
    click.argument("agent", type=FILE),
)
"""The options of `run` and `watch`: which agent and cases, and how they are run and judged."""


def _named_run(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    """Refuse what is not an id: click reads an agent right after `--resume` as one."""
    if given and not given.replace("-", "").isalnum():
        raise click.UsageError(
            f"--resume {given}: that is not the id of a run. Put --resume after AGENT and CASES."
        )
    return given


_kept_where = options.together(
    click.option(
        "--resume",
        is_flag=False,
        flag_value="",
        default=None,
        metavar="[RUN]",
        callback=_named_run,
        help="Resume this run, or the latest unfinished one of these cases (with --retry-errors also one "
        "with errors): finished trials do not run again. Put it after AGENT and CASES.",
    ),
    click.option("--no-store", is_flag=True, help="Do not record the run."),
)
"""The options of `run` for recording and resuming that are not in the table."""


@eval_group.command("run", epilog=f"{_RUN_EXAMPLES}\n\n{EXIT_CODES}")
@_which_cases
@click.option(
    "--agent",
    "variants",
    multiple=True,
    type=FILE,
    metavar="AGENT",
    help="Also run this agent on the same cases, to compare them; may be repeated.",
)
@options.of_evaluation(in_watch=False)
@gate_options.of_run
@_kept_where
@options.formats
@click.option(
    "--save-failures",
    type=FILE,
    default="",
    metavar="FILE",
    help="Write the cases that did not pass, with any of the agents, to this eval-set file.",
)
@click.option(
    "--suggest-mocks",
    is_flag=True,
    help="Run nothing; print mocks for the tools that have none, to paste or for --mocks.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Run nothing and ask no model; print how many calls, tokens and dollars a run would take.",
)
@click.option(
    "--from",
    "learnt",
    multiple=True,
    metavar="RUN",
    help="With --dry-run: learn from this recorded run, instead of the latest one like it; may be "
    "repeated.",
)
@options.quiet
@options.as_json
@click.option("--first", multiple=True, hidden=True)
@click.option("--leave-report", type=FILE, default="", hidden=True)
def eval_run(**given: object) -> None:
    """Rehearse AGENT on CASES and report the results.

    AGENT is a path with an optional name in it: agent.py, agent.py:my_agent, a folder, or a dotted
    module. CASES may be such a path too, an eval-set file (.json, .yaml, .jsonl, .csv), a folder of
    them or a glob; cases.json:first,second takes two cases of it. Without CASES, every case in
    AGENT's file runs, and every eval set next to it.

    Each finished trial is recorded at once. An interrupted run continues with --resume.
    """
    options.loudness(given)
    _check_together(given)
    from greenroom.apps.cli.evaluation import run
    from greenroom.apps.cli.request import Order

    run(Order.of(_one_place(given)))


_TWO_STORES = "--store and --no-store contradict each other"


def _check_together(given: dict[str, Any]) -> None:
    """Refuse options that only mean something together with others."""
    has_resume = given["resume"] is not None
    has_baseline = bool(given["baselines"])
    never_sure = "no number of trials shows that a case always passes"
    has_minimum = given["min_pass_rate"] is not None and given["min_pass_rate"] < 1
    for wrong, why in (
        (given["no_store"] and given["store"], _TWO_STORES),
        (has_resume and given["no_store"], "--resume needs a store; leave --no-store out"),
        (
            given["resume_or_new"] and (has_resume or given["no_store"] or given["variants"]),
            "--resume-or-new is for one agent and a store; leave --resume, --no-store and --agent out",
        ),
        (
            has_resume and given["variants"],
            "--resume continues the run of one agent; leave --agent out",
        ),
        (
            given["trials"] == "auto" and not has_minimum,
            f"--trials auto needs a --min-pass-rate below 1: {never_sure}",
        ),
        (
            given["confident"] and not has_minimum,
            f"--confident needs a --min-pass-rate below 1: {never_sure}",
        ),
        (
            gate_options.is_written("seed") and not given["sample"],
            "--seed draws a --sample; give that too (a case's own `seed` is for models)",
        ),
        (given["learnt"] and not given["dry_run"], "--from is for --dry-run"),
        (
            given["dry_run"] and given["suggest_mocks"],
            "--dry-run and --suggest-mocks each replace the run; give one of them",
        ),
        (
            (given["dry_run"] or given["suggest_mocks"])
            and (given["formats"] or given["output"] or given["save_failures"]),
            "--dry-run and --suggest-mocks write no report; leave -f, -o and --save-failures out, or give --json",
        ),
    ):
        if wrong:
            raise click.UsageError(f"{why}.")
    gate_options.check_baseline(given, given["baselines"])
    others = {"resume": has_resume or None, "baseline": has_baseline or None}
    others["replay"] = given["replay"] or None
    _check_needs({**given, **others})


def _check_needs(given: dict[str, object]) -> None:
    """Refuse an option that means nothing without another one."""
    for name, needs in lacking(given):
        those = " or ".join(f"--{one.replace('_', '-')}" for one in needs)
        raise click.UsageError(f"{_word(name)} is for {those}; give that too, or leave it out.")


def _word(name: str) -> str:
    flag = OPTIONS[name].flag
    return f"--{name}" if flag is None else flag.names[0]


def _one_place(given: dict[str, Any]) -> dict[str, object]:
    """Settle cases and concurrency, which can each be given in two ways, but not in both at once."""
    file = given.pop("test_file")
    if file and given["cases"]:
        raise click.UsageError("--test-file names the cases, and CASES does too; give one of them.")
    most = options.at_once(given["concurrency"], given.pop("parallel"))
    return {**given, "cases": given["cases"] or file, "concurrency": most}


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
    type=options.Number(min=0.05),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="How long to collect changes before running again.",
)
@click.option(
    "--notify", is_flag=True, help="Notify the desktop, or ring the bell, when a run ends."
)
def eval_watch(**given: Any) -> None:
    """Run the cases again whenever the agent, the cases or the config change.

    Each run is a new process, and begins with the cases that failed or changed. The last verdict
    stays on the screen. Ctrl-C ends it. Needs the extra `watch`.
    """
    from greenroom.apps.cli.request import Order
    from greenroom.apps.cli.watch import watch

    interval, notify = given.pop("interval"), given.pop("notify")
    watch(Order.of(_one_place(given)), interval, notify)


_MUTANT_CODES = """\b
Exit codes, the first that applies:
  129, 130, 143  ended by SIGHUP, Ctrl-C or SIGTERM
  3         bad usage, or an agent, case, file or store that cannot be used
  2         a case broke with the agent itself, or no mutant could be run
  1         the score is below --min-score
  0         otherwise
"""


@eval_group.command(
    "mutants",
    epilog=examples(
        "greenroom eval mutants weather.py",
        "greenroom eval mutants weather.py cases.yaml --min-score 0.8",
        "greenroom eval mutants weather.py cases.yaml --run 20260102-09 --rules --budget 2",
    )
    + f"\n\n{_MUTANT_CODES}",
)
@click.argument("agent", type=FILE)
@click.argument("cases", required=False, default="", type=FILE)
@options.filters
@click.option(
    "--run",
    default="",
    metavar="RUN",
    help="Use this run, or this report file, as the agent's own results instead of running it.",
)
@click.option(
    "--rules",
    is_flag=True,
    help="Also make mutants that lack one sentence of the instructions, 12 at most; each asks the agent's "
    "model again.",
)
@click.option(
    "--no-tools",
    is_flag=True,
    help="Make no mutants that lack a tool: then no mutant asks the agent's model, unless --rules is given.",
)
@click.option(
    "--min-score",
    type=options.Number(0, 1),
    metavar="FLOAT",
    help="The share of mutants that the cases must kill, from 0 to 1.",
)
@options.declared(
    "config",
    "trials",
    "concurrency",
    "rate",
    "mocks",
    "model",
    "resources",
    "middleware",
    "allow_tools",
    "allow_opaque",
    "seconds_per_metric",
    "seconds_per_case",
    "metric_attempts",
    "budget",
    "unknown_prices",
    "store",
)
@click.option("--no-store", is_flag=True, help="Do not record the runs.")
@options.import_network
@options.no_cache
@options.verbose
@options.as_json
def eval_mutants(**given: Any) -> int:
    """Test CASES: worse versions of AGENT must fail them.

    The agent runs first, then its mutants: one says nothing, one refuses, one repeats the user, one calls
    every tool, and for each tool one lacks it. The score is the share of mutants that fail some case. Cases
    that a do-nothing agent passes are named, and so are cases that the agent itself never passes.
    """
    if given["no_store"] and given["store"]:
        raise click.UsageError(f"{_TWO_STORES}.")
    _check_needs(given)
    from greenroom.apps.cli.mutants import show_mutants
    from greenroom.apps.cli.request import Order

    own = {name: given.pop(name) for name in ("run", "rules", "no_tools", "min_score")}
    return show_mutants(Order.of(given), **own)
