"""Text files written whole or not at all, and JSON as text."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec

from greenroom.errors import BadFile
from greenroom.ledger.codec import json_of


def json_text(data: Any, indent: int | None = 2) -> str:
    """JSON for people to read, or on one line; Python's own takes ten times as long to lay it out."""
    encoded = json_of(data)
    try:
        return msgspec.json.format(encoded, indent=indent or 0).decode()
    except msgspec.DecodeError:
        # Half a character, as a cut stream leaves it, has no place in a file but can be spelt out.
        return json.dumps(json.loads(encoded), indent=indent)


def write_whole(text: str, path: str | Path, what: str = "the report") -> Path:
    """Write a file, whole or not at all, in a folder that is made if need be; say where it is."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Half a character, as a cut stream leaves it, has no place in a file but can be spelt out.
        _put(text.encode(errors="backslashreplace"), target)
    except OSError as error:
        raise BadFile(f"cannot write {what} to {str(target)!r}: {error}.") from error
    return target


def _put(data: bytes, target: Path) -> None:
    if target.exists() and not target.is_file():
        target.write_bytes(data)  # a pipe or a device; nothing there could be put in its place
        return
    # A link stays a link: what it leads to is replaced.
    final = target.resolve()
    part = final.with_name(f".{final.name[:100]}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        part.write_bytes(data)
        part.replace(final)
    finally:
        part.unlink(missing_ok=True)
