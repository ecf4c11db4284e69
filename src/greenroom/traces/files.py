"""A file of traces: its bytes, and the JSON documents in it."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from greenroom.cases.files.bounds import Unreadable
from greenroom.cases.files.json_text import parsed_json
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.ledger.text_files import MAX_KEPT, read_regular
from greenroom.traces.records import Flaw

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"


class Document(Struct, frozen=True):
    """One JSON value of a file, and its place: "" if it is the whole file, else "line 3"."""

    data: Json
    place: str = ""

    def at(self, place: str) -> str:
        """A place inside it."""
        return ", ".join(part for part in (self.place, place) if part)


class TraceFile:
    """A file whose format is detected from its content."""

    def __init__(self, path: Path, raw: bytes) -> None:
        self.path = path
        self.raw = raw
        self.flaws: list[Flaw] = []
        """The lines that are not JSON, if other lines are."""

    @classmethod
    def open(cls, path: str | Path) -> "TraceFile":
        """The file at this path, unpacked if it is gzipped; BadFile if it is missing or too large."""
        raw = read_regular(Path(path), MAX_KEPT, "split it")
        try:
            raw = unpacked(raw, MAX_KEPT) if raw.startswith(_GZIP) else raw
        except ValueError as error:
            raise Flaw(place="", why=str(error), source=str(path)).error() from error
        return cls(Path(path), raw.removeprefix(_BOM))

    @property
    def source(self) -> str:
        """The file's name in messages."""
        return str(self.path)

    @property
    def is_text(self) -> bool:
        """Whether it begins like JSON."""
        return self.raw.lstrip()[:1] in (b"{", b"[")

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """Its JSON values: one for the file, one per line, or several pretty-printed ones, each starting on
        a line that begins with a bracket; none if it is not JSON at all.

        BadTrace says where it is incomplete or broken. Of several values, those that can be read are read,
        and the others are `flaws`.
        """
        if not self.is_text:
            return ()
        try:
            text = self.raw.decode()
        except UnicodeDecodeError as error:
            line = self.raw.count(b"\n", 0, error.start) + 1
            why = f"not UTF-8 ({error.reason})."
            raise Flaw(place=f"line {line}", why=why, source=self.source).error() from error
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and _is_whole(lines[0]):
            return tuple(self._each(enumerate(text.split("\n"), start=1)))
        try:
            return (Document(parsed_json(text)),)
        except Unreadable as error:
            printed = _printed(text)
            if len(printed) > 1 and _is_whole(printed[0][1]):
                return tuple(self._each(printed))
            flaw = Flaw(place=_place_of(error), why=f"{error}.", source=self.source)
            raise flaw.error() from error

    def _each(self, texts: Iterable[tuple[int, str]]) -> Iterator[Document]:
        for number, text in texts:
            if not text.strip():
                continue
            try:
                yield Document(parsed_json(text), f"line {number}")
            except Unreadable as error:
                column = f", column {error.column}" if error.column else ""
                place = f"line {number + (error.line or 1) - 1}{column}"
                self.flaws.append(Flaw(place=place, why=f"{error}.", source=self.source))

    def entries(self) -> Iterator[tuple[str, Json]]:
        """The entries of its documents, each of which may be a list of them, with their places."""
        for document in self.documents:
            listed = document.data if is_array(document.data) else [document.data]
            for number, one in enumerate(listed):
                yield document.at(f"[{number}]"), one

    @property
    def first(self) -> dict[str, Json]:
        """The first JSON object in it, or the first of a list; empty if there is none."""
        for document in self.documents[:1]:
            data = document.data
            if isinstance(data, list) and data:
                data = data[0]
            if is_object(data):
                return data
        return {}


def _printed(text: str) -> list[tuple[int, str]]:
    """The text split where a line begins with a bracket, each piece with the number of its first line."""
    pieces: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(("{", "[")) or not pieces:
            pieces.append((number, []))
        pieces[-1][1].append(line)
    return [(number, "\n".join(lines)) for number, lines in pieces]


def _is_whole(text: str) -> bool:
    """Whether the first line or piece is JSON by itself, so that others may follow it."""
    try:
        parsed_json(text)
    except Unreadable:
        return False
    return True


def _place_of(error: Unreadable) -> str:
    line = f"line {error.line}" if error.line else ""
    return line + (f", column {error.column}" if error.column and line else "")


def unpacked(raw: bytes, most: int) -> bytes:
    """The gunzipped bytes; ValueError if they are incomplete, broken, or more than `most`."""
    found: list[bytes] = []
    room = most
    while raw.startswith(_GZIP) or not found:  # several if files were appended to each other
        unpacking = zlib.decompressobj(31)
        try:
            found.append(unpacking.decompress(raw, room + 1))
        except zlib.error as error:
            raise ValueError(f"it cannot be unpacked: {error}.") from error
        room -= len(found[-1])
        if room < 0:
            raise ValueError(f"it is larger than {most >> 20} MB once unpacked; split it.")
        if not unpacking.eof:
            raise ValueError("it cannot be unpacked: it is incomplete.")
        raw = unpacking.unused_data
    return b"".join(found)
