"""How a report is shown, to which files it goes, and where an earlier one is found."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from greenroom.apps.cli.exits import aside, put_out_json
from greenroom.errors import BadInput, NotFound
from greenroom.reports.console import ConsoleReport, Detail
from greenroom.reports.reporters import destinations, write_reports
from greenroom.reports.terminal import Terminal
from greenroom.results import Report
from greenroom.results.files import report_parts
from greenroom.results.gate import Decision
from greenroom.store.configuration import PLACE_VARIABLE
from greenroom.store.store import Store, as_store

_ENDINGS = {".json": "json", ".xml": "junit", ".html": "html", ".htm": "html", ".md": "markdown"}

Say = Callable[[str], None]
Plan = Sequence[tuple[str, Path]]
"""Each format, with the file it goes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """How a command that ends in a report shows and writes it."""

    formats: Sequence[str] = ()
    output: str = ""
    verbose: bool = False
    quiet: bool = False
    as_json: bool = False

    @property
    def talks(self) -> bool:
        """Whether more than the report is printed."""
        return not (self.quiet or self.as_json)

    def aside(self, line: str) -> None:
        """Print something about the run that is not part of its report."""
        if self.talks:
            aside(line)

    @property
    def detail(self) -> Detail:
        """How much to show."""
        return "little" if self.quiet else "all" if self.verbose else "usual"

    def plan(self) -> Plan:
        """Which formats are written where; BadInput if the options contradict each other."""
        return planned(self.formats, self.output)

    def show(self, report: Report, diff: str = "") -> None:
        """Print a report, for people or for scripts; `diff` is the command that compares its trials."""
        if self.as_json:
            put_out_json(report_parts(report))
        else:
            ConsoleReport(Terminal(), self.detail, diff=diff).show(report)


def diff_command(run_id: str, store: str) -> str:
    """The command that compares two trials of a recorded run, up to the names of the trials."""
    place = ["--store", store] if store else []
    return shlex.join(["greenroom", "runs", "diff", *place, run_id])


def planned(formats: Sequence[str], output: str) -> Plan:
    """Which formats are written where; unwritable files are refused before anything runs.

    Without a format the file's ending says which.
    """
    asked = list(formats)
    if not asked and output:
        asked = [_by_ending(output)]
    if not asked:
        return []
    places = destinations(asked, output or ".")
    for place in places:
        check_reachable(place.path)
    return [(place.reporter.name, place.path) for place in places]


def check_reachable(path: Path) -> None:
    """Refuse a path that cannot be written: it is a folder, or its folder is a file."""
    try:
        is_folder = path.is_dir()
    except OSError:  # a name that no file can have, as writing will show
        is_folder = False
    if is_folder:
        raise BadInput(f"{str(path)!r} cannot be written: it is a folder. Name a file in it.")
    if file := _file_in_the_way(path):
        raise BadInput(f"{str(path)!r} cannot be written: {str(file)!r} is a file, not a folder.")


def check_unused(path: Path, what: str, *, force: bool) -> None:
    """Refuse to overwrite a file, unless `force`; `what` is the argument that names it."""
    check_reachable(path)
    if is_there(path) and not force:
        raise BadInput(f"{path} already exists; give another {what}, or --force.")


def is_there(path: Path) -> bool:
    """Whether a path exists; one that no file can have does not."""
    try:
        return path.exists()
    except OSError:
        return False


def _file_in_the_way(path: Path) -> Path | None:
    existing = (parent for parent in path.absolute().parents if parent.exists())
    nearest = next(existing, None)
    return None if nearest is None or nearest.is_dir() else nearest


def _by_ending(output: str) -> str:
    suffix = Path(output).suffix
    if Path(output).is_dir() or output.endswith("/"):
        return "json"
    if suffix in _ENDINGS:
        return _ENDINGS[suffix]
    raise BadInput(
        f"--output {output} does not say which format is meant; end it in {', '.join(_ENDINGS)}, "
        f"or give --format."
    )


def for_variant(plan: Plan, number: int) -> Plan:
    """The plan for one of several agents, with its own files."""
    return [(name, path.with_stem(f"{path.stem}-{number}")) for name, path in plan]


def write_report(
    report: Report,
    plan: Plan,
    baseline: Report | None = None,
    decision: Decision | None = None,
    say: Say = aside,
) -> None:
    """Write a report as planned, with the gate's decision, and print where everything is."""
    if not plan:
        return
    formats = [f"{name}={path}" for name, path in plan]
    for path in write_reports(report, formats, baseline=baseline, decision=decision):
        say(f"wrote {path}")


def open_store(place: str) -> Store:
    """The store in this folder, or the usual one; BadInput if it is switched off."""
    store = as_store(place)
    if store is None:
        which = "--store" if place else PLACE_VARIABLE
        raise BadInput(f"there is no store: {which} is off. Name one: --store DIR.")
    if file := _file_in_the_way(store.place / "runs"):
        raise BadInput(f"there is no store: {str(file)!r} is a file. Name a folder: --store DIR.")
    return store


def read_report(given: str, place: str) -> Report:
    """The report in a file, or of a run in the store."""
    if Path(given).exists() or Path(given).suffix:
        return Report.load(given)
    store = as_store(place)
    if store is None:
        raise NotFound(f"there is no file {given!r}, and no store to look for a run in.")
    return store.report(given)


def read_baseline(given: Sequence[str], place: str) -> Report | None:
    """The reports to compare with, pooled under the names that were given; None without any."""
    if not given:
        return None
    pooled = Report.pooled([read_report(name, place) for name in given])
    return replace(pooled, name=", ".join(given))
