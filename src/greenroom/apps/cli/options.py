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
  130, 143  interrupted by Ctrl-C, or by SIGTERM
  3         bad usage, or an agent, case or file that cannot be read
  2         errors in the run: a case broke, or the fence could not hold
  1         the pass rate is below the minimum, or something got worse
  0         passed
"""


def trials(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """A number of trials, `auto`, or nothing."""
    if value is None or value == "auto":
        return value
    number: Any = click.IntRange(min=1)
    return number.convert(value, parameter, context)


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


def concurrency(command: F) -> F:
    """How many cases are played at once."""
    command = click.option(
        "--max-concurrency",
        type=click.IntRange(min=1),
        default=4,
        show_default=True,
        metavar="N",
        help="How many cases are played at once.",
    )(command)
    return click.option(
        "--parallel/--sequential",
        "parallel",
        default=True,
        help="Play cases side by side, as is usual, or one after another.",
    )(command)


def tools(command: F) -> F:
    """What answers for tools."""
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
        help="All details; tracebacks.",
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
