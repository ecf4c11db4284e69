"""A report for other programs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from greenroom.results.files import report_parts
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
        return "".join(self.parts(report, decision=decision))

    def parts(
        self,
        report: Report,
        *,
        baseline: Report | None = None,  # noqa: ARG002
        decision: Decision | None = None,
    ) -> Iterator[str]:
        """The JSON text in parts, so that a large report is never held as a whole."""
        return report_parts(
            report, failures_only=self.failures_only, indent=self.indent, decision=decision
        )

    def render(
        self,
        report: Report,
        *,
        baseline: Report | None = None,  # noqa: ARG002
        decision: Decision | None = None,
    ) -> str:
        """The report as JSON text; a comparison with the baseline goes to its own file."""
        return self.text(report, decision)
