"""`greenroom eval run`: load, play, report, and decide by the gate."""

import shlex
from dataclasses import dataclass

from greenroom.apps.cli.exits import (
    GATE_MISSED,
    PASSED,
    RUN_ERRORS,
    Stopped,
    loading,
    telling,
)
from greenroom.apps.cli.playing import Interrupted, play
from greenroom.apps.cli.progress import Watching
from greenroom.cases import Case, EvalSet
from greenroom.errors import BadInput
from greenroom.reports.console import ConsoleReport, Detail, missed
from greenroom.reports.terminal import Terminal
from greenroom.results import Report
from greenroom.suite import load_cases
from greenroom.suite.references import load_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was asked for on the command line."""

    agent: str
    cases: str = ""
    concurrency: int = 4
    allow_tools: tuple[str, ...] = ()
    fail_fast: bool = False
    min_pass_rate: float = 1.0
    max_errors: int = 0
    verbose: bool = False
    quiet: bool = False

    @property
    def cases_from(self) -> str:
        """Where the cases are: as told, or in the agent's own file."""
        return self.cases or _file_of(self.agent)

    @property
    def detail(self) -> Detail:
        """How much to show."""
        return "little" if self.quiet else "all" if self.verbose else "usual"


def run(order: Order) -> int:
    """Carry out an order; what is returned is the exit code."""
    terminal = Terminal()
    with telling(order.verbose):
        with loading(order.cases_from, order.verbose):
            cases = load_cases(order.cases_from)
        shown = ConsoleReport(terminal, order.detail, rerun_commands(order))
        report = _played(order, cases, shown)
        shown.show(report)
        return passed_gate(report, order.min_pass_rate, order.max_errors)


def _played(order: Order, cases: EvalSet, shown: ConsoleReport) -> Report:
    watching = Watching(shown.terminal, len(cases), shown=not order.quiet)
    try:
        return play(
            order.agent,
            cases,
            watching,
            verbose=order.verbose,
            concurrency=order.concurrency,
            allow_tools=order.allow_tools,
            fail_fast=order.fail_fast,
            keep_ledgers=not order.quiet,
        )
    except Interrupted as stop:
        # What was finished before is worth seeing, though it is no verdict on the whole.
        shown.show(watching.so_far)
        done = f"{stop} after {len(watching.done)} of {watching.total} cases"
        raise Stopped(done, stop.exit_code) from None


def passed_gate(report: Report, minimum: float, max_errors: int = 0) -> int:
    """Zero if enough cases passed; errors come first, since they prove nothing either way."""
    summary = report.summary
    if summary.errors > max_errors:
        noun = "case" if summary.errors == 1 else "cases"
        allowed = f", {max_errors} allowed" if max_errors else ""
        raise Stopped(f"{summary.errors} {noun} ended in an error{allowed}", RUN_ERRORS)
    rate = summary.pass_rate
    if rate is None or rate < minimum:
        raise Stopped(missed(rate, minimum), GATE_MISSED)
    return PASSED


def rerun_commands(order: Order) -> dict[str, str]:
    """How to play a single case again: known for those that have a name in their module."""
    file = _file_of(order.cases_from)
    try:
        named = vars(load_module(file)).items()
    except BadInput:
        return {}
    words = ["greenroom", "eval", "run", order.agent]
    return {
        case.id: shlex.join([*words, f"{file}:{name}"])
        for name, case in named
        if isinstance(case, Case)
    }


def _file_of(reference: str) -> str:
    """The `path` of `path[:attr]`."""
    where, colon, attr = reference.rpartition(":")
    return where if colon and where and "/" not in attr else reference
