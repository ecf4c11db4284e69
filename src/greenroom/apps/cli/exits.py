"""How a command ends: its exit code, and the message on stderr."""

import json
import os
import sys
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from greenroom.apps.cli.streams import STREAMS
from greenroom.errors import BadInput, GreenroomError, ImportFailed, StoreFailed

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
        try:
            code = self._code(*args, **options)
        except KeyboardInterrupt:  # a second one, while the first was reported
            os._exit(INTERRUPTED)
        STREAMS.release()
        sys.exit(code)

    def _code(self, *args: Any, **options: Any) -> int:
        """The exit code of a command, after its last words."""
        try:
            STREAMS.make_safe()
            with _no_silent_end():
                code = super().main(*args, **options) or PASSED
        except (click.exceptions.Abort, KeyboardInterrupt):
            aside("\ngreenroom: interrupted")
            code = INTERRUPTED
        except click.ClickException as error:
            shown = StringIO()
            error.show(shown)  # which may repeat a secret that was typed
            aside(shown.getvalue().removesuffix("\n"))
            code = error.code if isinstance(error, Stopped) else BAD_INPUT
        if lost := STREAMS.flush():
            aside(f"greenroom: not everything could be printed: {lost}")
            code = max(code, BAD_INPUT)
        return code


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed. An empty value is refused, because mostly a variable of a script is not set.

        Left out silently, it would run something else: `--replay ""` would ask the models.
        """
        typed = list(args)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing and (before := _before_empty(typed)) is not None:
            self._refuse_empty(ctx, typed, before)
        return rest

    def _refuse_empty(self, ctx: click.Context, typed: list[str], before: str) -> None:
        command: click.Command | None = self
        while isinstance(command, click.Group):
            name, command, typed = command.resolve_command(ctx, typed)
            if isinstance(command, click.Group):
                ctx = click.Context(command, ctx, name)
            elif command is not None:  # it may know better what is wrong with the value
                ctx = command.make_context(name, typed, ctx)
        message = f"the value after {before!r} is empty; write one, or leave out what it is for."
        raise click.UsageError(message, ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it raises becomes a message and an exit code."""
        with telling(verbose=False):
            return super().invoke(ctx)


@contextmanager
def _no_silent_end() -> Generator[None]:
    """Let code that ends the process at once, such as `os._exit(0)` in an agent, not look like a verdict.

    Nothing can stop it, and no report is written then. A forked process may end as it likes.
    """
    leave, here = os._exit, os.getpid()

    def leave_openly(status: int) -> NoReturn:
        if status not in ENDINGS and os.getpid() == here:
            message = (
                "greenroom: this process was ended by code that it ran (os._exit), so there is no "
                "result. Remove that call; with --workers, only the case that makes it ends.\n"
            )
            with suppress(OSError):
                os.write(2, message.encode())
            status = RUN_ERRORS
        leave(status)

    os._exit = leave_openly
    try:
        yield
    finally:
        os._exit = leave


def _before_empty(args: list[str]) -> str | None:
    """What was typed just before the first empty value, if there is one."""
    for before, typed in zip(["greenroom", *args], args, strict=False):
        if not typed:
            return before
        if typed.startswith("--") and typed.find("=") == len(typed) - 1:
            return typed
    return None


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
        hint = _hint(verbose) if isinstance(error, ImportFailed) else ""
        raise _stopped(f"{_with_pointer(error)}{hint}", BAD_INPUT, verbose) from error
    except GreenroomError as error:
        raise _stopped(_with_pointer(error), RUN_ERRORS, verbose) from error
    except OSError as error:
        # What author's code raises is named as such before it comes here: this is a file or folder of the command.
        if isinstance(error, FileNotFoundError) and error.filename is None:
            message = "the current folder no longer exists. Change to another one, and run the command again."
            raise _stopped(message, BAD_INPUT, verbose) from error
        if error.filename is None:
            raise _stopped(f"{_named(error)}{_hint(verbose)}", RUN_ERRORS, verbose) from error
        message = f"{str(error.filename)!r} cannot be read or written: {error.strerror}. Name another place."
        raise _stopped(message, BAD_INPUT, verbose) from error
    except Exception as error:
        raise _stopped(f"{_named(error)}{_hint(verbose)}", RUN_ERRORS, verbose) from error


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
    """Print what a command was asked for, as a terminal may show it: without secrets."""
    click.echo(harmless(text).removesuffix("\n"))


def put_out_data(data: object) -> None:
    """Print data as JSON, without secrets."""
    from greenroom.ledger.redaction import redactor

    put_out_json(json.dumps(redactor().value(data), indent=2))


def put_out_json(text: str | Iterable[str]) -> None:
    """Print JSON that has no secrets, in one piece or in parts.

    What could steer a terminal or a CI server is written as JSON writes it.
    """
    from greenroom.ledger import safe_text

    last = ""
    for last in [text] if isinstance(text, str) else text:
        click.echo(safe_text.harmless_json(last), file=STREAMS.for_json, nl=False)
    if not last.endswith("\n"):
        click.echo(file=STREAMS.for_json)


def aside(text: str) -> None:
    """Print on stderr what is not part of the output that was asked for."""
    click.echo(harmless(text), err=True)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _hint(verbose: bool) -> str:
    return "" if verbose else "\nRun it again with -v to see the traceback."
