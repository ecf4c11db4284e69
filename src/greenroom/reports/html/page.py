"""The whole file: head, policy, summary, data, script."""

from functools import cache

from msgspec import to_builtins

from greenroom.ledger.plain import Json
from greenroom.reports.html.packed_data import PackedValues, data_block
from greenroom.reports.html.summary import without_script
from greenroom.reports.page.head import CaseCounts, head_of
from greenroom.reports.page.markup import Markup, tag
from greenroom.reports.page.rows import case_row
from greenroom.reports.page.shell import STYLE, asset, digest_of, flattened, page_body, page_head
from greenroom.reports.page.story import story_of
from greenroom.reports.shown import WorstCases
from greenroom.results.comparisons.comparison import Comparison
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report
from greenroom.results.stored_results import cases_in
from greenroom.results.totals import by_case
from greenroom.results.trials import Parting, parting

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
    cases = _Cases(report, changes)
    packs = cases.packed(changes)
    head = head_of(report, cases.counts, title=title, changes=changes, decision=said)
    head.notes += [cases.note] if cases.note else []
    index: Json = {"head": to_builtins(head), "rows": [to_builtins(row) for row in cases.rows]}
    listed = [result for results in cases.results.values() for result in results]
    body = page_body(
        without_script(listed, head),
        _foot(report),
        data_block("index", index),
        packs,
        _asset_tag("script", flattened(_SCRIPT), type="module"),
    )
    policed = tag("meta", http_equiv="Content-Security-Policy", content=policy())
    shown = page_head(head.title, policed, _asset_tag("style", asset(STYLE)))
    return f'<!doctype html>\n<html lang="en">{shown}{body}</html>\n'


@cache
def policy() -> str:
    """What the page may do: run its own script, use its own style, and nothing else."""
    script, style = digest_of(flattened(_SCRIPT)), digest_of(asset(STYLE))
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _asset_tag(name: str, text: str, **attributes: str) -> Markup:
    """Our own script or style, as it is in its file."""
    return tag(name, Markup(text), **attributes)


def _foot(report: Report) -> Markup:
    named = f" · report {report.id}" if report.id else ""
    return tag("footer", f"Greenroom{named} · one file, nothing is loaded from anywhere")


class _Cases:
    """The cases of a report, all counted; those that fit into a file are listed, the worst of very many."""

    def __init__(self, report: Report, changes: Comparison | None) -> None:
        self.counts = CaseCounts()
        verdicts = {} if changes is None else {case.case_id: case.verdict for case in changes.cases}
        self.worst = WorstCases()
        for trials in by_case(report):
            row = case_row(trials, change=verdicts.get(trials[0].case_id, ""))
            self.counts.add_row(row)
            self.counts.add_trials(trials)
            self.worst.add(row.id, row.status, len(trials))
        found = cases_in(report)
        self.results = {case_id: found(case_id) for case_id in self.worst.ids}
        self.rows = [
            case_row(results, number, change=verdicts.get(case_id, ""))
            for number, (case_id, results) in enumerate(self.results.items())
        ]

    @property
    def note(self) -> str:
        """How many cases are not inside, and where they are; empty if all are."""
        if not self.worst.left_out:
            return ""
        return (
            f"{self.worst.left_out:,} of {self.counts.cases:,} cases are not inside this file; those that are ended worst. "
            f"`greenroom web` lists all cases of a recorded run, and `greenroom runs show RUN -f json` "
            f"writes them all."
        )

    def packed(self, changes: Comparison | None) -> list[Markup]:
        """The stories of the listed cases; those that did not pass are packed first."""
        earlier = None if changes is None else cases_in(changes.baseline)
        packs = PackedValues(_ROOM)
        trials = [
            (result, trial, row)
            for row in self.rows
            for result, trial in zip(self.results[row.id], row.trials, strict=True)
        ]
        parted: dict[str, Parting | None] = {}
        for result, trial, row in sorted(trials, key=lambda one: not one[0].fell_short):
            if packs.has_room:
                before = () if earlier is None else earlier(row.id)
                moved = row.change not in ("", "unchanged")
                if row.status == "flaky" and row.id not in parted:
                    parted[row.id] = parting(self.results[row.id])
                story = story_of(result, before, beside_baseline=moved, parted=parted.get(row.id))
                trial.pack = packs.add(to_builtins(story))
        return packs.close()
