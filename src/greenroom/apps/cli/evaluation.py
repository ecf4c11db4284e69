"""`greenroom eval run`: load, play, report, and decide by the gate."""

from contextlib import suppress

from greenroom.apps.cli import filing
from greenroom.apps.cli.concluding import decide, left_behind, show_together
from greenroom.apps.cli.exits import PASSED, Interrupted, Stopped, put_out, telling
from greenroom.apps.cli.orders import Chosen, Order, chosen
from greenroom.apps.cli.playing import mocks_for, play
from greenroom.apps.cli.progress import Watching
from greenroom.errors import NotFound, StoreFailed
from greenroom.reports.console import ConsoleReport
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Report
from greenroom.store import Run
from greenroom.suite.adaptive import MAX_TRIALS


def run(order: Order) -> int:
    """Carry out an order; what is returned is the exit code."""
    with telling(order.verbose):
        plan = filing.planned(order.formats, order.output)
        baseline = filing.earlier(order.baseline, order.store) if order.baseline else None
        cases = chosen(order, order.aside)
        if order.suggest_mocks:
            return _suggest_mocks(order, cases)
        rehearsal = _Rehearsal(order, cases, plan, baseline)
        rehearsal.play()
        unwritten = rehearsal.conclude()
        decide(order, rehearsal.reports, baseline, unwritten)
        return PASSED


def _suggest_mocks(order: Order, cases: Chosen) -> int:
    """Print mocks to begin with instead of playing anything."""
    found = mocks_for(order.agent, cases.evalset, order.played_by(), order.settings())
    if found:
        put_out(found)
    else:
        order.aside("every tool has a mock, or the agent does not tell its tools beforehand")
    return PASSED


class _Rehearsal:
    """The run of an order: one report for each agent."""

    def __init__(
        self, order: Order, cases: Chosen, plan: filing.Plan, baseline: Report | None
    ) -> None:
        self.reports: dict[str, Report] = {}
        self._order = order
        self._cases = cases
        self._plan = plan
        self._baseline = baseline
        self._terminal = Terminal()
        self._settings = order.settings()
        self._stop: Interrupted | None = None
        self._kept: dict[str, Run] = {}

    # Playing

    def play(self) -> None:
        """Play the agents one after another, until somebody interrupts."""
        for number, agent in enumerate(self._order.agents, start=1):
            if self._stop is None:
                self._play(agent, number)

    def _play(self, agent: str, number: int) -> None:
        order = self._order
        if len(order.agents) > 1 and not order.as_json:
            self._terminal.say(styled(f"agent {number}: ", "dim"), styled(agent, "bold"))
        report = self._played(agent)
        if report is not None:
            self._take(agent, report)

    def _played(self, agent: str) -> Report | None:
        order = self._order
        watching = Watching(self._terminal, self._total, shown=order.talks)

        def overdue(code: int) -> None:
            # Nobody knows what the main thread holds; what is told here is the last of it.
            watching.stop()
            self._stop = Interrupted(code)
            self._take(agent, self._so_far(watching))
            self._tell_end()

        try:
            return play(
                agent,
                self._cases.evalset,
                watching,
                verbose=order.verbose,
                model=order.played_by(),
                tell=order.talks,
                overdue=overdue,
                budget=order.money(self.reports.values()),
                workers=order.hands(agent),
                **self._settings,
            )
        except Interrupted as stop:
            self._stop = stop
            return stop.report

    def _so_far(self, watching: Watching) -> Report:
        """What is finished of a run that does not stop: the store may know more than we were told."""
        store, name = self._order.keeping, self._cases.evalset.name or self._cases.evalset.id
        with suppress(NotFound, StoreFailed):
            known = () if store is None else store.runs()
            found = [run for run in known if run.status == "running" and run.plan.name == name]
            # Somebody else may play the same set just now.
            if store is not None and len(found) == 1:
                return store.report(found[0].id)
        return watching.so_far

    @property
    def _total(self) -> int:
        asked = MAX_TRIALS if self._order.trials == "auto" else self._order.trials
        return len(self._cases) * (asked or self._cases.evalset.trials)

    def _take(self, agent: str, report: Report) -> None:
        """Show what an agent came to."""
        self.reports[agent] = report
        self._remember(report)
        order = self._order
        if order.as_json:
            return
        rerun = self._cases.rerun_commands(order, agent)
        ConsoleReport(self._terminal, order.detail, rerun).show(report)
        if not order.quiet and report.id in self._kept:
            self._terminal.say(styled("run ", "dim"), report.id)

    def _remember(self, report: Report) -> None:
        """Look up the run of a report, if it was written down."""
        store = self._order.keeping
        with suppress(NotFound, StoreFailed):  # the report says so
            if store is not None and report.id:
                self._kept[report.id] = store.run(report.id)

    # Concluding

    def conclude(self) -> list[str]:
        """Write and show what belongs to the whole; which files could not be written is returned.

        Raises if somebody interrupted: what was finished is no verdict on the whole.
        """
        order, unwritten = self._order, list[str]()
        if self.reports:
            unwritten = left_behind(order, self._cases, self.reports, self._plan, self._baseline)
            show_together(order, self.reports, self._baseline)
        if self._stop is not None:
            told = "\n".join([*unwritten, self._ending(self._stop)])
            raise Stopped(told, self._stop.exit_code)
        for hint in self._hints():
            order.aside(hint)
        return unwritten

    def _tell_end(self) -> None:
        """The same for a run that does not come back."""
        try:
            self.conclude()
        except Stopped as stopped:
            stopped.show()

    def _ending(self, stop: Interrupted) -> str:
        if not self.reports:
            return str(stop)
        results = [result for report in self.reports.values() for result in report]
        done = sum(result.status != "skipped" for result in results)
        told = f"{stop} after {done} of {self._total * len(self._order.agents)} cases"
        return "\n".join([told, *self._hints()])

    def _hints(self) -> list[str]:
        """How to go on with what is not finished."""
        found: list[str] = []
        for agent, report in self.reports.items():
            kept = self._kept.get(report.id)
            if kept is not None and kept.done < kept.total:
                left = f"{kept.total - kept.done} of {kept.total} trials are left"
                found.append(f"{left}; to go on: {self._order.resumed_by(agent, kept.id)}")
            elif not report.id and self._order.keeping is not None:
                found.append(f"to go on: {self._order.resumed_by(agent)}")
        return found
