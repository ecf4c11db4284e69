"""Options that several commands share, and the words in which help is given."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

FILE = click.Path()
"""A path as it was typed; shells complete it."""


def examples(*lines: str) -> str:
    """Commands to try, as they stand below a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


EXIT_CODES = """\b
Exit codes, the first that applies:
  129, 130, 143  ended by SIGHUP, Ctrl-C or SIGTERM
  3         bad usage, or an agent, case, file or store that cannot be used;
            no case that can be compared with the baseline
  2         errors in the run: a case broke, or the fence could not hold
  1         the pass rate is below the minimum, or not shown to reach it where
            --trials auto or --confident asks for that; the pass rate, the mean
            of a metric or a case is significantly worse than in the baseline
  0         passed
"""


def together(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Several options as one; as with decorators, the last one stands first in the help."""

    def decorated(command: Any) -> Any:
        for decorator in decorators:
            command = decorator(command)
        return command

    return decorated


def trials(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """A number of trials, `auto`, or nothing."""
    if value is None or value == "auto":
        return value
    if not (value.isdecimal() and int(value)):
        raise click.BadParameter(
            f"{value!r} is no number of trials; give 1 or more, or auto.", context, parameter
        )
    return int(value)


def confirm(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """How many more trials a suspect may take, `off`, or nothing."""
    if value is None:
        return None
    if value != "off" and not (value.isdecimal() and int(value)):
        raise click.BadParameter(
            f"{value!r} is no number of trials; give 1 or more, or off.", context, parameter
        )
    return 0 if value == "off" else int(value)


def max_errors(command: F) -> F:
    """How much may break."""
    return click.option(
        "--max-errors",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="How many cases may end in an error, unmeasured ones among them, before exit code 2.",
    )(command)


def config(command: F) -> F:
    """By what the cases are judged."""
    return click.option(
        "-c",
        "--config",
        "--config_file_path",
        "config",
        type=FILE,
        default="",
        metavar="FILE",
        help="Judge by the criteria of this file too.",
    )(command)


def concurrency(usual: str) -> Decorator[Any]:
    """How many cases are played at once; `usual` says it for those who do not."""
    return together(
        click.option(
            "--max-concurrency",
            type=click.IntRange(min=1),
            default=None,
            metavar="N",
            help=f"How many cases are played at once. Usually {usual}.",
        ),
        click.option(
            "--parallel/--sequential",
            "parallel",
            default=True,
            help="Play cases side by side, as is usual, or one after another.",
        ),
    )


def at_once(most: int | None, parallel: bool) -> int | None:
    """How many cases are to be played at once, if anybody said; two answers to that are refused."""
    if not parallel and most is not None and most > 1:
        raise click.UsageError(
            f"--sequential and --max-concurrency {most} contradict each other; give one of them."
        )
    return most if parallel else 1


def _allow_import(_: click.Context, __: click.Parameter, given: bool) -> None:
    if given:
        from greenroom.suite.imports import allow_import_network

        allow_import_network()


def tools(command: F) -> F:
    """What answers for tools, and what the agent's file may do when it is loaded."""
    command = click.option(
        "--allow-import-network",
        is_flag=True,
        expose_value=False,
        callback=_allow_import,
        help="Let the agent's file connect and start processes while it is imported.",
    )(command)
    command = click.option(
        "--allow-opaque",
        is_flag=True,
        help="Play an agent whose tools run where no gate can see them; results say so.",
    )(command)
    command = click.option(
        "--mocks",
        type=FILE,
        default="",
        metavar="FILE",
        help="Mocks for tools that a case has none for: a file, or mocks.py:name.",
    )(command)
    return click.option(
        "--allow-tool",
        "allow_tools",
        multiple=True,
        metavar="NAME",
        help="Let the real body of this tool run, inside the fence; may be repeated.",
    )(command)


def filters(command: F) -> F:
    """Which cases are meant."""
    return click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="GLOB",
        help="Only cases whose id, name or tag matches; '!glob' leaves out; may be repeated.",
    )(command)


def store(command: F) -> F:
    """Where runs are remembered."""
    return click.option(
        "--store",
        type=click.Path(file_okay=False),
        default="",
        metavar="DIR",
        help="Where runs are kept: this folder instead of $GREENROOM_STORE or .greenroom.",
    )(command)


def formats(command: F) -> F:
    """In which formats reports are written, and where."""
    command = output(help="Where reports go: a file, or a folder if there are several formats.")(
        command
    )
    return click.option(
        "-f",
        "--format",
        "formats",
        multiple=True,
        metavar="FORMAT",
        help="Also write the report as json, junit, html, markdown, adk or console; json=PATH says "
        "where; may be repeated.",
    )(command)


def quiet(command: F) -> F:
    """Less to read."""
    return click.option("-q", "--quiet", is_flag=True, help="Nothing but the line of counts.")(
        command
    )


def no_cache(command: F) -> F:
    """Whether judges remember."""
    return click.option(
        "--no-cache", is_flag=True, help="Ask judges anew, whatever they answered before."
    )(command)


def loudness(given: dict[str, Any]) -> None:
    """Refuse wishes for more and for less at once."""
    if given["quiet"] and (given["verbose"] or given["as_json"]):
        other = "--verbose" if given["verbose"] else "--json"
        raise click.UsageError(f"{other} and --quiet contradict each other; give one of them.")


def verbose(command: F) -> F:
    """More to read."""
    return click.option(
        "-v",
        "--verbose",
        "--print_detailed_results",
        "verbose",
        is_flag=True,
        help="All details; the traceback of what could not be loaded or broke the command.",
    )(command)


def as_json(command: F) -> F:
    """For scripts."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON and nothing else, for scripts."
    )(command)


def output(required: bool = False, help: str = "Write it to this file.") -> Decorator[Any]:
    """Where to write."""
    need: dict[str, Any] = {"required": True} if required else {"default": ""}
    return click.option("-o", "--output", type=FILE, metavar="PATH", help=help, **need)
