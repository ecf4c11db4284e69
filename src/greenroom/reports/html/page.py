"""The whole file: head, policy, summary, data, script."""

from functools import cache

import msgspec

from greenroom.ledger.plain import Json
from greenroom.reports.html.packing import PackedValues, Place, data_block
from greenroom.reports.html.summary import without_script
from greenroom.reports.page.head import head_of
from greenroom.reports.page.markup import Markup, tag
from greenroom.reports.page.rows import case_row
from greenroom.reports.page.shapes import Row, Shape
from greenroom.reports.page.shell import STYLE, asset, digest_of, flattened, page_body, page_head
from greenroom.reports.page.story import story_of
from greenroom.results.comparison import Comparison
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report

HTML_FILE = "eval_report.html"

_ROOM = 48 * 1024 * 1024
"""How large the packed runs may become together; with everything else a file stays below 60 MB."""
_SCRIPT = "report.js"


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
    changes = held_against(report, None if baseline is None else redacted(baseline), said)
    rows, packs = _cases(report, changes)
    head = head_of(report, rows, title=title, changes=changes, decision=said)
    index: Json = {"head": as_json(head), "rows": [as_json(row) for row in rows]}
    body = page_body(
        without_script(report, head),
        _foot(report),
        data_block("index", index),
        packs,
        _asset_tag("script", flattened(_SCRIPT), type="module"),
    )
    policed = tag("meta", http_equiv="Content-Security-Policy", content=policy())
    shown = page_head(head.title, policed, _asset_tag("style", asset(STYLE)))
    return f'<!doctype html>\n<html lang="en">{shown}{body}</html>\n'


def as_json(shape: Shape) -> Json:
    """A shape as JSON without what has its default."""
    return msgspec.to_builtins(shape)


@cache
def policy() -> str:
    """What the page may do: run its own script, use its own style, and nothing else."""
    script, style = digest_of(flattened(_SCRIPT)), digest_of(asset(STYLE))
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _asset_tag(name: str, text: str, **attributes: str) -> Markup:
    """Our own script or style, as it stands in its file."""
    return tag(name, Markup(text), **attributes)


def _foot(report: Report) -> Markup:
    named = f" · report {report.id}" if report.id else ""
    return tag("footer", f"Greenroom{named} · one file, nothing is loaded from anywhere")


def _cases(report: Report, changes: Comparison | None) -> tuple[list[Row], list[Markup]]:
    """The rows of the list, and the packed stories; those that did not pass are packed first."""
    earlier = {} if changes is None else changes.baseline.by_case()
    verdicts = {} if changes is None else {case.case_id: case.verdict for case in changes.cases}
    packs = PackedValues(_ROOM)
    places: dict[int, Place | None] = {}
    for result in sorted(report.results, key=lambda result: not result.fell_short):
        place = None
        if packs.has_room:
            before = earlier.get(result.case_id, ())
            moved = verdicts.get(result.case_id) not in (None, "unchanged")
            place = packs.add(as_json(story_of(result, before, beside_baseline=moved)))
        places[id(result)] = place
    rows = [
        case_row(
            results,
            number,
            change=verdicts.get(case_id, ""),
            packs=[places[id(result)] for result in results],
        )
        for number, (case_id, results) in enumerate(report.by_case().items())
    ]
    return rows, packs.close()
