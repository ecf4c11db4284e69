"""`greenroom eval compare`: reports held against a baseline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click

from greenroom.apps.cli.exits import Stopped, aside, put_out, put_out_json, telling
from greenroom.apps.cli.report_output import read_baseline, read_report
from greenroom.reports.markdown import render_comparison
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Gate
from greenroom.results.data import gate_data
from greenroom.results.files import json_text, write_whole
from greenroom.results.gate import Decision
from greenroom.results.redaction import redacted_decision

Format = Literal["text", "markdown", "json"]
Compared = dict[str, Decision]
"""What the gate says of each report, by the name that was given for it."""


def compare_reports(
    reports: Sequence[str],
    baselines: Sequence[str],
    gate: Gate,
    shown_as: Format,
    output: str,
    store: str,
) -> int:
    """Compare every report or run with the baseline, or with the first of them; the exit code."""
    with telling(verbose=False):
        base, others = (baselines, reports) if baselines else (reports[:1], reports[1:])
        before = read_baseline(base, store)
        if not others or before is None:
            raise click.UsageError(
                "there is nothing to compare; give a second report or --baseline."
            )
        found = {name: gate.decide(read_report(name, store), before) for name in others}
        _show(found, shown_as)
        if output:
            is_markdown = Path(output).suffix == ".md"
            text = _markdown(found) if is_markdown else json_text(_data(found)) + "\n"
            aside(f"wrote {write_whole(text, Path(output), 'the comparison')}")
        return _decided(found)


def _decided(found: Compared) -> int:
    """Raise if the gate fails for one of them, with the highest exit code of all."""
    reasons: list[str] = []
    code = 0
    for name, decision in found.items():
        whose = f"{name}: " if len(found) > 1 else ""
        reasons += [f"{whose}{missed.why}" for missed in decision.missed]
        code = max(code, decision.exit_code)
    if reasons:
        raise Stopped("\n".join(reasons), code)
    return code


def _show(found: Compared, shown_as: Format) -> None:
    if shown_as == "json":
        put_out_json(json_text(_data(found)))
        return
    if shown_as == "markdown":
        put_out(_markdown(found))
        return
    terminal = Terminal()
    for name, decision in found.items():
        if len(found) > 1:
            terminal.say(styled(name, "bold"))
        terminal.say_lines(str(decision.comparison))


def _markdown(found: Compared) -> str:
    pages = [
        render_comparison(decision.comparison, decision)
        for decision in found.values()
        if decision.comparison is not None
    ]
    return "\n".join(pages)


def _data(found: Compared) -> Any:
    """One comparison as it is; several by the name of their report."""
    data = {
        name: {**decision.comparison.data(), "gate": gate_data(redacted_decision(decision))}
        for name, decision in found.items()
        if decision.comparison is not None
    }
    return next(iter(data.values())) if len(data) == 1 else data
