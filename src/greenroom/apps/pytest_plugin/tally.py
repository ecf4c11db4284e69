"""What was rehearsed in a pytest run, counted: the summary, the gate and the report file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from greenroom.apps.pytest_plugin.attempts import listening, spent_in, sum_known
from greenroom.apps.pytest_plugin.settings import KEY, Settings, is_listed, is_usual

if TYPE_CHECKING:
    from greenroom.results.report import Report


@dataclass(slots=True)
class _Test:
    """What the last attempt of a test has sent."""

    in_file: bool
    worker: str = ""
    """The xdist worker that has sent it; one that replaces a dead worker counts its attempts from 1 again."""
    attempt: int = 1
    first: int = 1
    """The attempt in which what was sent begins."""
    sent: list[str] = field(default_factory=list[str])
    is_lost: bool = False
    """Whether it broke before it had a result."""
    earlier: Sequence[float | None] = ()
    elsewhere: int = 0
    """How many attempts were made by workers that have died."""
    paid_elsewhere: tuple[float | None, ...] = ()
    """What those have cost."""

    def take(self, sent: dict[str, Any]) -> None:
        """Add what one phase of an attempt has sent."""
        is_elsewhere = sent["worker"] != self.worker
        if is_elsewhere and self.sent:
            self.elsewhere += self.attempt
            self.paid_elsewhere = (*self.earlier, spent_in([_received(one) for one in self.sent]))
        if is_elsewhere or sent["first"] > self.first:
            self.sent, self.is_lost = [], False
        self.worker, self.first = sent["worker"], sent["first"]
        self.attempt = sent["attempt"]
        self.earlier = (*self.paid_elsewhere, *sent["earlier"])
        self.sent += sent["reports"]

    @property
    def repeats(self) -> int:
        """How often it was run again."""
        return self.elsewhere + self.attempt - 1


def tally_of(config: pytest.Config) -> "Tally":
    """The tally of this run."""
    return cast(Tally, config.pluginmanager.get_plugin(Tally.NAME))


class Tally:
    """Counts the results of all tests, and decides by the gate."""

    NAME: ClassVar[str] = "greenroom-tally"

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._tests: dict[str, _Test] = {}
        self._left_out: list[str] = []
        self._missed: list[str] = []
        self._failures = 0
        self._has_passed = False
        self.without_agent: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Remember reports from now on."""
        listening.append(self)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the results of a test; a case that failed without a result broke before it had one."""
        sent: dict[str, Any] | None = vars(report).get("greenroom")
        is_case = (report.failed or report.skipped) and self._is_case(report)
        test = self._tests.get(report.nodeid)
        if test is None and (sent is not None or (is_case and report.failed)):
            in_file = True if sent is None else sent["in_file"]
            test = self._tests[report.nodeid] = _Test(in_file)
        if test is not None and sent is not None:
            test.take(sent)
        if is_case and report.failed:
            self._failures += not hasattr(report, "wasxfail")
            if test is not None and not (sent and sent["reports"]):
                test.is_lost = True
        elif is_case and test is None:
            self._left_out.append(report.nodeid)

    def _is_case(self, report: pytest.TestReport) -> bool:
        """Whether a report is about a case of a file; that of a dead worker knows only its name."""
        path = self._config.rootpath / report.nodeid.partition("::")[0]
        known = "greenroom" in report.keywords and path.suffix != ".py"
        return known or is_usual(path) or is_listed(path, self._config)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Let the gate decide, if there is one and everything was run."""
        listening.remove(self)
        if (home := getattr(self._config, "workeroutput", None)) is not None:
            home["greenroom_without_agent"] = self.without_agent
            return
        is_whole = (
            exitstatus in (0, 1, pytest.ExitCode.NO_TESTS_COLLECTED)
            and not session.shouldfail
            and not session.shouldstop
            and not self._config.option.collectonly
        )
        report = self._report(in_file=True)
        if report is None:
            if is_whole and self._settings.has_gate and (why := self._unasked()):
                self._missed.append(f"no case of an eval set was evaluated: {why}")
                session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED
            return
        from greenroom.errors import BadFile
        from greenroom.reports.words import printable

        try:
            if self._settings.report:
                report.save(self._config.invocation_params.dir / self._settings.report)
        except BadFile as error:
            self._missed.append(printable(str(error)))
        if is_whole:
            self._judge(report, session)

    def _unasked(self) -> str:
        """Why no case of an eval set was run; empty if none was chosen, as by `-m "not greenroom"`."""
        if self._left_out:
            return f"cases skipped: {len(self._left_out)}"
        option = self._config.option
        if self.without_agent and not (option.markexpr or option.keyword):
            return f"no agent is known for {', '.join(self.without_agent)}"
        return ""

    def _judge(self, report: "Report", session: pytest.Session) -> None:
        earlier = [cost for test in self._tests.values() if test.in_file for cost in test.earlier]
        self._missed += missed(report, self._settings, self._config.rootpath, earlier)
        has_lost = any(test.is_lost for test in self._tests.values())
        if self._missed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._settings.has_gate and not has_lost and session.testsfailed == self._failures:
            self._has_passed = True
            session.exitstatus = pytest.ExitCode.OK

    def _report(self, *, in_file: bool) -> "Report | None":
        """All results of eval-set files, or all of tests, as one report."""
        tests = {name: test for name, test in self._tests.items() if test.in_file == in_file}
        if not tests:
            return None
        from greenroom.results.report import Report, new_report_id, shared_measures
        from greenroom.results.result import CaseResult, Problem
        from greenroom.results.shards import joined_notes, parts_of

        parts = [_received(one) for test in tests.values() for one in test.sent]
        never = Problem("system", "the test that runs it broke before there was a result")
        broken = [
            CaseResult(case_id=name, status="error", error=never)
            for name, test in tests.items()
            if test.is_lost and not test.sent
        ]
        notes = joined_notes(parts)
        notes += [
            f"{name} was run again {_times(test.repeats)} by a plug-in of pytest; only the last attempt counts"
            for name, test in tests.items()
            if test.repeats
        ]
        return Report(
            [*(result for part in parts for result in part), *broken],
            "pytest",
            sum(part.seconds for part in parts),
            list(dict.fromkeys(notes)),
            id=new_report_id(),
            evalset_id=", ".join(
                dict.fromkeys(part.evalset_id for part in parts if part.evalset_id)
            ),
            at=min((part.at for part in parts if part.at is not None), default=None),
            adaptive=any(part.adaptive for part in parts),
            parts=parts_of(parts),
            confirmed=tuple(result for part in parts for result in part.confirmed),
            against=next((part.against for part in parts if part.against is not None), None),
            sources={case: place for part in parts for case, place in part.sources.items()},
            measures=shared_measures(parts),
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """An xdist worker is done; every worker has collected the same files."""
        self.without_agent = getattr(node, "workeroutput", {}).get(
            "greenroom_without_agent", self.without_agent
        )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what was rehearsed, what it cost, and whether the gate passed."""
        lines = [*self._counted(), *(f"gate: {why}" for why in self._missed)]
        if self._has_passed:
            lines.append("gate: passed, so cases that did not pass do not fail this run")
        if self.without_agent and self._config.get_verbosity() >= -1:
            files = ", ".join(self.without_agent)
            lines.append(f"not run, because no agent is known for it: {files}")
        if lines:
            terminalreporter.section("greenroom")
            for line in lines:
                terminalreporter.line(line)

    def _counted(self) -> list[str]:
        found = {"eval sets": self._report(in_file=True), "tests": self._report(in_file=False)}
        if not any(found.values()):
            return []
        from greenroom.reports.console import totals
        from greenroom.reports.words import printable

        return [
            printable(f"{where}: {totals(report).plain}")
            for where, report in found.items()
            if report is not None
        ]


def _received(text: str) -> "Report":
    from greenroom.results.data import report_from

    return report_from(json.loads(text), "a test's report")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_BASELINE = pytest.StashKey["Report | None"]()


def baseline_in(config: pytest.Config) -> "Report | None":
    """The earlier report that the project names, read once; BadInput if it cannot be read."""
    if _BASELINE not in config.stash:
        from greenroom.results.report import Report

        named = config.stash[KEY].baseline
        config.stash[_BASELINE] = Report.load(config.rootpath / named) if named else None
    return config.stash[_BASELINE]


def missed(
    report: "Report", settings: Settings, root: Path, earlier: Sequence[float | None] = ()
) -> list[str]:
    """Why the cases of eval-set files together do not pass the gate; empty if they do.

    `earlier` is what attempts have cost that were repeated: only that counts of them.
    """
    from greenroom.errors import BadInput
    from greenroom.reports.words import printable
    from greenroom.results.gate import Gate
    from greenroom.results.report import Report
    from greenroom.results.words import dollars_apart

    try:
        baseline = Report.load(root / settings.baseline) if settings.baseline else None
    except BadInput as error:
        return [str(error)]
    minimum = settings.min_pass_rate
    gate = Gate(
        min_pass_rate=0.0 if minimum is None and baseline is None else minimum,
        max_errors=settings.max_errors,
        max_cost=settings.max_cost,
    )
    # Without a gate, each case has to pass as a test, so only the cost is left to check.
    found = gate.decide(report, baseline).missed
    whys = [printable(one.why) for one in found if settings.has_gate or one.kind == "cost"]
    if settings.max_cost is None or not earlier or any(one.kind == "cost" for one in found):
        return whys
    total = sum_known([report.spent, *earlier])
    if total is None:
        return [*whys, "the cost of attempts that were repeated is unknown"]
    if total > settings.max_cost:
        paid, most = dollars_apart(total, settings.max_cost)
        whys.append(
            f"with attempts that were repeated, the cost of {paid} is above a maximum of {most}"
        )
    return whys
