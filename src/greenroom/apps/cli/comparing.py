"""`greenroom eval compare`: reports held against a baseline."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from greenroom.apps.cli.exits import GATE_MISSED, PASSED, Stopped, aside, put_out, telling
from greenroom.apps.cli.filing import earlier
from greenroom.reports.terminal import Terminal, styled
from greenroom.results.comparison import Comparison, compare


def compare_reports(
    reports: Sequence[str],
    baseline: str,
    threshold: float,
    output: str,
    store: str,
    as_json: bool,
) -> int:
    """Compare every report or run with the baseline, or with the first of them."""
    with telling(verbose=False):
        base, others = (baseline, list(reports)) if baseline else (reports[0], list(reports[1:]))
        if not others:
            raise click.UsageError(
                "there is nothing to compare; give a second report or --baseline."
            )
        before = earlier(base, store)
        found = {name: compare(before, earlier(name, store), threshold) for name in others}
        _show(base, found, as_json)
        if output:
            aside(f"wrote {_saved(found, Path(output))}")
    worse = [name for name, one in found.items() if one.regressed]
    if worse:
        raise Stopped(f"worse than {base}: {', '.join(worse)}", GATE_MISSED)
    return PASSED


def _show(base: str, found: dict[str, Comparison], as_json: bool) -> None:
    if as_json:
        put_out(json.dumps(_data(found), indent=2))
        return
    terminal = Terminal()
    for name, comparison in found.items():
        terminal.say(styled(name, "bold"), " beside ", styled(base, "bold"))
        terminal.say(str(comparison))


def _data(found: dict[str, Comparison]) -> Any:
    """One comparison as it is; several by the name of their report."""
    data = {name: one.data() for name, one in found.items()}
    return next(iter(data.values())) if len(data) == 1 else data


def _saved(found: dict[str, Comparison], path: Path) -> Path:
    if len(found) == 1:
        return next(iter(found.values())).save(path)
    from greenroom.cases.files.saving import save_text

    save_text(json.dumps(_data(found), indent=2) + "\n", path)
    return path
