"""Renders reports with a reporter chosen by name, built in or a plug-in's."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from msgspec import Struct

from greenroom.plugins import Plugins
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report


class Reporter(Protocol):
    """Renders a report for one kind of reader. It is given reports without secrets."""

    @property
    def name(self) -> str:
        """The name it is chosen by."""
        ...

    @property
    def file(self) -> str:
        """The file's name unless another is given."""
        ...

    def render(self, report: Report, *, baseline: Report | None = None) -> str:
        """The report as text; `baseline` is an earlier one to compare it with.

        A method that also takes `decision` is given the quality gate's decision, or None.
        """
        ...


class FunctionReporter(Struct, frozen=True):
    """A render function as a reporter; it need not accept baselines and decisions."""

    name: str
    function: Callable[..., str]

    @property
    def file(self) -> str:
        """The usual name, with the format as its ending."""
        return f"eval_report.{self.name}"

    def render(self, report: Report, **given: object) -> str:
        """The function's rendering."""
        return self.function(report, **_taken(self.function, given))


def _accept(found: object, name: str) -> Reporter | None:
    """The reporter that an entry point leads to: an object, a class, or a render function."""
    made: object = found() if isinstance(found, type) else found
    if callable(getattr(made, "render", None)):
        return cast(Reporter, made)
    return FunctionReporter(name, cast("Callable[..., str]", made)) if callable(made) else None


REPORTERS = Plugins(
    "greenroom.reports",
    "report format",
    accept=_accept,
    wanted="an object with render(report, *, baseline=None), a class of them, or such a function",
)


def reporter_names() -> list[str]:
    """Every format a report can be written in, given what is installed."""
    return REPORTERS.names()


def load_reporter(name: str) -> Reporter:
    """The reporter of this name; NotFound lists the known names."""
    return REPORTERS.load(name)


def render_report(
    reporter: Reporter | str,
    report: Report,
    *,
    baseline: Report | None = None,
    decision: Decision | None = None,
) -> str:
    """The report as this reporter renders it, without secrets."""
    chosen = load_reporter(reporter) if isinstance(reporter, str) else reporter
    return RenderedParts.of(report, baseline, decision).by(chosen)


class RenderedParts(Struct, frozen=True):
    """What reporters are given: a report, its baseline and the quality gate's decision."""

    report: Report
    baseline: Report | None
    decision: Decision | None

    @classmethod
    def of(
        cls, report: Report, baseline: Report | None, decision: Decision | None
    ) -> "RenderedParts":
        """All of it without secrets, compared once for all reporters."""
        clean, earlier = redacted(report), None if baseline is None else redacted(baseline)
        if (said := redacted_decision(decision)) is not None:
            said = Decision(said.missed, held_against(clean, earlier, said))
        return cls(clean, earlier, said)

    def by(self, reporter: Reporter) -> str:
        """The report as this reporter renders it; it need not accept baselines and decisions."""
        return "".join(self.parts_by(reporter))

    def parts_by(self, reporter: Reporter) -> Iterable[str]:
        """The rendered report in parts, if the reporter has a method `parts` that makes them one by one."""
        given: dict[str, Any] = {"baseline": self.baseline, "decision": self.decision}
        if (parts := getattr(reporter, "parts", None)) is not None:
            return parts(self.report, **_taken(parts, given))
        return [reporter.render(self.report, **_taken(reporter.render, given))]


def _taken(function: Callable[..., str], given: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments, among these, that a function takes."""
    known = inspect.signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return given
    return {name: value for name, value in given.items() if name in known}
