"""Reads files of traces and logs with the reader that knows their format.

A reader is an object with `name`, `recognises` and `read`, registered in the entry-point group
`greenroom.traces`; Greenroom's own readers are registered in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast

from msgspec import Struct

from greenroom.errors import BadFile, BadInput, BadTrace
from greenroom.plugins import Plugins
from greenroom.traces.assembly import assembled
from greenroom.traces.files import TraceFile
from greenroom.traces.records import Flaw, Found, Imported, Span


class TraceReader(Protocol):
    """Reads one format of traces or logs."""

    @property
    def name(self) -> str:
        """Its name for `--reader`."""
        ...

    def recognises(self, file: TraceFile) -> bool:
        """Whether a file has this format, judged by its beginning."""
        ...

    def read(self, file: TraceFile) -> Iterable[Found]:
        """Its content: spans, which are assembled into conversations, or whole conversations.

        What cannot be read is a `Flaw`, so that the rest is not lost.
        """
        ...


def _accept(found: object, _name: str) -> TraceReader | None:
    made: object = found() if isinstance(found, type) else found
    is_reader = all(callable(getattr(made, name, None)) for name in ("recognises", "read"))
    return cast(TraceReader, made) if is_reader and hasattr(made, "name") else None


READERS = Plugins(
    "greenroom.traces",
    "reader of traces",
    accept=_accept,
    wanted="an object or class with name, recognises and read",
    unknown=BadInput,
)


def read_traces(*paths: str | Path, format: str = "") -> Iterator[Imported]:
    """The conversations in these files and folders; their formats are detected.

    BadTrace is raised at the end, after everything readable was yielded, and says what could not be read.
    """
    flaws: list[Flaw] = []
    for found in conversations(paths, format):
        if isinstance(found, Flaw):
            flaws.append(found)
        else:
            yield found
    if flaws:
        raise BadTrace(describe_flaws(flaws))


def describe_flaws(flaws: Iterable[Flaw]) -> str:
    """What could not be read, one line each."""
    lines = list(dict.fromkeys(map(str, flaws)))
    more = f"\nand {len(lines) - 20} more" if len(lines) > 20 else ""
    return "\n".join(lines[:20]) + more


class FileContent(Struct, frozen=True):
    """The content of a file, still to be assembled with that of others."""

    source: str
    reader: str
    found: Sequence[Found]


def conversations(paths: Iterable[str | Path], format: str = "") -> Iterator[Imported | Flaw]:
    """What is in these files: the conversations, and what could not be read."""
    return put_together(content_of(path, format) for path in _files(paths))


def content_of(path: Path, format: str = "") -> FileContent:
    """The content of a file, including what could not be read."""
    try:
        file = TraceFile.open(path)
        reader = reader_of(file, format)
        found = _checked(reader, file)
    except BadInput as error:
        return FileContent(str(path), "", [_flaw_of(error)])
    if not found:
        why = f"it contains nothing that the reader {reader.name!r} knows."
        found = [Flaw(place="", why=why, source=file.source)]
    return FileContent(file.source, reader.name, found)


def put_together(contents: Iterable[FileContent]) -> Iterator[Imported | Flaw]:
    """The conversations in files; those made of spans come last, because several files may share one."""
    spans: dict[str, list[Span]] = {}
    refused: set[str] = set()
    files: list[str] = []
    for content in contents:
        own: list[Span] = []
        is_whole = True
        for one in content.found:
            if isinstance(one, Span):
                own.append(one)
                continue
            if isinstance(one, Flaw):
                is_whole = is_whole and bool(one.trace)
                refused.add(one.trace)
            yield one
        if own and is_whole:
            spans.setdefault(content.reader, []).extend(own)
            files.append(content.source)
        elif own:
            lost = ", ".join(sorted({span.trace for span in own})[:3])
            why = f"its spans are left out with what could not be read: trace {lost}."
            yield Flaw(place="", why=why, source=content.source)
    for name, known in spans.items():
        source = files[0] if len(files) == 1 else f"{len(files)} files"
        count = 0
        for one in assembled(known, name, source, refused):
            count += 1
            yield one
        if not count and not refused:
            why = f"none of its {len(known)} spans tells of an agent, a model or a tool."
            yield Flaw(place="", why=why, source=source)


def _checked(reader: TraceReader, file: TraceFile) -> list[Found]:
    """What a reader finds; an error in the middle keeps what came before it."""
    found: list[Found] = []
    try:
        found.extend(reader.read(file))
    except BadInput as error:
        found.append(_flaw_of(error, file.source))
    except (
        RecursionError,
        TypeError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
    ) as error:
        # Data that a reader does not expect is a fault of the file, not a crash.
        why = (
            f"the reader {reader.name!r} cannot make sense of it ({type(error).__name__}: {error})."
        )
        found.append(Flaw(place="", why=why, source=file.source))
    return [*file.flaws, *found]


def _flaw_of(error: BadInput, source: str = "") -> Flaw:
    """An error as a flaw; an error about a whole file already names it."""
    known = error.flaw if isinstance(error, BadTrace) else None
    return known or Flaw(place="", why=str(error), source=source)


def reader_of(file: TraceFile, format: str = "") -> TraceReader:
    """The reader that knows a file; BadTrace if none does, or several do."""
    if format:
        return READERS.load(format)
    if not file.raw.strip():
        raise Flaw(place="", why="it is empty.", source=file.source).error()
    readers = [READERS.load(name) for name in READERS.names()]
    fitting = [reader for reader in readers if reader.recognises(file)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(reader.name for reader in fitting or readers)
    begins = " ".join(file.raw.lstrip()[:200].decode(errors="replace").split())[:60]
    why = f"its format is unknown. It begins with {begins!r}; known formats: {names}."
    if not fitting and (ours := _known_as_ours(file)):
        why = f"it holds no traces: {ours}"
    if fitting:
        why = f"it may be read as {names}. Say which is meant: --reader {fitting[0].name}."
    raise Flaw(place="", why=why, source=file.source).error()


def _known_as_ours(file: TraceFile) -> str:
    """What else Greenroom wrote into a file, and what it is for; empty if that is not known."""
    first = file.first
    if first.get("kind") == "report":
        return "it is a report of Greenroom's own, which `greenroom eval compare` reads."
    if {"scenario_id", "conversation"} <= first.keys():
        return (
            "it is a conversation that `greenroom simulate` wrote, which no command reads. To keep one as "
            "a case, give `greenroom simulate run` --save-as-eval FILE."
        )
    return ""


def _files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """The files, including those in folders, sorted by name; each once, however it is named.

    A conversation that is given twice is no more evidence than one that is given once.
    """
    seen: set[Path] = set()
    for path in _named(paths):
        if (place := path.resolve()) not in seen:
            seen.add(place)
            yield path


def _named(paths: Iterable[str | Path]) -> Iterator[Path]:
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = sorted(
                p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".")
            )
            if not inside:
                raise BadFile(f"the folder {given} holds no files; name one with traces or logs.")
            yield from inside
        else:
            yield path
