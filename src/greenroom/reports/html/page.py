"""The whole page: head, policy, overview, data, script."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from greenroom.ledger.plain import Json
from greenroom.reports.html.cases import Names, case_details, case_row
from greenroom.reports.html.compared import compared
from greenroom.reports.html.markup import Markup, tag
from greenroom.reports.html.overview import (
    began_at,
    metric_charts,
    node_table,
    overview,
    tag_charts,
    without_script,
)
from greenroom.reports.html.packed import PackedValues, Place, data_block
from greenroom.results.comparison import Comparison
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report

HTML_FILE = "eval_report.html"

_ROOM = 48 * 1024 * 1024
"""How large the packed runs may become together; with everything else a file stays below 60 MB."""
_SCRIPTS = (
    "elements.js",
    "words.js",
    "data.js",
    "query.js",
    "list.js",
    "scores.js",
    "timeline.js",
    "opened.js",
    "page.js",
)


def render_html(
    report: Report,
    *,
    baseline: Report | None = None,
    decision: Decision | None = None,
    title: str = "",
) -> str:
    """The report as one HTML file that needs no network; `baseline` adds what changed since.

    `decision` is what the gate said of the run. Nothing in the page acts but its own script, whatever
    the report says: see `greenroom.reports.html`.
    """
    report, said = redacted(report), redacted_decision(decision)
    heading = title or report.name or report.evalset_id or "Evaluation report"
    changes = held_against(report, None if baseline is None else redacted(baseline), said)
    metrics, tags = _names(report)
    rows, packs = _cases(report, changes, metrics, tags)
    index: Json = {
        "title": heading,
        "metrics": list(metrics.known),
        "tags": list(tags.known),
        "cases": rows,
    }
    charts = [
        metric_charts(report, metrics.known),
        tag_charts(report, tags.known),
        node_table(report),
    ]
    body = tag(
        "body",
        tag("a", "Skip to the cases", class_="skip", href="#list"),
        tag("header", tag("h1", heading), began_at(report), tag("div", id="tools"), class_="top"),
        _main(report, changes, said, charts),
        tag("aside", id="opened", hidden=True, aria_label="The opened case"),
        tag("div", id="print"),
        _foot(report),
        data_block("index", index),
        packs,
        _asset_tag("script", _script(), type="module"),
    )
    return f'<!doctype html>\n<html lang="en">{_head(heading)}{body}</html>\n'


def _main(
    report: Report,
    changes: Comparison | None,
    decision: Decision | None,
    charts: Sequence[Markup | None],
) -> Markup:
    """All that can be read without scripts, and the empty list that the script fills."""
    return tag(
        "main",
        overview(report, decision),
        compared(changes) if changes is not None else None,
        tag("div", charts, class_="panels"),
        without_script(report),
        tag("section", id="cases", hidden=True, aria_labelledby="cases-title"),
    )


def _head(heading: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", heading),
        _asset_tag("style", _style()),
    )


def policy() -> str:
    """What the page may do: run its own script, use its own style, and nothing else."""
    return (
        f"default-src 'none'; script-src '{_digest(_script())}'; style-src '{_digest(_style())}'; "
        "img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _script() -> str:
    return "\n".join(_asset(name) for name in _SCRIPTS)


@cache
def _style() -> str:
    return _asset("page.css")


def _asset(name: str) -> str:
    return (files("greenroom.reports.html") / "assets" / name).read_text(encoding="utf-8")


def _asset_tag(name: str, text: str, **attributes: str) -> Markup:
    """Our own script or style, as it stands in its file."""
    return tag(name, Markup(text), **attributes)


def _foot(report: Report) -> Markup:
    named = f" · report {report.id}" if report.id else ""
    return tag("footer", f"Greenroom{named} · one file, nothing is loaded from anywhere")


def _names(report: Report) -> tuple[Names, Names]:
    metrics, tags = Names(), Names()
    for name in report.metrics:
        metrics.number(name)
    for result in report.results:
        for name in result.tags:
            tags.number(str(name))
    return metrics, tags


def _cases(
    report: Report, changes: Comparison | None, metrics: Names, tags: Names
) -> tuple[list[Json], list[Markup]]:
    """The rows of the list, and the packed runs; those that did not pass are packed first."""
    earlier = {} if changes is None else changes.baseline.by_case()
    verdicts = {} if changes is None else {case.case_id: case.verdict for case in changes.cases}
    packs = PackedValues(_ROOM)
    places: dict[int, Place | None] = {}
    for result in sorted(report.results, key=lambda result: not result.fell_short):
        before = earlier.get(result.case_id, ())
        place = packs.add(case_details(result, before)) if packs.has_room else None
        places[id(result)] = place
    rows: list[Json] = []
    for case_id, results in report.by_case().items():
        row = case_row([(result, places[id(result)]) for result in results], metrics, tags)
        rows.append({**row, "change": verdicts[case_id]} if case_id in verdicts else row)
    return rows, packs.close()
