"""`greenroom eval run`: load, play, report, and decide by the gate."""

from collections.abc import Mapping
from typing import Any

from greenroom.apps.cli import filing
from greenroom.apps.cli.exits import (
    GATE_MISSED,
    PASSED,
    RUN_ERRORS,
    Stopped,
    aside,
    put_out,
    telling,
)
from greenroom.apps.cli.orders import Chosen, Order, chosen
from greenroom.apps.cli.playing import Interrupted, mocks_for, play
from greenroom.apps.cli.progress import Watching
from greenroom.reports.console import ConsoleReport
from greenroom.reports.terminal import Terminal, styled
from greenroom.reports.variants import variants_table
from greenroom.results import Report, failed_cases
from greenroom.results.comparison import compare
from greenroom.results.gate import Gate


def run(order: Order) -> int:
    """Carry out an order; what is returned is the exit code."""
    with telling(order.verbose):
        plan = filing.planned(order.formats, order.output)
        baseline = Report.load(order.baseline) if order.baseline else None
        cases = chosen(order, lambda line: _aside(order, line))
        if order.suggest_mocks:
            return _suggest_mocks(order, cases)
        reports = _Rehearsal(order, cases).reports()
        _write(order, reports, plan, baseline)
        if order.save_failures:
            _save_failures(order, cases, reports)
        _show_together(order, reports, baseline)
        _decide(order, reports, baseline)
        return PASSED


def _aside(order: Order, line: str) -> None:
    """Say something about the run that is no part of its report."""
    if not order.quiet and not order.as_json:
        aside(line)


def _suggest_mocks(order: Order, cases: Chosen) -> int:
    """Print mocks to begin with instead of playing anything."""
    found = mocks_for(order.agent, cases.evalset, order.played_by(), order.settings())
    if found:
        put_out(found)
    else:
        _aside(order, "every tool has a mock, or the agent does not tell its tools beforehand")
    return PASSED


class _Rehearsal:
    """The run of an order: one report for each agent."""

    def __init__(self, order: Order, cases: Chosen) -> None:
        self._order = order
        self._cases = cases
        self._terminal = Terminal()
        self._settings = order.settings()

    def reports(self) -> dict[str, Report]:
        agents = self._order.agents
        return {agent: self._report(agent, number) for number, agent in enumerate(agents, start=1)}

    def _report(self, agent: str, number: int) -> Report:
        order = self._order
        if len(order.agents) > 1 and not order.as_json:
            self._terminal.say(styled(f"agent {number}: ", "dim"), styled(agent, "bold"))
        rerun = self._cases.rerun_commands(order, agent)
        shown = ConsoleReport(self._terminal, order.detail, rerun)
        report = self._played(agent, shown)
        if not order.as_json:
            shown.show(report)
        return report

    def _played(self, agent: str, shown: ConsoleReport) -> Report:
        order = self._order
        evalset = self._cases.evalset
        total = len(evalset) * (order.trials or evalset.trials)
        watching = Watching(shown.terminal, total, shown=not (order.quiet or order.as_json))
        model = order.played_by()
        try:
            return play(
                agent,
                evalset,
                watching,
                verbose=order.verbose,
                model=model,
                tell=not (order.quiet or order.as_json),
                **self._settings,
            )
        except Interrupted as stop:
            # What was finished before is worth seeing, though it is no verdict on the whole.
            if not order.as_json:
                shown.show(watching.so_far)
            done = f"{stop} after {len(watching.done)} of {watching.total} cases"
            raise Stopped(done, stop.exit_code) from None


# After the run


def _write(
    order: Order, reports: Mapping[str, Report], plan: filing.Plan, baseline: Report | None
) -> None:
    if order.leave_report:
        reports[order.agent].save(order.leave_report)
    for number, report in enumerate(reports.values(), start=1):
        own = filing.for_variant(plan, number) if len(reports) > 1 else plan
        for path in filing.write(report, own, baseline):
            _aside(order, f"wrote {path}")


def _save_failures(order: Order, cases: Chosen, reports: Mapping[str, Report]) -> None:
    failures = failed_cases(reports[order.agent], cases.evalset)
    failures.save(order.save_failures)
    count = "1 case" if len(failures) == 1 else f"{len(failures)} cases"
    _aside(order, f"saved {count} that did not pass to {order.save_failures}")


def _show_together(order: Order, reports: Mapping[str, Report], baseline: Report | None) -> None:
    if order.as_json:
        put_out(_json(order, reports))
        return
    terminal = Terminal()
    if len(reports) > 1 and not order.quiet:
        terminal.print()
        terminal.print(variants_table(reports))
    if baseline is not None:
        terminal.print()
        terminal.say(str(compare(baseline, reports[order.agent])))


def _json(order: Order, reports: Mapping[str, Report]) -> str:
    """One report as it stands in a file; those of several agents by agent."""
    import json

    from greenroom.results.data import report_data
    from greenroom.results.files import report_text

    if len(reports) == 1:
        return report_text(reports[order.agent])
    data: dict[str, Any] = {agent: report_data(report) for agent, report in reports.items()}
    return json.dumps(data, indent=2) + "\n"


def _decide(order: Order, reports: Mapping[str, Report], baseline: Report | None) -> None:
    """Raise if anything keeps the run from having passed; the gravest is the exit code."""
    gate = Gate(min_pass_rate=order.min_pass_rate, max_errors=order.max_errors)
    told: list[str] = []
    code = PASSED
    for agent, report in reports.items():
        decision = gate.decide(report, baseline if agent == order.agent else None)
        whose = f"{agent}: " if len(reports) > 1 else ""
        told += [f"{whose}{missed.why}" for missed in decision.missed]
        code = max(
            code, RUN_ERRORS if decision.broke else PASSED if decision.passed else GATE_MISSED
        )
    if told:
        raise Stopped("\n".join(told), code)
