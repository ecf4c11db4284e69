"""Several reports written at once, and where each goes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from greenroom.errors import BadFile, BadInput
from greenroom.ledger.redaction import redactor
from greenroom.results.files import write_whole
from greenroom.results.gate import Decision
from greenroom.results.report import Report
from greenroom.results.reporters import RenderedParts, Reporter, load_reporter, reporter_names

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

    A format without its own path goes to `output`: a folder, or the file itself if there is only one
    such format. If one fails, the others are still written; BadFile names it. `decision` is the quality
    gate's verdict on the run, which every file shows.
    """
    places = destinations(formats, output)
    shown = RenderedParts.of(report, baseline, decision)
    written: list[Path] = []
    problems: list[str] = []
    for place in places:
        try:
            text = shown.parts_by(place.reporter)
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


# Where to


def destinations(formats: Formats, output: str | Path = ".") -> list[Destination]:
    """Which reporter writes where; two that would write to one file are an error."""
    asked = [(load_reporter(name), path) for name, path in _pairs(formats)]
    if not asked:
        raise BadInput(f"no report format was named; use one of: {', '.join(reporter_names())}.")
    together = sum(path is None for _, path in asked)
    found = [
        Destination(reporter, _shared(reporter, output, together) if path is None else Path(path))
        for reporter, path in asked
    ]
    taken: dict[Path, str] = {}
    for place in found:
        if other := taken.get(place.path.absolute()):
            raise BadInput(
                f"the {other} and the {place.reporter.name} report would both be written to "
                f"{str(place.path)!r}; give each a path: {place.reporter.name}=PATH."
            )
        taken[place.path.absolute()] = place.reporter.name
    return found


def _pairs(formats: Formats) -> Iterator[tuple[str, str | Path | None]]:
    if isinstance(formats, Mapping):
        yield from formats.items()
        return
    for spec in [formats] if isinstance(formats, str) else formats:
        name, given, path = spec.partition("=")
        if given and not path:
            raise BadInput(f"{spec!r} names no file; write {name}=PATH, or {name} alone.")
        if path == "-":
            raise BadInput(
                f"{spec!r} would write a file named '-': standard output has the console's report. Name a file, "
                f"or print JSON alone: `--json`, or report.to_json()."
            )
        yield name, path or None


def _shared(reporter: Reporter, output: str | Path, together: int) -> Path:
    """The path that `--output` means for one of several formats."""
    place = Path(output)
    if together > 1 and place.is_file():
        raise BadInput(
            f"{str(output)!r} is a file, but {together} reports should be written there; name a "
            f"folder, or a file for each: {reporter.name}=PATH."
        )
    if together > 1 or place.is_dir() or str(output).endswith("/"):
        return place / Path(reporter.file).name
    return place
