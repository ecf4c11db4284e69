"""`greenroom eval merge`: the reports of shards, put together and judged as one."""

from collections.abc import Sequence

from greenroom.apps.cli.exits import PASSED, Stopped, telling
from greenroom.apps.cli.report_output import Showing, read_baseline, read_report, write_report
from greenroom.results import Gate
from greenroom.results.shards import together
from greenroom.results.text import number_of


def merge_reports(
    reports: Sequence[str], baselines: Sequence[str], gate: Gate, store: str, showing: Showing
) -> int:
    """Show and write the reports as one, and let the gate decide on the whole."""
    with telling(showing.verbose):
        plan = showing.plan()
        before = read_baseline(baselines, store)
        whole = together([read_report(name, store) for name in reports])
        decision = gate.decide(whole, before)
        showing.show(whole)
        showing.aside(f"merged {number_of(len(reports), 'report')}")
        write_report(whole, plan, before, decision, showing.aside)
        if decision.missed:
            raise Stopped("\n".join(one.why for one in decision.missed), decision.exit_code)
    return PASSED
