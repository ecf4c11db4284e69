"""A gate for CI: play each case several times, write reports, compare with the last good run.

    python examples/ci_gate.py

`greenroom eval run agent.py --trials 3 --min-pass-rate 0.9 --baseline good.json -f json -f junit
-o reports/` is the same in one command. Write it in Python when the gate has rules of its own.
"""

import sys
from pathlib import Path

from greenroom import Agent, Case, EvalSet, Expect, Report, Scripted, rehearse
from greenroom.reports.reporters import write_reports
from greenroom.results import Gate

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


if __name__ == "__main__":
    baseline = Report.load(BASELINE) if BASELINE.exists() else None
    report = rehearse(agent, cases, baseline=baseline)
    for path in write_reports(report, ["json", "junit", "markdown"], REPORTS, baseline=baseline):
        print("wrote", path.as_posix())
    decision = Gate(min_pass_rate=MIN_PASS_RATE).decide(report, baseline)
    code = decision.exit_code
    if decision.passed:
        report.save(BASELINE)
    print(report.summary.passed, "of", len(report), "trials passed, exit code", code)
    sys.exit(code)
