"""`greenroom eval compare`, `merge`, `rescore` and `score`: what was recorded, judged without running an agent."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
from msgspec import structs

from greenroom.apps.cli.conclusion import end
from greenroom.apps.cli.event_loop import to_the_end
from greenroom.apps.cli.exits import BAD_INPUT, RUN_ERRORS, Stopped, aside, put_out, put_out_json
from greenroom.apps.cli.metric_names import metrics_named
from greenroom.apps.cli.report_output import (
    Showing,
    open_store,
    read_baseline,
    read_report,
    write_report,
)
from greenroom.apps.cli.traces import read_files
from greenroom.ledger.redaction import redactor
from greenroom.reports.markdown import render_comparison
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Gate
from greenroom.results.data import gate_data, report_data
from greenroom.results.files import json_text, write_whole
from greenroom.results.gate import Decision
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.shards import together
from greenroom.results.words import number_of
from greenroom.suite.inputs.sources import gather
from greenroom.suite.recorded.rescores import rescore
from greenroom.suite.recorded.trace_scores import score_traces
from greenroom.traces.readers import describe_flaws
from greenroom.world.answers import AnswerCache

Format = Literal["text", "markdown", "json"]
Compared = dict[str, Decision]
"""The gate's decision on each report, by the name that was given for it."""


def compare_reports(
    reports: Sequence[str],
    baselines: Sequence[str],
    gate: Gate,
    shown_as: Format,
    output: str,
    store: str,
) -> None:
    """Compare every report or run with the baseline, or with the first of them."""
    base, others = (baselines, reports) if baselines else (reports[:1], reports[1:])
    before = read_baseline(base, store)
    if not others or before is None:
        raise click.UsageError("there is nothing to compare; give a second report or --baseline.")
    found = {name: gate.decide(read_report(name, store), before) for name in others}
    if shown_as == "json":
        put_out_json(json_text(_data(found)))
    elif shown_as == "markdown":
        put_out(_markdown(found))
    else:
        terminal = Terminal()
        for name, decision in found.items():
            if len(found) > 1:
                terminal.say(styled(name, "bold"))
            terminal.say_lines(str(decision.comparison))
    if output:
        is_markdown = Path(output).suffix == ".md"
        text = _markdown(found) if is_markdown else json_text(_data(found)) + "\n"
        aside(f"wrote {write_whole(text, Path(output), 'the comparison')}")
    end(found)


def _markdown(found: Compared) -> str:
    pages = [
        render_comparison(decision.comparison, decision)
        for decision in found.values()
        if decision.comparison is not None
    ]
    return "\n".join(pages)


def _data(found: Compared) -> object:
    """One comparison as it is; several keyed by the name of their report."""
    data = {
        name: {**decision.comparison.data(), "gate": gate_data(redacted_decision(decision))}
        for name, decision in found.items()
        if decision.comparison is not None
    }
    return next(iter(data.values())) if len(data) == 1 else data


def merge_reports(
    reports: Sequence[str], baselines: Sequence[str], gate: Gate, store: str, showing: Showing
) -> None:
    """Show and write the reports as one, and apply the quality gate to the whole."""
    plan = showing.plan()
    before = read_baseline(baselines, store)
    whole = together([read_report(name, store) for name in reports], reports)
    decision = gate.decide(whole, before)
    showing.show(whole)
    showing.aside(f"merged {number_of(len(reports), 'report')}")
    write_report(whole, plan, before, decision, showing.aside)
    end({"": decision})


# An error in one of these phases means that a measurement broke.
_MEASURING = ("metric", "user_agent")


def rescore_run(
    run: str, cases: str, config: str, store: str, no_cache: bool, showing: Showing
) -> None:
    """Measure a run again, and show the report and which verdicts flip."""
    plan, report = showing.plan(), open_store(store).report(run)
    given = gather(cases, configs=not config).evalset if cases else None
    cache = None if no_cache else AnswerCache()
    found = to_the_end(lambda: rescore(report, config=config or None, cases=given, cache=cache))
    if showing.as_json:
        flips = [structs.asdict(flip) for flip in redactor().value(list(found.flips))]
        data = {"report": report_data(redacted(found.report)), "flips": flips}
        put_out_json(json_text(data))
    else:
        showing.show(found.report)
        terminal = Terminal()
        if not found.flips:
            terminal.say_lines(str(found))
        for flip in found.flips:
            style = "green" if flip.now == "passed" else "bold red"
            terminal.say(styled("flipped: ", style), redactor().text(str(flip)))
    write_report(found.report, plan)
    broke = [
        result.label
        for result in found.report
        if result.status == "error"
        and result.ended != "error"  # its conversation came to an end
        and result.error
        and result.error.phase in _MEASURING
    ]
    if broke:
        raise Stopped(f"could not be measured again: {', '.join(broke)}", RUN_ERRORS)
    if not found.report.summary.evaluated:
        why = "no trial of this run can be measured: each of them broke or was left out."
        raise Stopped(why, RUN_ERRORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """What to measure, and with which metrics."""

    files: Sequence[str]
    metrics: Sequence[str] = ()
    cases: str = ""
    config: str = ""
    reader: str = ""
    baselines: Sequence[str] = ()
    store: str = ""
    no_cache: bool = False


def score_files(asked: ScoreRequest, gate: Gate, showing: Showing) -> None:
    """Measure what is in the files, and apply the quality gate.

    A file that cannot be read does not keep the others from being measured; it leads to exit code 3.
    """
    plan = showing.plan()
    metrics = metrics_named(asked.metrics)
    before = read_baseline(asked.baselines, asked.store)
    found, flaws = read_files(asked.files, asked.reader)
    if flaws and not found:
        raise Stopped(describe_flaws(flaws), BAD_INPUT)
    configs = not asked.config
    report = to_the_end(
        lambda: score_traces(
            found,
            metrics=metrics,
            config=asked.config or None,
            cases=gather(asked.cases, configs=configs).evalset if asked.cases else None,
            cache=None if asked.no_cache else AnswerCache(),
        )
    )
    decision = gate.decide(report, before)
    showing.show(report)
    showing.aside(f"scored {number_of(len(found), 'recorded conversation')}")
    write_report(report, plan, before, decision, showing.aside)
    end({"": decision}, [describe_flaws(flaws)] if flaws else ())
