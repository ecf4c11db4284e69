"""A report as a notebook shows it: a heading and a table, as self-contained HTML."""

from collections.abc import Iterator
from html import escape
from typing import ClassVar

from greenroom.cases.scores import Score
from greenroom.ledger.safe_text import harmless
from greenroom.reports.words import duration
from greenroom.results.comparisons.families import families, family
from greenroom.results.redaction import redacted
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons
from greenroom.results.words import counted, dollars, shortened

_MOST_ROWS = 200
_LONGEST = 300
_COLOURS = {"passed": "#1a7f37", "failed": "#cf222e", "error": "#9a6700"}


class NotebookReport:
    """Renders a report as a fragment of HTML, without scripts or style sheets."""

    name: ClassVar[str] = "notebook"
    file: ClassVar[str] = "eval_report.fragment.html"

    def render(self, report: Report, *, baseline: Report | None = None) -> str:
        """The counts, and a row for each trial; of very many, those that did not pass come first."""
        del baseline  # this is a table of one run; `compare` shows what changed
        report = redacted(report)
        rows = list(report.results)
        if len(rows) > _MOST_ROWS:
            rows.sort(key=lambda result: result.status == "passed")
        metrics = list(families(report.metrics))
        heads = ["case", "status", *metrics, "seconds", "cost", "why"]
        lines = [
            f"<p><b>{_text(report.name or 'report')}</b>: {_text(counted(report.summary))}</p>",
            f"<table><thead><tr>{''.join(f'<th>{_text(h)}</th>' for h in heads)}</tr></thead><tbody>",
            *(f"<tr>{''.join(_cells(result, metrics))}</tr>" for result in rows[:_MOST_ROWS]),
            "</tbody></table>",
        ]
        lines += [f"<p>note: {_text(note)}</p>" for note in report.notes]
        if len(rows) > _MOST_ROWS:
            lines.append(f"<p>{len(rows) - _MOST_ROWS} more rows: report.to_frame() has all.</p>")
        return "\n".join(lines) + "\n"


def _cells(result: CaseResult, metrics: list[str]) -> Iterator[str]:
    trial = f" #{result.trial}" if result.trial > 1 else ""
    yield f'<td style="text-align:left">{_text(result.case_id)}{trial}</td>'
    colour = _COLOURS.get(result.status, "#57606a")
    yield f'<td style="color:{colour}">{result.status}</td>'
    scores: dict[str, list[Score]] = {name: [] for name in metrics}
    for name, score in result.measured.items():
        scores[family(name)].append(score)
    replaced = {family(name) for name in result.replaced}
    for name, found in scores.items():
        one = f"{found[0].value:.2f}" if found else "–"
        several = f"{sum(score.passed for score in found)} of {len(found)}"
        by_hook = " replaced" if name in replaced else ""
        yield f"<td>{several if len(found) > 1 else one}{by_hook}</td>"
    yield f"<td>{_text(duration(result.seconds))}</td>"
    yield f"<td>{'?' if result.spent is None else _text(dollars(result.spent))}</td>"
    why = _text(shortened("; ".join(reasons(result)), _LONGEST))
    yield f'<td style="text-align:left">{why}</td>'


def _text(words: str) -> str:
    return escape(harmless(words))
