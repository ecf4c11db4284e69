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
from greenroom.suite.inputs.import_rules import only_rehearsing

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
_VERBOSE = "greenroom.verbose"


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


class RootGroup(click.Group):
    """The root of the command line: it offers the commands of other parts and of installed packages too.

    Whatever was raised, it ends with Greenroom's exit codes.
    """

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
            with _no_silent_end(), only_rehearsing():
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
        """Run a command; what it raises becomes a message and an exit code. With -v the traceback is printed too."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Abort, click.exceptions.Exit):
            raise
        except Interrupted as stop:
            raise Stopped(str(stop), stop.exit_code) from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an agent's code may raise whatever it likes
            if is_verbose():
                aside(traceback.format_exc())
            raise _stopped(error) from error


def note_verbose(context: click.Context, _: click.Parameter, given: bool) -> bool:
    """Remember that the command was given -v: the callback of that option."""
    context.meta[_VERBOSE] = given
    return given


def is_verbose() -> bool:
    """Whether the command that runs was given -v."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_VERBOSE, False)


def _could_be_verbose() -> bool:
    """Whether the command that runs takes -v, and was not given it."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_VERBOSE) is False


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


def _stopped(error: BaseException) -> Stopped:
    """What an error means for the command that met it."""
    hint = "\nRun it again with -v to see the traceback." if _could_be_verbose() else ""
    match error:
        case GreenroomError():
            from greenroom.apps.cli.explain import explained_name

            # A store that fails after trials have run is named in the report.
            code = BAD_INPUT if isinstance(error, BadInput | StoreFailed) else RUN_ERRORS
            more = f"\nMore: greenroom explain {explained_name(error)}"
            return Stopped(f"{error}{more}{hint if isinstance(error, ImportFailed) else ''}", code)
        case FileNotFoundError() if error.filename is None:
            message = "the current folder no longer exists. Change to another one, and run the command again."
            return Stopped(message, BAD_INPUT)
        case OSError() if error.filename is not None:
            # What author's code raises is named as such before it comes here: this is a file or folder of the command.
            name = str(error.filename)
            message = f"{name!r} cannot be read or written: {error.strerror}. Name another place."
            return Stopped(message, BAD_INPUT)
        case SystemExit():
            message = (
                f"code that the command ran tried to end the process ({error!r}). Remove that call."
            )
            return Stopped(message + hint, RUN_ERRORS)
        case _:
            return Stopped(f"{type(error).__name__}: {error}".removesuffix(": ") + hint, RUN_ERRORS)


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

    put_out_json(json.dumps(redactor().document(data), indent=2))


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
