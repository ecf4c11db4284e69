"""`greenroom eval score`: conversations that were recorded elsewhere, measured like rehearsals."""

from collections.abc import Sequence
from dataclasses import dataclass

from greenroom.apps.cli.event_loop import to_the_end
from greenroom.apps.cli.exits import BAD_INPUT, PASSED, Stopped
from greenroom.apps.cli.metric_names import metrics_named
from greenroom.apps.cli.report_output import Showing, read_baseline, write_report
from greenroom.cases.evalset import EvalSet
from greenroom.results import Gate
from greenroom.results.words import number_of
from greenroom.suite.inputs.sources import gather
from greenroom.suite.recorded.trace_scores import score_traces
from greenroom.traces.readers import conversations, describe_flaws
from greenroom.traces.records import Flaw, Imported
from greenroom.world.answers import AnswerCache


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


def score_files(asked: ScoreRequest, gate: Gate, showing: Showing) -> int:
    """Measure what is in the files, and apply the quality gate.

    A file that cannot be read does not keep the others from being measured; it leads to exit code 3.
    """
    plan = showing.plan()
    metrics = metrics_named(asked.metrics)
    before = read_baseline(asked.baselines, asked.store)
    found, flaws = read_files(asked.files, asked.reader)
    if flaws and not found:
        raise Stopped(describe_flaws(flaws), BAD_INPUT)
    cache = None if asked.no_cache else AnswerCache()
    report = to_the_end(
        lambda: score_traces(
            found,
            metrics=metrics,
            config=asked.config or None,
            cases=cases_in(asked.cases, configs=not asked.config),
            cache=cache,
        )
    )
    decision = gate.decide(report, before)
    showing.show(report)
    showing.aside(f"scored {number_of(len(found), 'recorded conversation')}")
    write_report(report, plan, before, decision, showing.aside)
    reasons = [one.why for one in decision.missed]
    if flaws:
        raise Stopped("\n".join([describe_flaws(flaws), *reasons]), BAD_INPUT)
    if reasons:
        raise Stopped("\n".join(reasons), decision.exit_code)
    return PASSED


def cases_in(reference: str, *, configs: bool = True) -> EvalSet | None:
    """The cases that conversations are compared with, if any are named."""
    if not reference:
        return None
    return gather(reference, configs=configs).evalset


def read_files(files: Sequence[str], reader: str) -> tuple[list[Imported], list[Flaw]]:
    """The conversations in files and folders, and what could not be read."""
    found: list[Imported] = []
    flaws: list[Flaw] = []
    for one in conversations(files, reader):
        if isinstance(one, Flaw):
            flaws.append(one)
        else:
            found.append(one)
    return found, flaws
