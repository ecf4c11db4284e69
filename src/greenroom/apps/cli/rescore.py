"""`greenroom eval rescore`: an earlier run by other metrics."""

from msgspec import structs

from greenroom.apps.cli import report_output
from greenroom.apps.cli.event_loop import to_the_end
from greenroom.apps.cli.exits import PASSED, RUN_ERRORS, Stopped, loading, put_out_json, telling
from greenroom.apps.cli.report_output import Showing
from greenroom.ledger.redaction import redactor
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Report
from greenroom.results.data import report_data
from greenroom.results.files import json_text
from greenroom.suite.rescores import Rescored, rescore
from greenroom.suite.sources import gather
from greenroom.world.answers import AnswerCache

# The phases in which a measurement breaks.
_MEASURING = ("metric", "user_agent")


def rescore_run(
    run: str, cases: str, config: str, store: str, no_cache: bool, showing: Showing
) -> int:
    """Measure a run again, and show the report and which verdicts flip."""
    with telling(showing.verbose):
        plan, report = showing.plan(), report_output.open_store(store).report(run)
        given = None
        if cases:
            with loading(cases, showing.verbose):
                given = gather(cases, configs=not config).evalset
        cache = None if no_cache else AnswerCache()
        found = to_the_end(lambda: rescore(report, config=config or None, cases=given, cache=cache))
        if showing.as_json:
            flips = [structs.asdict(flip) for flip in found.flips]
            data = {"report": report_data(found.report), "flips": flips}
            put_out_json(json_text(redactor().value(data)))
        else:
            showing.show(found.report)
            _show_flips(found)
        report_output.write_report(found.report, plan)
    broke = _unmeasured(found.report)
    if broke:
        raise Stopped(f"could not be measured again: {', '.join(broke)}", RUN_ERRORS)
    if not found.report.summary.evaluated:
        why = "no trial of this run can be measured: each of them broke or was left out."
        raise Stopped(why, RUN_ERRORS)
    return PASSED


def _unmeasured(report: Report) -> list[str]:
    """The cases on which there is no verdict, although their conversation came to an end."""
    return [
        result.label
        for result in report
        if result.status == "error"
        and result.ended != "error"
        and result.error
        and result.error.phase in _MEASURING
    ]


def _show_flips(found: Rescored) -> None:
    terminal = Terminal()
    if not found.flips:
        terminal.say_lines(str(found))
    for flip in found.flips:
        style = "green" if flip.now == "passed" else "bold red"
        terminal.say(styled("flipped: ", style), redactor().text(str(flip)))
