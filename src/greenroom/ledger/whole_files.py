"""Files that people name are written whole: readers see the old file or the new one, never a part."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def put_whole(parts: Iterable[bytes], target: Path) -> None:
    """Write a file atomically, and create its folder if needed; a pipe or a device is written into.

    A link stays a link: what it leads to is replaced. A file keeps its permissions.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not target.is_file():
        with target.open("wb") as file:  # a pipe or a device cannot be replaced
            file.writelines(parts)
        return
    final = target.resolve()
    part = final.with_name(f".{final.name[:50]}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        with part.open("wb") as file:
            file.writelines(parts)
        with suppress(FileNotFoundError):
            part.chmod(stat.S_IMODE(final.stat().st_mode))
        part.replace(final)
    finally:
        part.unlink(missing_ok=True)
