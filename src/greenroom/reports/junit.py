"""A report as JUnit XML, which every CI server reads.

It follows the Jenkins and Ant schemas: one suite, a test case for each trial. What these have no element
for (scores, cost, tokens, tags, models of a case) is written before its transcript as
`[[PROPERTY|name=value]]`, a common convention.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from os import urandom
from typing import ClassVar, get_args
from xml.etree import ElementTree as Xml

from greenroom.ledger.money import money
from greenroom.ledger.safe_text import harmless
from greenroom.reports.transcript import conversation, retold
from greenroom.results.comparisons.changes import Verdict
from greenroom.results.comparisons.comparison_text import certainty, confirmed, rates
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.text import mark, reasons, spending
from greenroom.results.totals import by_case
from greenroom.results.words import outcome_text, shortened

_LONGEST_ATTRIBUTE = 500
_LONGEST_TEXT = 20_000
_LEVEL = 2
"""The indentation of a case in the file."""
_BETWEEN = f"\n{'  ' * _LEVEL}"
# Some servers act on text between double brackets, and fetch the file it names.
_DOUBLE = re.compile(r"\[(?=\[)")


class JunitReport:
    """Renders a report as JUnit XML."""

    name: ClassVar[str] = "junit"
    file: ClassVar[str] = "junit.xml"

    def render(
        self,
        report: Report,
        *,
        baseline: Report | None = None,
        decision: Decision | None = None,
    ) -> str:
        """All cases in one suite; its properties include what changed, and the quality gate's verdict."""
        return "".join(self.parts(report, baseline=baseline, decision=decision))

    def parts(
        self,
        report: Report,
        *,
        baseline: Report | None = None,
        decision: Decision | None = None,
    ) -> Iterator[str]:
        """The XML in parts, one for each trial, so that it is never held as a whole."""
        clean = redacted(report)
        earlier = None if baseline is None else redacted(baseline)
        said = redacted_decision(decision)
        root = Xml.Element("testsuites", _totals(clean))
        suite = Xml.SubElement(root, "testsuite", _totals(clean) | _suite(clean))
        _properties(suite, _suite_facts(clean, earlier, said))
        # A unique placeholder that marks where the cases go.
        gap = f"case-{urandom(16).hex()}"
        if len(clean):
            Xml.SubElement(suite, gap)
        Xml.indent(root)
        head, _, tail = Xml.tostring(root, encoding="unicode").partition(f"<{gap} />")
        yield f'<?xml version="1.0" encoding="utf-8"?>\n{head}'
        names, before = _Names(clean), ""
        for result in clean.results:
            place = clean.sources.get(result.case_id)
            home = place.evalset if place is not None and place.evalset else _suite_name(clean)
            yield f"{before}{_case(result, home, names.of(result))}"
            before = _BETWEEN
        yield f"{tail}\n"


def _totals(report: Report) -> dict[str, str]:
    counts = report.summary
    return {
        "name": _attribute(_suite_name(report)),
        "tests": str(counts.total),
        "failures": str(counts.failed + counts.terminated),
        "errors": str(counts.errors),
        "time": f"{report.seconds:.3f}",
    }


def _suite(report: Report) -> dict[str, str]:
    found = {"skipped": str(report.summary.skipped)}
    if report.at is not None:
        with suppress(OverflowError, OSError, ValueError):  # a file may name any year
            began = datetime.fromtimestamp(report.at, UTC)
            found["timestamp"] = began.strftime("%Y-%m-%dT%H:%M:%S")
    return found


def _suite_name(report: Report) -> str:
    return report.evalset_id or report.name or "greenroom"


def _suite_facts(
    report: Report, baseline: Report | None, decision: Decision | None
) -> Iterator[tuple[str, str]]:
    """What is known about the whole run; unknown facts are left out."""
    if report.id:
        yield "report", report.id
    if decision is not None:
        yield "gate", "passed" if decision.passed else "missed"
        yield "gate.exit_code", str(decision.exit_code)
        for missed in decision.missed:
            yield "gate.missed", missed.why
    if report.pass_rate is not None:
        yield "pass_rate", f"{report.pass_rate:.4f}"
    if (interval := report.interval) is not None:
        yield "pass_rate.low", f"{interval.low:.4f}"
        yield "pass_rate.high", f"{interval.high:.4f}"
    yield from _spent(report)
    for name, found in report.metrics.items():
        if found.mean is not None:
            yield f"mean.{name}", f"{found.mean:.4f}"
    for tag, found in report.per_tag.items():
        if found.pass_rate is not None:
            yield f"pass_rate.tag.{tag}", f"{found.pass_rate:.4f}"
    for note in report.notes:
        yield "note", note
    if (changes := held_against(report, baseline, decision)) is not None:
        yield "baseline", changes.baseline.id or "a report without an id"
        for verdict in get_args(Verdict):
            yield f"baseline.{verdict}", str(len(changes.of(verdict)))
        yield "baseline.trend", changes.trend
        if change := rates(changes):
            yield "baseline.pass_rate", f"{change}: {certainty(changes)}"
        for missed in changes.worse:
            yield "baseline.worse", missed.why
        if again := confirmed(changes):
            yield "baseline.confirmed", again


def _spent(whose: Report | CaseResult) -> Iterator[tuple[str, str]]:
    for spent in spending(whose):
        side = "" if spent.role == "agent" else f"{spent.role}."
        usage, cost = spent.usage, spent.cost
        yield f"{side}models", ", ".join(spent.models)
        yield f"{side}tokens", f"{usage.input} in, {usage.output} out" if usage else "unknown"
        yield f"{side}cost_usd", "unknown" if cost is None else money(cost)


def _properties(parent: Xml.Element, facts: Iterator[tuple[str, str]]) -> None:
    group = Xml.SubElement(parent, "properties")
    for name, value in facts:
        Xml.SubElement(group, "property", {"name": _attribute(name), "value": _attribute(value)})


# One case


class _Names:
    """What each result is called: its case's title, its id too if two share it, and its trial."""

    def __init__(self, report: Report) -> None:
        self._titles: dict[str, str] = {}
        self._several: set[str] = set()
        for trials in by_case(report):
            last = trials[-1]
            self._titles[last.case_id] = last.name or last.case_id
            if len(trials) > 1:
                self._several.add(last.case_id)
        self._shared = Counter(self._titles.values())

    def of(self, result: CaseResult) -> str:
        """The name of one result."""
        title = self._titles[result.case_id]
        same = f" ({result.case_id})" if self._shared[title] > 1 else ""
        trial = f" [trial {result.trial}]" if result.case_id in self._several else ""
        return f"{title}{same}{trial}"


def _case(result: CaseResult, suite_name: str, name: str) -> str:
    attributes = {
        "classname": _attribute(suite_name),
        "name": _attribute(name),
        "time": f"{result.seconds:.3f}",
    }
    element = Xml.Element("testcase", attributes)
    _verdict(element, result)
    Xml.SubElement(element, "system-out").text = _cut("\n".join(_system_out(result)))
    Xml.indent(element, level=_LEVEL)
    return Xml.tostring(element, encoding="unicode")


def _verdict(element: Xml.Element, result: CaseResult) -> None:
    whys = reasons(result)
    message = _attribute(whys[0] if whys else result.status)
    if result.status == "skipped":
        Xml.SubElement(element, "skipped", {"message": message})
    elif result.fell_short:
        kind, name = result.status, "failure"
        if result.status == "error":
            kind, name = (result.error and result.error.type) or "error", "error"
        why = Xml.SubElement(element, name, {"type": _attribute(kind), "message": message})
        lines = [*whys, "", *retold(conversation(result))]
        why.text = _cut("\n".join(_plain(line) for line in lines))


def _system_out(result: CaseResult) -> Iterator[str]:
    for name, value in _case_facts(result):
        yield f"[[PROPERTY|{_inside(name)}={_inside(value)}]]"
    yield ""
    yield from (_plain(line) for line in retold(conversation(result), longest=2000))


def _case_facts(result: CaseResult) -> Iterator[tuple[str, str]]:
    yield "case", result.case_id
    yield "status", result.status
    if result.tags:
        yield "tags", ", ".join(result.tags)
    for name, outcome in result.scores.items():
        yield f"score.{name}", f"{outcome_text(outcome)}{mark(result, name)}"
    if result.ended is not None:
        yield "turns", str(result.turns)
        yield from _spent(result)
    if result.blame is not None:
        yield "blame", result.blame.whom
    for name in ("trace_id", "trace_link"):
        if value := getattr(result, name):
            yield name, value


def _plain(text: str) -> str:
    """Text from outside, escaped so that no server treats it as a command."""
    return _DOUBLE.sub("[ ", text)


def _inside(text: str) -> str:
    """Text from outside for use in double brackets, escaped so that it cannot close them."""
    return " ".join(re.sub(r"[\[\]|=]", "_", text).split())


def _attribute(text: str) -> str:
    # XML does not allow control characters; they are written out, as in `\\x1b`.
    return harmless(shortened(text, _LONGEST_ATTRIBUTE))


def _cut(text: str) -> str:
    return harmless(
        text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}\n… shortened here"
    )
