"""How a command ends: its exit code, and the message on stderr."""

import os
import sys
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from errno import EPIPE
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import IO, TYPE_CHECKING, Any

import click

from greenroom.errors import BadInput, GreenroomError, StoreFailed

if TYPE_CHECKING:
    from greenroom.results import Report

PASSED = 0
GATE_MISSED = 1
RUN_ERRORS = 2
BAD_INPUT = 3
HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143
ENDINGS = {HUNG_UP: "hung up", INTERRUPTED: "interrupted", TERMINATED: "terminated"}
"""What is printed when a signal stopped a command."""


class Stopped(click.ClickException):
    """A command that cannot continue, with its message and its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.code = exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        """Say why."""
        click.echo(harmless(f"greenroom: {self.message}"), file=file, err=file is None)


class Interrupted(Exception):
    """A signal ended a command before its work was done; `report` is what there is of it."""

    def __init__(self, exit_code: int, report: "Report | None" = None) -> None:
        super().__init__(ENDINGS[exit_code])
        self.exit_code = exit_code
        self.report = report


class CommandGroup(click.Group):
    """A group that ends with Greenroom's exit codes, whatever was raised."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and exit; a command returns its code, or raises."""
        options["standalone_mode"] = False
        streams = Streams()
        try:
            streams.make_safe()
            code = super().main(*args, **options) or PASSED
        except (click.exceptions.Abort, KeyboardInterrupt):
            aside("\ngreenroom: interrupted")
            code = INTERRUPTED
        except click.ClickException as error:
            error.show()
            code = error.code if isinstance(error, Stopped) else BAD_INPUT
        if lost := streams.flush():
            aside(f"greenroom: not everything could be printed: {lost}")
            code = max(code, BAD_INPUT)
        sys.exit(code)


class RootGroup(CommandGroup):
    """The root of the command line, with the commands that other parts and installed packages offer."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Our own commands, and those of others."""
        from greenroom.apps.cli.plugin_commands import COMMANDS

        return sorted({*super().list_commands(ctx), *COMMANDS.names()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; ours come first."""
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        from greenroom.apps.cli.plugin_commands import COMMANDS  # entry points are slow to read

        return COMMANDS.load(cmd_name) if cmd_name in COMMANDS.names() else None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it raises becomes a message and an exit code."""
        with telling(verbose=False):
            return super().invoke(ctx)


@contextmanager
def telling(verbose: bool) -> Generator[None]:
    """Turn what a command raises into a message and an exit code; with -v also print the traceback."""
    try:
        yield
    except (click.ClickException, click.exceptions.Abort, click.exceptions.Exit):
        raise
    except Interrupted as stop:
        raise Stopped(str(stop), stop.exit_code) from None
    except (BadInput, StoreFailed) as error:
        # A store that fails after trials have run is named in the report.
        raise _stopped(_with_pointer(error), BAD_INPUT, verbose) from error
    except GreenroomError as error:
        raise _stopped(_with_pointer(error), RUN_ERRORS, verbose) from error
    except Exception as error:
        raise _stopped(f"{_named(error)}{_hint(verbose)}", RUN_ERRORS, verbose) from error


@contextmanager
def loading(reference: str, verbose: bool) -> Generator[None]:
    """Author's code that cannot even be loaded is bad input, whatever it raises."""
    try:
        yield
    except BadInput:
        raise
    except (Exception, SystemExit) as error:
        broke = f"{_named(error)}{_place(error)}"
        message = f"{reference} cannot be loaded: {broke}{_hint(verbose)}"
        raise _stopped(message, BAD_INPUT, verbose) from error


def _with_pointer(error: GreenroomError) -> str:
    """The error's message, and the command that explains this kind of error."""
    from greenroom.apps.cli.explain import explained_name

    return f"{error}\nMore: greenroom explain {explained_name(error)}"


def _stopped(message: str, code: int, verbose: bool) -> Stopped:
    if verbose:
        click.echo(harmless(traceback.format_exc()), err=True)
    return Stopped(message, code)


def harmless(text: str) -> str:
    """The text as a terminal may show it: it may quote a model, a foreign file or a secret."""
    from greenroom.reports.words import printable

    return printable(text)


def put_out(text: str) -> None:
    """Print what a command was asked for, as a terminal may show it."""
    from greenroom.ledger import safe_text

    click.echo(safe_text.harmless(text).removesuffix("\n"))


def put_out_json(text: str | Iterable[str]) -> None:
    """Print JSON, in one piece or in parts.

    What could steer a terminal or a CI server is written as JSON writes it.
    """
    from greenroom.ledger import safe_text

    last = ""
    for last in [text] if isinstance(text, str) else text:
        click.echo(safe_text.harmless_json(last), nl=False)
    if not last.endswith("\n"):
        click.echo()


def aside(text: str) -> None:
    """Print on stderr what is not part of the output that was asked for."""
    click.echo(harmless(text), err=True)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _hint(verbose: bool) -> str:
    return "" if verbose else "\nRun it again with -v to see the traceback."


def _place(error: BaseException) -> str:
    """Where in the author's code it broke."""
    if isinstance(error, SyntaxError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    return f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""


# Standard output and error may be closed, full or abandoned by their reader; no verdict may be lost by that

_NUMBERS = {"stdout": 1, "stderr": 2}


class _Outlet(FileIO):
    """Writes for as long as it can; `error` is what stopped it.

    `first` is written before anything else: the codes that erase a progress bar on the current line.
    """

    error: OSError | None = None
    first: bytes = b""

    def write(self, data: Any, /) -> int | None:
        """Write, or drop what cannot be written."""
        if self.error is None:
            try:
                if not self.first:
                    return super().write(data)
                # In one piece, or the bar would be drawn again in between.
                wrote = super().write(self.first + bytes(data))
                return None if wrote is None else max(wrote - len(self.first), 0)
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
        """Write what is buffered; returns why not everything could be printed, unless the reader has left."""
        for name in self._outlets:
            with suppress(OSError, ValueError):
                getattr(sys, name).flush()
        lost = self._outlets["stdout"].error if "stdout" in self._outlets else None
        # A reader that closed the pipe has seen enough.
        return "" if lost is None or lost.errno == EPIPE else (lost.strerror or str(lost))


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
