"""Standard output and error, which may be closed, full or abandoned by their reader; no verdict may be lost by that."""

import os
import sys
from contextlib import suppress
from errno import EPIPE
from io import BufferedWriter, FileIO, TextIOWrapper
from threading import RLock
from typing import IO, Any

_NUMBERS = {"stdout": 1, "stderr": 2}
_HANGING = 0.5
"""Seconds after which a terminal that takes nothing is no longer waited for."""


class _Outlet(FileIO):
    """Writes for as long as it can; `error` is what stopped it.

    `first` is written before anything else: the codes that erase a progress bar on the current line.
    """

    error: OSError | None = None
    first: bytes = b""
    is_silent: bool = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writing = RLock()

    def write(self, data: Any, /) -> int | None:
        """Write, or drop what cannot or must not be written."""
        with self._writing:
            if self.error is None and not self.is_silent:
                try:
                    if not self.first:
                        return super().write(data)
                    # In one piece, or the bar would be drawn again in between.
                    wrote = super().write(self.first + bytes(data))
                    return None if wrote is None else max(wrote - len(self.first), 0)
                except OSError as error:
                    self.error = error
        return memoryview(data).nbytes

    def silence(self, seconds: float) -> None:
        """Drop what is written from now on, once the piece that is being written is out, or so many seconds later."""
        is_out = self._writing.acquire(timeout=seconds)
        self.is_silent = True
        if is_out:
            self._writing.release()


class Streams:
    """The process's own output, made safe while a command runs; that of a test is left alone."""

    for_json: IO[str] | None = None
    """Standard output, while it is kept for JSON."""

    def __init__(self) -> None:
        self._outlets: dict[str, _Outlet] = {}

    def make_safe(self) -> None:
        """Let nothing that is printed break the command."""
        self._outlets, self.for_json = {}, None
        _occupy()
        for name, number in _NUMBERS.items():
            stream = getattr(sys, name)
            if stream is None or (stream is getattr(sys, f"__{name}__") and _is(stream, number)):
                self._outlets[name] = outlet = _Outlet(number, "w", closefd=False)
                setattr(sys, name, _text(outlet, stream))

    def keep_for_json(self) -> None:
        """Keep standard output for JSON, until `release`.

        All else that is printed goes to standard error: by author's code, and by programs that it starts.
        """
        if self.for_json is not None:
            return
        sys.stdout.flush()
        self.for_json = sys.stdout
        if "stdout" in self._outlets:
            self._outlets["stdout"] = outlet = _Outlet(os.dup(_NUMBERS["stdout"]), "w")
            self.for_json = _text(outlet, sys.__stdout__)
            os.dup2(_NUMBERS["stderr"], _NUMBERS["stdout"])
        sys.stdout = sys.stderr

    def release(self) -> None:
        """Give a test its output back; the process's own stays kept for JSON until it has ended."""
        if self.for_json is not None and "stdout" not in self._outlets:
            sys.stdout, self.for_json = self.for_json, None

    def silence(self) -> None:
        """Drop what is printed from now on: whatever still runs must not write below the last words."""
        for outlet in self._outlets.values():
            outlet.silence(_HANGING)

    def flush(self) -> str:
        """Write what is buffered; returns why not everything could be printed, unless the reader has left."""
        for stream in (self.for_json, *(getattr(sys, name) for name in self._outlets)):
            if stream is not None:
                with suppress(OSError, ValueError):
                    stream.flush()
        lost = self._outlets["stdout"].error if "stdout" in self._outlets else None
        # A reader that closed the pipe has seen enough.
        return "" if lost is None or lost.errno == EPIPE else (lost.strerror or str(lost))


STREAMS = Streams()
"""Those of this process, which runs one command at a time."""


def write_first(codes: bytes) -> None:
    """Write these codes before anything else that standard error sends to a terminal."""
    outlet = getattr(getattr(sys.stderr, "buffer", None), "raw", None)
    if isinstance(outlet, _Outlet) and outlet.isatty():
        outlet.first = codes


def _occupy() -> None:
    """Reopen closed standard streams: a store opened next would get their number, and be printed into."""
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
        # A terminal that cannot show a character must not lose a report.
        errors="backslashreplace",
        line_buffering=outlet.isatty() or outlet.fileno() == _NUMBERS["stderr"],
    )
