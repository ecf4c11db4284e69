"""`greenroom runs`: what the store remembers."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from time import localtime, strftime, time

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from greenroom.apps.cli import filing
from greenroom.apps.cli.exits import GATE_MISSED, PASSED, Stopped, aside, put_out, telling
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import redactor
from greenroom.reports.console import ConsoleReport, Detail
from greenroom.reports.terminal import Terminal, styled
from greenroom.reports.words import dollars
from greenroom.results import Report, Summary
from greenroom.results.files import report_text
from greenroom.results.intervals import percent
from greenroom.store import Run, RunStatus
from greenroom.store.costs import costs

_STYLES: Mapping[RunStatus, str] = {
    "running": "cyan",
    "interrupted": "yellow",
    "finished": "green",
}
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,6})([hdw])")


# List


def list_runs(limit: int | None, store: str, as_json: bool) -> int:
    """Print a line for each run."""
    with telling(verbose=False):
        place = filing.opened(store)
        found = place.runs()[:limit]
        spent = costs(place, [run.id for run in found]) if found else {}
        if as_json:
            data = [_data(run, spent[run.id]) for run in found]
            put_out(json.dumps(redactor().value(data), indent=2))
        elif found:
            Terminal().print(_table(found, spent))
        else:
            aside(f"no runs in {place.place}")
    return PASSED


def _data(run: Run, cost: float | None) -> dict[str, Json]:
    return {
        "id": run.id,
        "begun": run.begun,
        "ended": run.ended,
        "seconds": run.seconds,
        "name": run.plan.name,
        "agent": run.plan.agent,
        "status": run.status,
        "done": run.done,
        "total": run.total,
        "counts": dict(run.counts),
        "pass_rate": _counts(run).pass_rate,
        "cost": cost,
    }


def _table(found: Sequence[Run], spent: Mapping[str, float | None]) -> Table:
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold"
    )
    for name in ("run", "began", "set", "agent", "status"):
        table.add_column(name, overflow="fold", no_wrap=name in ("run", "began"))
    for name in ("done", "passing", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in found:
        rate, cost = _counts(run).pass_rate, spent[run.id]
        told = redactor().value([run.plan.name, run.plan.agent])
        table.add_row(
            run.id,
            strftime("%Y-%m-%d %H:%M", localtime(run.begun)),
            *(styled(str(word) or "–", "") for word in told),
            styled(run.status, _STYLES[run.status]),
            f"{run.done}/{run.total}",
            "–" if rate is None else percent(rate),
            _price(cost),
        )
    return table


def _price(cost: float | None) -> str:
    """Amounts that stand below each other have as many digits; what is not free is not $0."""
    if cost is None:
        return "unknown"
    return f"${cost:,.4f}" if cost >= 0.0001 or not cost else dollars(cost)


def _counts(run: Run) -> Summary:
    count = run.counts.get
    return Summary(
        run.done,
        count("passed", 0),
        count("failed", 0),
        count("error", 0),
        count("terminated", 0),
        count("skipped", 0),
    )


# Show


def show_run(
    run: str,
    formats: Sequence[str],
    output: str,
    store: str,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Print the report of a run, and write it where it is asked for."""
    with telling(verbose):
        plan = filing.planned(formats, output)
        report = filing.opened(store).report(run)
        present(report, detail_of(verbose, quiet), as_json)
        if not (quiet or as_json):
            Terminal().say(styled("run ", "dim"), report.id)
        for path in filing.write(report, plan, None):
            aside(f"wrote {path}")
    return PASSED


def detail_of(verbose: bool, quiet: bool) -> Detail:
    """How much to show."""
    return "little" if quiet else "all" if verbose else "usual"


def present(report: Report, detail: Detail, as_json: bool) -> None:
    """Print a report, for people or for scripts."""
    if as_json:
        put_out(report_text(report))
    else:
        ConsoleReport(Terminal(), detail).show(report)


# Delete


def delete_runs(runs: Sequence[str], older_than: str, yes: bool, store: str) -> int:
    """Forget runs, after asking."""
    with telling(verbose=False):
        place = filing.opened(store)
        named = {run.id: run for run in map(place.run, runs)}
        found = list(named.values()) or (_older(place.runs(), older_than) if older_than else [])
        if not found:
            aside(f"no runs in {place.place} are older than {older_than}")
            return PASSED
        if not yes:
            _ask(found)
        place.delete(*(run.id for run in found))
        aside(f"deleted {_how_many(found)}")
    return PASSED


def _older(known: Sequence[Run], age: str) -> list[Run]:
    """Those that began before so much time, and are not under way."""
    match = _AGE.fullmatch(age)
    if match is None:
        raise BadInput(f"--older-than {age}: that is no age; write it like 30d, 12h or 2w.")
    since = time() - int(match[1]) * _SECONDS[match[2]]
    return [run for run in known if run.begun < since and run.status != "running"]


def _ask(found: Sequence[Run]) -> None:
    for run in found:
        aside(f"{run.id}  {run.plan.name}  {run.status}, {run.done}/{run.total}")
    try:
        is_sure = click.confirm(f"Delete {_how_many(found)}?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("nobody is there to ask; give --yes.") from None
    if not is_sure:
        raise Stopped("nothing was deleted", GATE_MISSED)


def _how_many(found: Sequence[Run]) -> str:
    return "1 run" if len(found) == 1 else f"{len(found)} runs"
