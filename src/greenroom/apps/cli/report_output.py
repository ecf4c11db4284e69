"""How a report is shown, and where else it goes."""

from collections.abc import Sequence
from dataclasses import dataclass

from greenroom.apps.cli import report_files
from greenroom.apps.cli.exits import aside, put_out_json
from greenroom.reports.console import ConsoleReport, Detail
from greenroom.reports.terminal import Terminal
from greenroom.results import Report
from greenroom.results.files import report_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """What the commands that end in a report are told about it."""

    formats: Sequence[str] = ()
    output: str = ""
    verbose: bool = False
    quiet: bool = False
    as_json: bool = False

    @property
    def talks(self) -> bool:
        """Whether there is anything to read beside the report."""
        return not (self.quiet or self.as_json)

    def aside(self, line: str) -> None:
        """Say something about the run that is no part of its report."""
        if self.talks:
            aside(line)

    @property
    def detail(self) -> Detail:
        """How much to show."""
        return "little" if self.quiet else "all" if self.verbose else "usual"

    def plan(self) -> report_files.Plan:
        """Which formats are written where; BadInput if that cannot be meant."""
        return report_files.planned(self.formats, self.output)

    def show(self, report: Report) -> None:
        """Print a report, for people or for scripts."""
        if self.as_json:
            put_out_json(report_text(report))
        else:
            ConsoleReport(Terminal(), self.detail).show(report)
