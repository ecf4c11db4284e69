"""`greenroom runs`: the runs in the store."""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from time import localtime, strftime, time

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from greenroom.apps.cli import report_output
from greenroom.apps.cli.exits import GATE_MISSED, Stopped, aside, put_out_data
from greenroom.apps.cli.report_output import Showing
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import redactor
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Summary
from greenroom.results.redaction import redacted
from greenroom.results.statistics.intervals import percent
from greenroom.results.trial_verdict import REPLAYED
from greenroom.results.words import dollars, number_of
from greenroom.store import Run, RunStatus

_STYLES: Mapping[RunStatus, str] = {
    "running": "cyan",
    "interrupted": "yellow",
    "finished": "green",
}
_SHOWN = 50
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,6})([hdw])")


# List


def list_runs(limit: int | None, every: bool, store: str, as_json: bool) -> None:
    """Print a line for each run."""
    place = report_output.open_store(store)
    shown = limit or (None if every or as_json else _SHOWN)
    found = place.runs(limit=shown and shown + 1)
    more, found = len(found) > len(found[:shown]), found[:shown]
    if as_json:
        data = [_data(run, place.pass_rate(run)) for run in found]
        put_out_data(data)
    elif found:
        terminal = Terminal()
        terminal.print(_table([(run, place.pass_rate(run)) for run in found], terminal))
        if more and not limit:
            aside(f"these are the latest {shown}; --all lists every run")
    else:
        aside(f"no runs in {place.address}")


def _data(run: Run, pass_rate: float | None) -> dict[str, Json]:
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
        "errors": _counts(run).errors,
        "pass_rate": pass_rate,
        "cost": run.cost,
        "replayed": _is_replayed(run),
        "by": run.plan.by,
        "commit": run.plan.commit,
        "against": run.plan.against,
        "called": run.plan.called,
    }


def _is_replayed(run: Run) -> bool:
    """Whether what models answered in it was recorded before."""
    return any(note.startswith(REPLAYED) for note in run.notes)


def _table(rated: Sequence[tuple[Run, float | None]], terminal: Terminal) -> Table:
    """A row for each run and its pass rate, without the columns that there is no room for; its id is never shortened."""
    columns: list[str] = [*_COLUMNS]
    rows, found = [_row(run, rate) for run, rate in rated], [run for run, _ in rated]
    if len({run.plan.by for run in found}) < 2:
        columns.remove("by")
    for name, values in (("commit", "commit"), ("baseline", "against")):
        if not any(getattr(run.plan, values) for run in found):
            columns.remove(name)
    table = _drawn(columns, rows)
    for seldom_needed in _SELDOM_NEEDED:
        if seldom_needed in columns and terminal.needed(table) > terminal.width:
            columns.remove(seldom_needed)
            table = _drawn(columns, rows)
    return table


def _drawn(columns: Sequence[str], rows: Sequence[Mapping[str, str | Text]]) -> Table:
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold"
    )
    for name in columns:
        justify = "right" if name in _NUMBERS else "left"
        keeps = name not in ("set", "agent")
        least = max(len(str(row[name])) for row in rows) if name == "run" else None
        table.add_column(name, overflow="fold", no_wrap=keeps, justify=justify, min_width=least)
    for row in rows:
        table.add_row(*(row[name] for name in columns))
    return table


_COLUMNS = (
    "run",
    "began",
    "by",
    "commit",
    "set",
    "agent",
    "status",
    "done",
    "errors",
    "passing",
    "cost",
    "baseline",
)
_NUMBERS = ("done", "errors", "passing", "cost")
_SELDOM_NEEDED = (
    "began",
    "baseline",
    "commit",
    "by",
    "agent",
    "cost",
    "status",
    "set",
    "errors",
    "passing",
)
"""Columns that a narrow terminal leaves out, in this order; the id already begins with date and time."""


def _row(run: Run, rate: float | None) -> dict[str, str | Text]:
    errors = _counts(run).errors
    names = redactor().value([run.plan.name, run.plan.agent])
    evalset, agent = (styled(str(word) or "–", "") for word in names)
    return {
        "run": run.id,
        "began": strftime("%Y-%m-%d %H:%M", localtime(run.begun)),
        "by": run.plan.by,
        "commit": run.plan.commit[:8],
        "set": evalset,
        "agent": agent,
        "status": styled(f"{run.status}{', replayed' * _is_replayed(run)}", _STYLES[run.status]),
        "done": f"{run.done}/{run.total}",
        "errors": styled(str(errors), "bold red" if errors else "dim"),
        "passing": "–" if rate is None else percent(rate),
        "cost": _price(run.cost),
        "baseline": run.plan.against or "",
    }


def _price(cost: float | None) -> str:
    """All amounts of a column have the same number of digits; a cost above 0 is never shown as $0."""
    if cost is None:
        return "unknown"
    return f"${cost:,.4f}" if cost >= 0.0001 or not cost else dollars(cost)


def _counts(run: Run) -> Summary:
    return Summary.of(run.done, run.counts)


# Show


def show_run(run: str, store: str, showing: Showing) -> None:
    """Print the report of a run, and write it where it is asked for."""
    # Redacted here, once for both the terminal and the files.
    place = report_output.open_store(store)
    plan, report = showing.plan(), redacted(place.report(run))
    showing.show(report, report_output.diff_command(report.id, store))
    if showing.talks:
        kept = place.run(report.id)
        if report.unfinished and kept.status == "interrupted":
            Terminal().say(_to_resume(kept, place.address if store else ""))
        Terminal().say(styled("run ", "dim"), report.id)
        Terminal().say(*_origin(kept))
    report_output.write_report(report, plan)


def _to_resume(run: Run, store: str) -> str:
    """The command that resumes a run, as far as the store knows it."""
    plan = run.plan
    if plan.shards:
        return "to resume it, repeat the command of each shard"
    given = [("--model", plan.model), ("--store", store)]
    named = ("--resume-or-new", plan.called) if plan.called else ("--resume", run.id)
    options = [word for pair in (*given, named) if pair[1] for word in pair]
    known = shlex.join(redactor().value(options))
    agent = shlex.quote(redactor().text(plan.reference)) if plan.reference else "AGENT"
    return (
        f"to resume it, with the cases and options it had: greenroom eval run {agent} CASES {known}"
    )


def _origin(run: Run) -> Iterable[str | Text]:
    """Who ran it, on which commit, and what it was compared with."""
    plan = run.plan
    yield styled("by ", "dim")
    yield plan.by or "unknown"
    for what, value in (("commit", plan.commit[:8]), ("baseline", plan.against)):
        if value:
            yield styled(f"  {what} ", "dim")
            yield value


# Delete


def delete_runs(
    runs: Sequence[str], older_than: str, keep: int | None, yes: bool, store: str
) -> None:
    """Delete runs, after asking."""
    place = report_output.open_store(store)
    named = {run.id: run for run in map(place.run, runs)}
    found = list(named.values()) or _older(_beyond(place.runs(), keep or 0), older_than)
    if not found:
        besides = f", except the latest {keep} of each set" if keep else ""
        age = f" are older than {older_than}" if older_than else " are left to delete"
        aside(f"no runs in {place.address}{age}{besides}")
        return
    if not yes:
        _ask(found)
    place.delete(*(run.id for run in found))
    aside(f"deleted {_how_many(found)}")


def _beyond(known: Iterable[Run], keep: int) -> list[Run]:
    """Runs that are not among the latest `keep` of their set; `known` has the latest first."""
    seen: Counter[str] = Counter()
    found: list[Run] = []
    for run in known:
        seen[run.plan.evalset_id or run.plan.name] += 1
        if seen[run.plan.evalset_id or run.plan.name] > keep:
            found.append(run)
    return found


def _older(known: Sequence[Run], age: str) -> list[Run]:
    """Runs that began longer ago than `age` and are not in progress."""
    if not age:
        return [run for run in known if run.status != "running"]
    match = _AGE.fullmatch(age)
    if match is None:
        raise BadInput(f"--older-than {age}: that is not an age; write it like 30d, 12h or 2w.")
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
        raise click.UsageError("there is no terminal to ask on; give --yes.") from None
    if not is_sure:
        raise Stopped("nothing was deleted", GATE_MISSED)


def _how_many(found: Sequence[Run]) -> str:
    return number_of(len(found), "run")
