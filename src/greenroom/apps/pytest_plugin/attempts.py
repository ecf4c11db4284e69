"""The attempts of one test: what was rehearsed in each, sent on pytest's own reports.

So xdist brings them back from its workers.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from greenroom.results.report import Report
    from greenroom.results.result import CaseResult

_rehearsed: list["Report"] = []
listening: list[object] = []
"""The tallies that count what is rehearsed; without one, nothing is remembered."""
Asked = dict[str, list[list["CaseResult"]]]


@dataclass(slots=True)
class _Attempts:
    """The runs of a test. A plug-in may run it again, and then the last attempt counts, as it does for pytest."""

    number: int = 1
    first: int = 1
    """The attempt in which `rehearsed` begins: a later one need not rehearse what a fixture of its module did."""
    rehearsed: list["Report"] = field(default_factory=list["Report"])
    asked: Asked = field(default_factory=Asked)
    earlier: tuple[float | None, ...] = ()
    """What each earlier attempt has cost; None where that is unknown."""

    def replace_earlier(self) -> None:
        """Drop what earlier attempts have rehearsed, but not what it cost."""
        if self.first < self.number:
            self.earlier = (*self.earlier, spent_in(self.rehearsed))
            self.rehearsed, self.asked, self.first = [], {}, self.number


_ATTEMPTS = pytest.StashKey[_Attempts]()


def remember(report: "Report") -> None:
    """Remember a report without its secrets until the test in which it was made is reported."""
    if listening:
        from greenroom.results.redaction import redacted

        _rehearsed.append(redacted(report))


def count(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put what was rehearsed on the report of its test, and below the traceback if the test failed."""
    attempts = item.stash.get(_ATTEMPTS, None)
    if attempts is None:
        attempts = item.stash[_ATTEMPTS] = _Attempts()
    elif report.when == "setup":
        attempts.number += 1
    # A case of a file rehearses in every attempt; if it does not, it broke before.
    if _rehearsed or hasattr(item, "evalset"):
        attempts.replace_earlier()
    if _rehearsed or attempts.number > 1:
        attempts.rehearsed += _rehearsed
        vars(report)["greenroom"] = _sent(item, report, attempts)
        _rehearsed.clear()
    if not attempts.rehearsed and _is_gated(item) and report.when == "call" and report.passed:
        report.outcome = "failed"
        report.longrepr = (
            "nothing was rehearsed, so the gate of @pytest.mark.greenroom(...) decided nothing"
        )
    if attempts.rehearsed and report.failed and not hasattr(item, "evalset"):
        _show(item, report, attempts.rehearsed)


def _sent(item: pytest.Item, report: pytest.TestReport, attempts: _Attempts) -> dict[str, Any]:
    """What one phase of an attempt has rehearsed, as it travels on pytest's report."""
    from greenroom.ledger.redaction import without_secrets
    from greenroom.results.data import report_data

    nodeid, in_file = without_secrets(report.nodeid), hasattr(item, "evalset")
    named = [_addressed(one, nodeid, None if in_file else attempts.asked) for one in _rehearsed]
    return {
        "in_file": in_file,
        # As ASCII: half a surrogate pair from a model must not break the transfer from a worker.
        "reports": [json.dumps(report_data(one)) for one in named],
        "worker": getattr(item.config, "workerinput", {}).get("workerid", ""),
        "attempt": attempts.number,
        "first": attempts.first,
        "earlier": attempts.earlier,
    }


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
    sources = {
        names[case_id]: place for case_id, place in report.sources.items() if case_id in names
    }
    parts = [[names[case_id] for case_id in part] for part in report.parts]
    return replace(
        report, results=results, confirmed=tuple(confirmed), sources=sources, parts=parts
    )


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


def spent_in(reports: "Sequence[Report]") -> float | None:
    """What these reports cost together; None where that is unknown."""
    return sum_known([one.spent for one in reports])


def sum_known(costs: Sequence[float | None]) -> float | None:
    """The sum of these costs; None if one of them is unknown."""
    known = [cost for cost in costs if cost is not None]
    return fsum(known) if len(known) == len(costs) else None
