"""`greenroom eval rescore`: an earlier run by other metrics."""

import json
from collections.abc import Sequence

from greenroom.apps.cli import filing
from greenroom.apps.cli.exits import PASSED, RUN_ERRORS, Stopped, aside, loading, put_out, telling
from greenroom.apps.cli.playing import to_the_end
from greenroom.apps.cli.runs import detail_of, present
from greenroom.cases import EvalSet
from greenroom.ledger.redaction import redactor
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Report
from greenroom.results.data import report_data
from greenroom.suite.gathering import gather
from greenroom.suite.rescoring import Flip, Rescored, rescore
from greenroom.world.answers import AnswerCache

# In whose hands a measurement breaks.
_MEASURING = ("metric", "user_agent")


def rescore_run(
    run: str,
    cases: str,
    config: str,
    formats: Sequence[str],
    output: str,
    store: str,
    no_cache: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Measure a run anew, and show what it comes to and which verdicts flip."""
    with telling(verbose):
        plan = filing.planned(formats, output)
        report = filing.opened(store).report(run)
        given = _gathered(cases, config, verbose)
        cache = None if no_cache else AnswerCache()
        found = to_the_end(lambda: rescore(report, config=config or None, cases=given, cache=cache))
        if as_json:
            put_out(json.dumps(_data(found), indent=2))
        else:
            present(found.report, detail_of(verbose, quiet), as_json=False)
            _show_flips(found)
        for path in filing.write(found.report, plan, None):
            aside(f"wrote {path}")
    broke = _unmeasured(found.report)
    if broke:
        raise Stopped(f"could not be measured anew: {', '.join(broke)}", RUN_ERRORS)
    return PASSED


def _unmeasured(report: Report) -> list[str]:
    """The cases on which there is no verdict, although they were played to an end."""
    return [
        result.label
        for result in report
        if result.status == "error" and result.error and result.error.phase in _MEASURING
    ]


def _gathered(cases: str, config: str, verbose: bool) -> EvalSet | None:
    if not cases:
        return None
    with loading(cases, verbose):
        return gather(cases, configs=not config).evalset


def _show_flips(found: Rescored) -> None:
    terminal = Terminal()
    if not found.flips:
        terminal.say(str(found))
    for flip in found.flips:
        style = "green" if flip.now == "passed" else "bold red"
        terminal.say(styled("flipped: ", style), redactor().text(str(flip)))


def _data(found: Rescored) -> object:
    flips = [_flip_data(flip) for flip in found.flips]
    return redactor().value({"report": report_data(found.report), "flips": flips})


def _flip_data(flip: Flip) -> dict[str, object]:
    return {
        "case_id": flip.case_id,
        "trial": flip.trial,
        "before": flip.before,
        "now": flip.now,
        "why": flip.why,
    }
