"""What was rehearsed in a pytest run, counted: the summary, the gate and the report file.

Results travel on pytest's own reports, so that xdist brings them back from its workers.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from greenroom.apps.pytest_plugin.settings import KEY, Settings, is_listed, is_usual

if TYPE_CHECKING:
    from greenroom.results.report import Report
    from greenroom.results.result import CaseResult

_rehearsed: list["Report"] = []
_tallies: list["Tally"] = []
_REHEARSED = pytest.StashKey[list["Report"]]()
Asked = dict[str, list[list["CaseResult"]]]
_ASKED = pytest.StashKey[Asked]()


def remember(report: "Report") -> None:
    """Remember a report without its secrets until the test in which it was made is reported."""
    if _tallies:
        from greenroom.results.redaction import redacted

        _rehearsed.append(redacted(report))


def count(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put what was rehearsed on the report of its test, and below the traceback if the test failed."""
    if _rehearsed:
        item.stash.setdefault(_REHEARSED, []).extend(_rehearsed)
        in_file = hasattr(item, "evalset")
        from greenroom.ledger.redaction import without_secrets
        from greenroom.results.data import report_data

        nodeid = without_secrets(report.nodeid)
        # As ASCII: half a surrogate pair from a model must not break the transfer from a worker.
        asked = item.stash.setdefault(_ASKED, {})
        named = [_addressed(one, nodeid, None if in_file else asked) for one in _rehearsed]
        sent = [json.dumps(report_data(one)) for one in named]
        vars(report)["greenroom"] = {"in_file": in_file, "reports": sent}
        _rehearsed.clear()
    rehearsed = item.stash.get(_REHEARSED, None)
    if not rehearsed and _is_gated(item) and report.when == "call" and report.passed:
        report.outcome = "failed"
        report.longrepr = (
            "nothing was rehearsed, so the gate of @pytest.mark.greenroom(...) decided nothing"
        )
    if rehearsed and report.failed and not hasattr(item, "evalset"):
        _show(item, report, rehearsed)


def _is_gated(item: pytest.Item) -> bool:
    """Whether the test's own mark, not one of its class or module, says what has to pass."""
    marks = (mark for mark in item.own_markers if mark.name == "greenroom")
    return any(not mark.kwargs.keys().isdisjoint(("min_pass_rate", "baseline")) for mark in marks)


def _addressed(report: "Report", nodeid: str, asked: Asked | None) -> "Report":
    """The report with pytest's names for the cases, because several files may use the same ids.

    A test may use an id again for something else, which is then named `id (2)`: `asked` has the first
    results of everything an id meant in this test. None is for a case of a file, which has its test's name.
    """

    def name(case_id: str) -> str:
        if asked is None:
            return nodeid
        number = _number(asked.setdefault(case_id, []), trials[case_id])
        return f"{nodeid}::{case_id} ({number})" if number > 1 else f"{nodeid}::{case_id}"

    trials = report.by_case()
    names = {case_id: name(case_id) for case_id in trials}
    results, confirmed = (
        [replace(r, case_id=names[r.case_id]) for r in some]
        for some in (report.results, report.confirmed)
    )
    return replace(report, results=results, confirmed=tuple(confirmed))


def _number(known: "list[list[CaseResult]]", trials: "list[CaseResult]") -> int:
    """The place of these trials among the things that their id has meant; a new one is added."""
    if known:
        now = _version(trials)
        for number, earlier in enumerate(known, 1):
            if _version(earlier) == now:
                return number
    known.append(trials)
    return len(known)


def _version(trials: "list[CaseResult]") -> str:
    """What results are trials of: the case, the agent and what measures it, as far as they are known."""
    from greenroom.ledger.plain import without_addresses
    from greenroom.ledger.questions import started

    first = next((one for one in trials if one.kept is not None), trials[0])
    begun = None if first.kept is None else started(first.ledger)
    agent = "" if begun is None else begun.digest
    metrics = sorted({name for one in trials for name in one.scores})
    data = json.dumps([first.case, agent, metrics], sort_keys=True, default=repr)
    return without_addresses(data)


def _show(item: pytest.Item, report: pytest.TestReport, rehearsed: list["Report"]) -> None:
    from greenroom.apps.pytest_plugin.collection import failures_text

    shown = [failures_text(one, item.config) for one in rehearsed if not one.passed]
    add = getattr(report.longrepr, "addsection", None)
    if shown and add is not None:
        add("rehearsed", "\n".join(shown))


def tally_of(config: pytest.Config) -> "Tally":
    """The tally of this run."""
    return cast(Tally, config.pluginmanager.get_plugin(Tally.NAME))


class Tally:
    """Counts the results of all tests, and decides by the gate."""

    NAME: ClassVar[str] = "greenroom-tally"

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._sent: dict[bool, list[str]] = {True: [], False: []}
        self._lost: list[str] = []
        self._missed: list[str] = []
        self._failures = 0
        self._has_passed = False
        self.without_agent: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Remember reports from now on."""
        _tallies.append(self)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the results of a test; a case that failed without a result broke before it had one."""
        sent: dict[str, Any] | None = vars(report).get("greenroom")
        if sent is not None:
            self._sent[sent["in_file"]] += sent["reports"]
        if report.failed and self._is_case(report):
            self._failures += not hasattr(report, "wasxfail")
            if sent is None:
                self._lost.append(report.nodeid)

    def _is_case(self, report: pytest.TestReport) -> bool:
        """Whether a report is about a case of a file; that of a dead worker knows only its name."""
        path = self._config.rootpath / report.nodeid.partition("::")[0]
        known = "greenroom" in report.keywords and path.suffix != ".py"
        return known or is_usual(path) or is_listed(path, self._config)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Let the gate decide, if there is one and everything was run."""
        _tallies.remove(self)
        if (home := getattr(self._config, "workeroutput", None)) is not None:
            home["greenroom_without_agent"] = self.without_agent
            return
        report = self._report(in_file=True)
        if report is None:
            return
        from greenroom.errors import BadFile
        from greenroom.reports.words import printable

        try:
            if self._settings.report:
                report.save(self._config.invocation_params.dir / self._settings.report)
        except BadFile as error:
            self._missed.append(printable(str(error)))
        if exitstatus in (0, 1) and not session.shouldfail and not session.shouldstop:
            self._judge(report, session)

    def _judge(self, report: "Report", session: pytest.Session) -> None:
        self._missed += missed(report, self._settings, self._config.rootpath)
        if self._missed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._settings.has_gate and not self._lost and session.testsfailed == self._failures:
            self._has_passed = True
            session.exitstatus = pytest.ExitCode.OK

    def _report(self, *, in_file: bool) -> "Report | None":
        """All results of eval-set files, or all of tests, as one report."""
        lost = self._lost if in_file else []
        if not self._sent[in_file] and not lost:
            return None
        from greenroom.results.data import report_from
        from greenroom.results.report import Report, new_report_id
        from greenroom.results.result import CaseResult, Problem

        parts = [report_from(json.loads(one), "a test's report") for one in self._sent[in_file]]
        never = Problem("system", "the test that runs it broke before there was a result")
        broken = [CaseResult(case_id=name, status="error", error=never) for name in lost]
        return Report(
            [*(result for part in parts for result in part), *broken],
            "pytest",
            sum(part.seconds for part in parts),
            list(dict.fromkeys(note for part in parts for note in part.notes)),
            id=new_report_id(),
            at=min((part.at for part in parts if part.at is not None), default=None),
            confirmed=tuple(result for part in parts for result in part.confirmed),
            against=next((part.against for part in parts if part.against is not None), None),
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


_BASELINE = pytest.StashKey["Report | None"]()


def baseline_in(config: pytest.Config) -> "Report | None":
    """The earlier report that the project names, read once; BadInput if it cannot be read."""
    if _BASELINE not in config.stash:
        from greenroom.results.report import Report

        named = config.stash[KEY].baseline
        config.stash[_BASELINE] = Report.load(config.rootpath / named) if named else None
    return config.stash[_BASELINE]


def missed(report: "Report", settings: Settings, root: Path) -> list[str]:
    """Why the cases of eval-set files together do not pass the gate; empty if they do."""
    from greenroom.errors import BadInput
    from greenroom.results.gate import Gate
    from greenroom.results.report import Report

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
    return [one.why for one in found if settings.has_gate or one.kind == "cost"]
