"""A gate for CI: play each case several times, write reports, compare with the last good run.

    python examples/ci_gate.py

`greenroom eval run agent.py --trials 3 --min-pass-rate 0.9 --baseline good.json -f json -f junit
-o reports/` is the same in one command. Write it in Python when the gate has rules of its own.
"""

import sys
from pathlib import Path

from greenroom import Agent, Case, EvalSet, Expect, Report, Scripted, rehearse
from greenroom.reports.reporters import write_reports

REPORTS = Path("reports")
BASELINE = REPORTS / "baseline.json"
MIN_PASS_RATE = 0.9

agent = Agent("host", model=Scripted("Hello and welcome!"))
cases = EvalSet(
    "greetings",
    [
        Case("says-hello", says="Hi", expect=Expect(contains="Hello")),
        Case("is-welcoming", says="Good evening", expect=Expect(contains="welcome")),
    ],
    trials=3,
)


def gate(report: Report, baseline: Report | None) -> int:
    """The exit code: 2 if something broke, 1 if it is not good enough or got worse, else 0."""
    if report.errors:
        return 2
    if (report.summary.pass_rate or 0.0) < MIN_PASS_RATE:
        return 1
    return 1 if baseline is not None and report.compare(baseline).regressed else 0


if __name__ == "__main__":
    report = rehearse(agent, cases)
    baseline = Report.load(BASELINE) if BASELINE.exists() else None
    for path in write_reports(report, ["json", "junit", "markdown"], REPORTS, baseline=baseline):
        print("wrote", path.as_posix())
    code = gate(report, baseline)
    if code == 0:
        report.save(BASELINE)
    print(report.summary.passed, "of", len(report), "trials passed, exit code", code)
    sys.exit(code)
