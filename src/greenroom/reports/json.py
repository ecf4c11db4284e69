"""A report for other programs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from greenroom.results.files import report_parts, report_text
from greenroom.results.gate import Decision
from greenroom.results.report import REPORT_FILE, Report


@dataclass(frozen=True, slots=True)
class JsonReport:
    """Renders a report as JSON: whole, or what did not pass; `indent=None` puts it on one line."""

    name: ClassVar[str] = "json"
    file: ClassVar[str] = REPORT_FILE

    failures_only: bool = False
    indent: int | None = 2

    def text(self, report: Report, decision: Decision | None = None) -> str:
        """The report as it is written to a file."""
        options: dict[str, Any] = {"failures_only": self.failures_only, "indent": self.indent}
        return report_text(report, decision=decision, **options)

    def parts(
        self,
        report: Report,
        *,
        baseline: Report | None = None,  # noqa: ARG002
        decision: Decision | None = None,
    ) -> Iterator[str]:
        """The JSON text in parts, so that a large report is never held as a whole."""
        options: dict[str, Any] = {"failures_only": self.failures_only, "indent": self.indent}
        return report_parts(report, decision=decision, **options)

    def render(
        self,
        report: Report,
        *,
        baseline: Report | None = None,  # noqa: ARG002
        decision: Decision | None = None,
    ) -> str:
        """The report as JSON text; a comparison with the baseline goes to its own file."""
        return self.text(report, decision)
