"""Standard output and error that may be closed, full or left by their reader: no verdict is lost by it."""

import os
import sys
from contextlib import suppress
from errno import EPIPE
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

_NUMBERS = {"stdout": 1, "stderr": 2}


class _Outlet(FileIO):
    """Writes for as long as it can. `error` is what then kept it from writing."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int | None:
        """Write, or let go of what cannot be written."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


class Streams:
    """The process's own output, made safe while a command runs; that of a test is left alone."""

    def __init__(self) -> None:
        self._outlets: dict[str, _Outlet] = {}

    def make_safe(self) -> None:
        """Let nothing that is printed break the command."""
        _occupy()
        for name, number in _NUMBERS.items():
            stream = getattr(sys, name)
            if stream is None or (stream is getattr(sys, f"__{name}__") and _is(stream, number)):
                self._outlets[name] = outlet = _Outlet(number, "w", closefd=False)
                setattr(sys, name, _text(outlet, stream))

    def flush(self) -> str:
        """Write what waits; why not all could be printed, if a reader is left to miss it."""
        for name in self._outlets:
            with suppress(OSError, ValueError):
                getattr(sys, name).flush()
        lost = self._outlets["stdout"].error if "stdout" in self._outlets else None
        # A reader that went away has seen enough.
        return "" if lost is None or lost.errno == EPIPE else (lost.strerror or str(lost))


def _occupy() -> None:
    """Open what was closed: a store that is opened next would get its number, and be printed into."""
    for number in (0, *_NUMBERS.values()):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def _is(stream: object, number: int) -> bool:
    try:
        return isinstance(stream, TextIOWrapper) and stream.fileno() == number
    except (OSError, ValueError):
        return False


def _text(outlet: _Outlet, before: TextIOWrapper | None) -> TextIOWrapper:
    return TextIOWrapper(
        BufferedWriter(outlet),
        encoding=before.encoding if before is not None else "utf-8",
        # A terminal that cannot show a character is no reason to lose a report.
        errors="backslashreplace",
        line_buffering=outlet.isatty() or outlet.fileno() == _NUMBERS["stderr"],
    )
