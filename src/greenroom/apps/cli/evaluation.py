"""`greenroom eval run`: load, run, report, and apply the quality gate."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import time

from greenroom.apps.cli import report_output
from greenroom.apps.cli.conclusion import (
    Decisions,
    check_failures_fit,
    decided,
    end,
    left_behind,
    show_together,
)
from greenroom.apps.cli.event_loop import check_agent, run_cases, tools_to_mock
from greenroom.apps.cli.exits import BAD_INPUT, Interrupted, Stopped, put_out, put_out_json
from greenroom.apps.cli.progress import Watching
from greenroom.apps.cli.request import Chosen, Order, chosen
from greenroom.cases import EvalSet
from greenroom.errors import BadInput, NotFound, StoreFailed
from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.reports.console import ConsoleReport
from greenroom.reports.terminal import Terminal, styled
from greenroom.results import Report
from greenroom.results.comparisons.changes import sides
from greenroom.results.comparisons.comparison import FEWEST_IN_TAG
from greenroom.results.report import MAX_TRIALS
from greenroom.results.words import number_of
from greenroom.store import Run
from greenroom.store.web_address import served_at
from greenroom.suite.budget import Budget
from greenroom.suite.mock_suggestions import mocks_block, suggested_mock


def run(order: Order) -> None:
    """Carry out an order."""
    plan = order.plan()
    if order.save_failures:
        report_output.check_reachable(Path(order.save_failures))
    baseline = report_output.read_baseline(order.baselines, order.store)
    cases = chosen(order, order.aside)
    if order.save_failures:
        check_failures_fit(order, cases)
    if baseline is not None:
        _check_tags(order.gate_tags, cases.evalset, baseline)
    if order.suggest_mocks:
        _suggest_mocks(order, cases)
    elif order.dry_run:
        from greenroom.apps.cli.dry_run import show_forecasts  # loaded where it is used

        show_forecasts(order, cases.evalset, baseline)
    else:
        rehearsal = _Rehearsal(order, cases, plan, baseline)
        rehearsal.run()
        unwritten = rehearsal.conclude()
        end(rehearsal.decisions, unwritten)


def _check_tags(tags: Sequence[str], evalset: EvalSet, baseline: Report) -> None:
    """Refuse a tag with too few cases to show a change, before anything runs."""
    clean = clean_ids(evalset.ids, redactor())
    before = {case_id for case_id, side in sides(baseline).items() if side.counts.evaluated}
    for tag in tags:
        tagged = [case.id for case in evalset if tag in map(str, case.tags)]
        shared = sum(clean[case_id] in before for case_id in tagged)
        if shared < FEWEST_IN_TAG:
            raise BadInput(
                f"--gate-tag {tag}: {number_of(len(tagged), 'case')} with this tag, {shared} of them in the "
                f"baseline; fewer than {FEWEST_IN_TAG} are too few to show a change. Leave the tag out, or "
                f"give a baseline with more of its cases."
            )


def _suggest_mocks(order: Order, cases: Chosen) -> None:
    """Print mocks to begin with instead of running anything."""
    found = tools_to_mock(order.agent, cases.evalset, order.settings())
    if order.as_json:
        mocks = {facts.name: suggested_mock(facts) for facts in found}
        put_out_json(json.dumps({"mocks": mocks}, indent=2))
    elif found:
        put_out(mocks_block(found))
    else:
        order.aside("every tool has a mock, or the agent's tools are not known before it runs")


class _Rehearsal:
    """The run of an order: one report for each agent."""

    def __init__(
        self, order: Order, cases: Chosen, plan: report_output.Plan, baseline: Report | None
    ) -> None:
        self.reports: dict[str, Report] = {}
        self.decisions: Decisions = {}
        self._order = order
        self._cases = cases
        self._plan = plan
        self._baseline = baseline
        self._terminal = Terminal()
        self._settings = order.settings()
        self._stop: Interrupted | None = None
        self._broken: StoreFailed | None = None
        self._kept: dict[str, Run] = {}
        self._budgets: dict[str, Budget] = {}
        self._since = time()

    # Running

    def run(self) -> None:
        """Run the agents one after another, until interrupted or until the store fails."""
        store = self._order.keeping
        if store is not None and (page := served_at(store.place)):
            self._order.aside(f"follow it: {page}/runs")
        # Refuse an agent that cannot run these cases now, not after the others have run for an hour.
        for agent in self._order.agents[1:]:
            workers = self._order.workers_for(agent)
            check_agent(agent, self._cases.evalset, workers=workers, **self._settings)
        for number, agent in enumerate(self._order.agents, start=1):
            if self._stop is None and self._broken is None:
                self._run(agent, number)

    def _run(self, agent: str, number: int) -> None:
        order = self._order
        if len(order.agents) > 1 and not order.as_json:
            self._terminal.say(styled(f"agent {number}: ", "dim"), styled(agent, "bold"))
        report = self._report_on(agent)
        if report is None:
            return
        try:
            self._take(agent, report)
        except (NotFound, StoreFailed) as error:
            if self._broken is None:
                raise
            # The conversations are in the store that failed.
            order.aside(f"the report cannot be shown: {error}")

    def _report_on(self, agent: str) -> Report | None:
        order = self._order
        watching = Watching(self._terminal, self._total, trials=self._trials, shown=order.talks)

        def on_overdue(code: int) -> None:
            # The main thread may be stuck anywhere; what is printed here is the last of it.
            watching.stop()
            self._stop = Interrupted(code)
            self._take(agent, self._so_far(watching))
            try:
                self.conclude()  # the process ends after this
            except Stopped as stopped:
                stopped.show()

        budget = order.money(self.reports.values())
        if budget is not None:
            self._budgets[agent] = budget
        try:
            report = run_cases(
                agent,
                self._cases.evalset,
                watching,
                names_unmocked=order.talks,
                on_overdue=on_overdue,
                resume_hint=lambda: self._resume_hint(agent),
                budget=budget,
                workers=order.workers_for(agent),
                **self._settings,
                **order.against(agent, self._baseline),
            )
        except Interrupted as stop:
            self._stop = stop
            return stop.report
        except StoreFailed as error:
            if error.report is None:  # nothing ran: the store could not be used at all
                raise
            self._broken = error
            return error.report
        if order.resume is not None and not watching.done:
            order.aside("nothing was left to run")
        return report

    def _resume_hint(self, agent: str) -> str:
        """How to resume the run in progress, for a user who does not wait for its report."""
        run = self._under_way()
        return (
            f"run {run.id}; to resume: {self._order.resume_command(agent, run.id)}" if run else ""
        )

    def _so_far(self, watching: Watching) -> Report:
        """The finished part of a run that does not stop; the store may have more than the hooks reported."""
        store, run = self._order.keeping, self._under_way()
        with suppress(NotFound, StoreFailed):
            if store is not None and run is not None:
                return store.report(run.id)
        return watching.so_far

    def _under_way(self) -> Run | None:
        """The run that is in progress or was just stopped, if it is clear which one it is."""
        store, name = self._order.keeping, self._cases.evalset.name or self._cases.evalset.id
        known: list[Run] = []
        with suppress(NotFound, StoreFailed):
            known = [] if store is None else store.runs()
        known = [run for run in known if run.plan.name == name]
        if self._order.resume:
            known = [run for run in known if run.id.startswith(self._order.resume)]
        elif self._order.resume is None:
            known = [run for run in known if run.begun >= self._since]
        # It may be interrupted already, though its report is not shown yet.
        stopped = [
            run for run in known if run.status == "interrupted" and self._since <= (run.ended or 0)
        ]
        # Another process may be running the same set.
        found = [run for run in known if run.status == "running"] + stopped
        return found[0] if len(found) == 1 else None

    @property
    def _total(self) -> int:
        return len(self._cases) * self._trials

    @property
    def _trials(self) -> int:
        asked = MAX_TRIALS if self._order.trials == "auto" else self._order.trials
        return asked or self._cases.evalset.trials

    def _take(self, agent: str, report: Report) -> None:
        """Show an agent's report."""
        if self._plan or self._order.as_json:
            report = replace(report, sources=self._cases.places())
        self.reports[agent] = report
        store = self._order.keeping
        with suppress(NotFound, StoreFailed):  # the report says so
            if store is not None and report.id:
                self._kept[report.id] = store.run(report.id)
        order = self._order
        if order.as_json:
            return
        rerun = self._cases.rerun_commands(order, agent)
        diff = report_output.diff_command(report.id, order.store) if report.id in self._kept else ""
        ConsoleReport(self._terminal, order.detail, rerun, diff).show(report)
        if not order.quiet and report.id in self._kept:
            self._terminal.say(styled("run ", "dim"), report.id)

    # Concluding

    def conclude(self) -> list[str]:
        """Write and show what covers all agents; returns why some files could not be written.

        Raises Stopped if the run was interrupted or the store failed: a partial run has no verdict.
        """
        order, unwritten = self._order, list[str]()
        if self._stop is None and self._broken is None:
            self.decisions = decided(order, self.reports, self._baseline)
        if self.reports:
            reports, baseline, said = self.reports, self._baseline, self.decisions
            unwritten = left_behind(order, self._cases, reports, self._plan, baseline, said)
            show_together(order, reports, baseline, said)
        if self._stop is not None:
            message = "\n".join([*unwritten, self._ending(self._stop)])
            raise Stopped(message, self._stop.exit_code)
        if self._broken is not None:
            # What must be fixed, and how to resume afterwards, even if the store cannot be read.
            agent, report = list(self.reports.items())[-1]
            resume = f"to resume: {order.resume_command(agent, report.id)}"
            raise Stopped("\n".join([*unwritten, str(self._broken), resume]), BAD_INPUT)
        for hint in self._hints():
            order.aside(hint)
        return unwritten

    def _ending(self, stop: Interrupted) -> str:
        if not self.reports:
            return str(stop)
        counts = [report.summary for report in self.reports.values()]
        done = sum(count.total - count.skipped for count in counts)
        kind = "cases" if self._total == len(self._cases) else "trials"
        how_far = f"{stop} after {done} of {self._total * len(self._order.agents)} {kind}"
        return "\n".join([how_far, *self._hints()])

    def _hints(self) -> list[str]:
        """How to resume what is not finished."""
        found: list[str] = []
        for agent, report in self.reports.items():
            kept = self._kept.get(report.id)
            if kept is not None:
                found += self._to_go_on(agent, kept)
                found += self._to_try_again(agent, kept, report)
            elif not report.id and self._order.keeping is not None:
                found.append(f"to resume: {self._order.resume_command(agent)}")
        return found

    def _to_go_on(self, agent: str, kept: Run) -> list[str]:
        """The command that runs the rest, with a budget that allows it."""
        left = kept.total - kept.done
        is_again = bool(kept.plan.confirm) and kept.status == "interrupted"
        if left <= 0 and not is_again:
            return []
        order, budget = self._order, self._budgets.get(agent)
        rest = f"{left} of {kept.total} trials {'is' if left == 1 else 'are'} left"
        if left <= 0:
            rest = "failed cases must be run again"
        if order.is_shared:
            return [f"{rest}, here or in other shards; the command of each resumes it"]
        if budget is None or not budget.refusal:
            return [f"{rest}; to resume: {order.resume_command(agent, kept.id)}"]
        if budget.unpriced_refused:
            command = order.resume_command(agent, kept.id, unknown_prices="allow")
            return [f"{rest}; to resume without knowing all prices: {command}"]
        command = order.resume_command(agent, kept.id, budget="USD")
        return [f"{rest}; to resume, raise the budget: {command}"]

    def _to_try_again(self, agent: str, kept: Run, report: Report) -> list[str]:
        """The command that runs errors again, where they made the gate fail."""
        store = self._order.keeping
        with suppress(NotFound, StoreFailed):
            is_broken = report.summary.errors > self._order.max_errors
            is_one = not self._order.is_shared  # shards cannot be resumed by the id of their run
            if store is not None and is_broken and is_one and store.has_errors(kept):
                return [f"to run errors again: {self._order.retry_command(agent, kept.id)}"]
        return []
