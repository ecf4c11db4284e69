"""The text of a file: only regular files in UTF-8 are read, others are refused with the reason."""

import codecs
import os
import re
import stat
from pathlib import Path

from greenroom.errors import BadFile
from greenroom.ledger.choices import near

MAX_BYTES = 64 * 1024 * 1024
MAX_KEPT = 256 * 1024 * 1024
"""The limit for files that Greenroom wrote itself: reports and ledgers."""
_DECODED = 1.2
"""How much larger a text may get once decoded: with one emoji, Python keeps every letter in four bytes."""

_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "a zip archive",
    b"\x1f\x8b": "packed by gzip",
    b"BZh": "packed by bzip2",
    b"\xfd7zXZ": "packed by xz",
    b"\x28\xb5\x2f\xfd": "packed by zstd",
    b"SQLite format 3": "a database",
}
_WIDE = re.compile(rb"[\xf0-\xf7]")


def text_of(source: Path, most: int = MAX_BYTES) -> str:
    """The text of a plain file; a byte-order mark of UTF-8 is not part of it."""
    raw = bytes_of(source, most)
    if not raw.isascii() and len(raw) * (4 if _WIDE.search(raw) else 2) > most * _DECODED:
        raise BadFile(f"{source} is too large for text beyond ASCII; split it.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadFile(
            f"cannot read {source}: line {line} is not UTF-8 ({error.reason})."
        ) from error


def bytes_of(source: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a plain text file; BadFile says why it is not one, or that it is too large."""
    raw = read_regular(source, most, "split it")
    for mark, name in _PACKED.items():
        if raw.startswith(mark):
            raise BadFile(
                f"cannot read {source}: it is binary ({name}), not text. Unpack it, or name another file."
            )
    for mark, name in _OTHER_ENCODINGS.items():
        if raw.startswith(mark):
            raise BadFile(f"cannot read {source}: it is {name}; save it as UTF-8.")
    if (at := raw.find(b"\0")) >= 0:
        raise BadFile(f"cannot read {source}: it is binary (a zero byte at {at}), not text.")
    return raw


def read_regular(source: Path, most: int, advice: str) -> bytes:
    """The bytes of a regular file, whatever they are; BadFile if it is not one, or too large."""
    try:
        # Without O_NONBLOCK, opening a pipe that has no writer would block forever.
        handle = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        kind = stat.S_IFMT(os.fstat(handle).st_mode)
        if kind != stat.S_IFREG:
            os.close(handle)
            raise BadFile(f"cannot read {source}: it is {_KINDS.get(kind, 'not a file')}.")
        with os.fdopen(handle, "rb") as file:
            raw = file.read(most + 1)
        if len(raw) > most:
            raise BadFile(f"{source} is larger than {most >> 20} MB; {advice}.")
        return raw
    except FileNotFoundError as error:
        raise BadFile(f"there is no file {str(source)!r}.{similar_file(source)}") from error
    except OSError as error:
        raise BadFile(f"cannot read {source}: {error.strerror}.") from error
    except ValueError as error:
        raise BadFile(f"cannot read {source}: {error}.") from error


def similar_file(missing: Path) -> str:
    """A sentence suggesting an existing file with a similar name; empty if there is none."""
    try:
        # A link whose target is missing is there, but no help.
        there = {entry.name for entry in missing.parent.iterdir()} - {missing.name}
    except OSError:
        return ""
    found = near(missing.name, there)
    return f" Did you mean {str(missing.with_name(found[0]))!r}?" if found else ""
