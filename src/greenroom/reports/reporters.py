"""Reporters by name, ours and a plug-in's, and several reports written at once."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec import Struct

from greenroom.errors import BadFile, BadInput
from greenroom.ledger.redaction import redactor
from greenroom.plugins import Plugins
from greenroom.results.files import write_whole
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report


class Reporter(Protocol):
    """Renders a report for one kind of reader. It is handed reports without secrets."""

    @property
    def name(self) -> str:
        """What it is asked for by."""
        ...

    @property
    def file(self) -> str:
        """The file's name unless another is given."""
        ...

    def render(self, report: Report, *, baseline: Report | None = None) -> str:
        """The report as a text; `baseline` is an earlier one to compare it with.

        One that also takes `decision` is handed what the gate said of the run, or None.
        """
        ...


Formats = Mapping[str, str | Path | None] | Iterable[str]
"""`{"json": "out/report.json", "junit": None}`, or `["json=out/report.json", "junit"]`."""


class Destination(Struct, frozen=True):
    """Where a reporter writes to."""

    reporter: Reporter
    path: Path


def write_reports(
    report: Report,
    formats: Formats,
    output: str | Path = ".",
    *,
    baseline: Report | None = None,
    decision: Decision | None = None,
) -> list[Path]:
    """Write a report in several formats, each file whole or not at all, and say where they are.

    A format without a path of its own goes to `output`: a folder, or the file itself if there is
    only one such format. One that fails keeps no other from being written; BadFile names it.
    `decision` is what the gate said of the run, and so what every file says of it.
    """
    places = destinations(formats, output)
    shown = _Shown.of(report, baseline, decision)
    written: list[Path] = []
    problems: list[str] = []
    for place in places:
        try:
            text = shown.by(place.reporter)
            written.append(write_whole(text, place.path, f"the {place.reporter.name} report"))
        except BadFile as error:
            problems.append(str(error))
        except Exception as error:  # noqa: BLE001 - a plug-in's reporter must not stop the others
            why = f"{type(error).__name__}: {error}"
            problems.append(f"the {place.reporter.name} report cannot be rendered: {why}.")
    if problems:
        raise _unwritten(problems, written)
    return written


def _unwritten(problems: Sequence[str], written: Sequence[Path]) -> BadFile:
    clean = redactor().text
    done = ", ".join(repr(str(path)) for path in written) or "nothing"
    count = f"{len(problems)} of {len(problems) + len(written)} reports"
    said = [clean(problem) for problem in problems]
    return BadFile(f"{count} could not be written: {' '.join(said)} Written: {done}.", said)


def render_report(
    reporter: Reporter | str,
    report: Report,
    *,
    baseline: Report | None = None,
    decision: Decision | None = None,
) -> str:
    """The report as this reporter renders it, without secrets."""
    chosen = load_reporter(reporter) if isinstance(reporter, str) else reporter
    return _Shown.of(report, baseline, decision).by(chosen)


class _Shown(Struct, frozen=True):
    """What reporters are given: a report, its baseline and what the gate said about it."""

    report: Report
    baseline: Report | None
    decision: Decision | None

    @classmethod
    def of(cls, report: Report, baseline: Report | None, decision: Decision | None) -> "_Shown":
        """All of it without secrets, compared once for all reporters."""
        clean, earlier = redacted(report), None if baseline is None else redacted(baseline)
        if (said := redacted_decision(decision)) is not None:
            said = Decision(said.missed, held_against(clean, earlier, said))
        return cls(clean, earlier, said)

    def by(self, reporter: Reporter) -> str:
        """The report as this reporter renders it; it need not know of baselines and gates."""
        given: dict[str, Any] = {"baseline": self.baseline, "decision": self.decision}
        return reporter.render(self.report, **_taken(reporter.render, given))


def _taken(function: Callable[..., str], given: dict[str, Any]) -> dict[str, Any]:
    """The keywords among these that a function takes."""
    known = inspect.signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return given
    return {name: value for name, value in given.items() if name in known}


# Where to


def destinations(formats: Formats, output: str | Path = ".") -> list[Destination]:
    """Which reporter writes where; two that would write to one file are an error."""
    asked = [(load_reporter(name), path) for name, path in _pairs(formats)]
    if not asked:
        raise BadInput(f"no report format was named; known are {', '.join(reporter_names())}.")
    together = sum(path is None for _, path in asked)
    found = [
        Destination(reporter, _shared(reporter, output, together) if path is None else Path(path))
        for reporter, path in asked
    ]
    _check_apart(found)
    return found


def _check_apart(found: Sequence[Destination]) -> None:
    taken: dict[Path, str] = {}
    for place in found:
        if other := taken.get(place.path.absolute()):
            raise BadInput(
                f"the {other} and the {place.reporter.name} report would both be written to "
                f"{str(place.path)!r}; give each a path: {place.reporter.name}=PATH."
            )
        taken[place.path.absolute()] = place.reporter.name


def _pairs(formats: Formats) -> Iterator[tuple[str, str | Path | None]]:
    if isinstance(formats, Mapping):
        yield from formats.items()
        return
    for spec in [formats] if isinstance(formats, str) else formats:
        name, given, path = spec.partition("=")
        if given and not path:
            raise BadInput(f"{spec!r} names no file; write {name}=PATH, or {name} alone.")
        yield name, path or None


def _shared(reporter: Reporter, output: str | Path, together: int) -> Path:
    """What `--output` means to one of so many formats."""
    place = Path(output)
    if together > 1 and place.is_file():
        raise BadInput(
            f"{str(output)!r} is a file, but {together} reports are to be written there; name a "
            f"folder, or a file for each: {reporter.name}=PATH."
        )
    if together > 1 or place.is_dir() or str(output).endswith("/"):
        return place / Path(reporter.file).name
    return place


class FunctionReporter(Struct, frozen=True):
    """A function that renders, as a reporter; it need not know of baselines and gates."""

    name: str
    function: Callable[..., str]

    @property
    def file(self) -> str:
        """The usual name, with the format as its ending."""
        return f"eval_report.{self.name}"

    def render(self, report: Report, **given: Any) -> str:
        """What the function makes of it."""
        return self.function(report, **_taken(self.function, given))


# By name


def _accept(found: object, name: str) -> Reporter | None:
    """What an entry point leads to: a reporter, a class of them, or a function that renders."""
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
    """Every format a report can be written in, with what is installed."""
    return REPORTERS.names()


def load_reporter(name: str) -> Reporter:
    """The reporter of this name; NotFound lists the names there are."""
    return REPORTERS.load(name)
