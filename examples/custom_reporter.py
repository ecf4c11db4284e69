"""A report format of your own: comma-separated values. Copy it and change `render`.

    python examples/custom_reporter.py

To ask for it by its name, `greenroom eval run agent.py -f csv`, offer it in your package's
pyproject.toml:

    [project.entry-points."greenroom.reports"]
    csv = "my_package.reports:CsvReport"
"""

import csv
import io

from greenroom import Agent, Case, Expect, Report, Scripted, rehearse
from greenroom.results.reporters import render_report


class CsvReport:
    """One line for each result."""

    name = "csv"
    file = "eval_report.csv"

    def render(self, report: Report, *, baseline: Report | None = None) -> str:
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["case", "trial", "status", "turns"])
        for result in report:
            rows.writerow([result.case_id, result.trial, result.status, result.turns])
        return text.getvalue()


agent = Agent("host", model=Scripted("Hello."))
cases = [
    Case("good", says="Hi", expect=Expect(contains="Hello")),
    Case("bad", says="Hi", expect=Expect(contains="Welcome")),
]

if __name__ == "__main__":
    print(render_report(CsvReport(), rehearse(agent, cases, trials=2)), end="")
