"""A report for other programs."""

from dataclasses import dataclass
from typing import ClassVar

from greenroom.results.files import report_text
from greenroom.results.report import REPORT_FILE, Report


@dataclass(frozen=True, slots=True)
class JsonReport:
    """Renders a report as JSON: whole, or what did not pass; `indent=None` puts it on one line."""

    name: ClassVar[str] = "json"
    file: ClassVar[str] = REPORT_FILE

    failures_only: bool = False
    indent: int | None = 2

    def text(self, report: Report) -> str:
        """All of it, as it stands in a file."""
        return report_text(report, failures_only=self.failures_only, indent=self.indent)

    def render(self, report: Report, *, baseline: Report | None = None) -> str:  # noqa: ARG002
        """The same; a comparison with the baseline is a file of its own."""
        return self.text(report)
