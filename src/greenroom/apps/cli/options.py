"""Options that several commands share, and how their help is worded."""

from collections.abc import Callable
from functools import partial
from math import isnan
from typing import Any, TypeVar

import click

from greenroom.apps.cli.exits import is_verbose, note_verbose
from greenroom.apps.cli.streams import STREAMS
from greenroom.suite.option_types import Flag, Option, as_number
from greenroom.suite.options import OPTIONS

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

_TELEMETRY = "greenroom.telemetry"
FILE = click.Path()
"""A path as it was typed; shells complete it."""


def examples(*lines: str) -> str:
    """Commands to try, as shown below a command's help."""
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


class Number(click.FloatRange):
    """A number in a range. `nan` is refused: every range check would accept it."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number that was typed."""
        found = float(super().convert(value, param, ctx))
        if isnan(found):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


def together(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Several options as one decorator; as with stacked decorators, the last one comes first in the help."""

    def decorated(command: Any) -> Any:
        for decorator in decorators:
            command = decorator(command)
        return command

    return decorated


def _reader(option: Option, flag: Flag) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Reads what was typed for an option of an evaluation, and checks it as every door does."""
    words = flag.words or {}

    def read(context: click.Context, parameter: click.Parameter, typed: str | None) -> Any:
        if typed is None:
            return None
        value = words[typed] if typed in words else as_number(typed)
        if problem := option.problem(value, typed=typed):
            raise click.BadParameter(problem, context, parameter)
        return value

    return read


def declared(*names: str, help: str = "") -> Decorator[Any]:
    """The options of an evaluation with these names, as their table declares them."""
    return together(*(_declared(name, OPTIONS[name], help) for name in reversed(names)))


def _set_telemetry(context: click.Context, _: click.Parameter, given: str | None) -> None:
    context.meta[_TELEMETRY] = given


_telemetry = click.option(
    "--telemetry",
    type=click.Choice(["otlp", "console"]),
    is_eager=True,
    expose_value=False,
    callback=_set_telemetry,
    help="Export the run as OpenTelemetry spans and metrics: to a collector, set by the "
    "usual OTEL_ variables, or to the terminal.",
)


def _with_telemetry(
    context: click.Context, _: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    kind: str | None = context.meta.get(_TELEMETRY)
    return (f"{_TELEMETRY}:{kind}", *given) if kind else given


def _declared(name: str, option: Option, help: str) -> Decorator[Any]:
    flag = option.flag
    assert flag is not None
    given: dict[str, Any] = {"metavar": flag.metavar, "help": help or flag.help}
    match flag.kind:
        case "switch":
            given |= {"is_flag": True, "metavar": None}
        case "file":
            given |= {"type": FILE, "default": ""}
        case "files" if name == "middleware":
            given |= {"type": FILE, "multiple": True, "callback": _with_telemetry}
            return together(_telemetry, click.option(*flag.names, name, **given))
        case "files":
            given |= {"type": FILE, "multiple": True}
        case "folder":
            given |= {"type": click.Path(file_okay=False), "default": ""}
        case "list":
            given |= {"multiple": True}
        case "value":
            given |= {"callback": _reader(option, flag), "default": None}
            given |= {"shell_complete": _words_for(option, flag)}
    return click.option(*flag.names, name, **given)


def _words_for(option: Option, flag: Flag) -> Callable[[Any, Any, str], list[str]]:
    """Completes the words that an option has to choose from."""
    words = (*option.choices, *(flag.words or ()))
    return lambda _, __, begun: [word for word in words if word.startswith(begun)]


def of_evaluation(*, in_watch: bool) -> Decorator[Any]:
    """Every option that `eval run` has: those that `eval watch` has too, or the others."""
    flags = [(name, option.flag) for name, option in OPTIONS.items() if option.flag is not None]
    return declared(*(name for name, flag in flags if flag.in_watch == in_watch))


max_errors = click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="How many cases may end in an error, or unmeasured, before the exit code is 2.",
)
parallel = click.option(
    "--parallel/--sequential",
    "parallel",
    default=True,
    help="Run cases side by side (the default) or one after another.",
)


def at_once(most: int | None, parallel: bool) -> int | None:
    """How many cases run at once, if it was given; two answers that differ are refused."""
    if not parallel and most is not None and most > 1:
        raise click.UsageError(
            f"--sequential and --max-concurrency {most} contradict each other; give one of them."
        )
    return most if parallel else 1


def _allow_import(_: click.Context, __: click.Parameter, given: bool) -> None:
    if given:
        from greenroom.suite.inputs.import_rules import allow_import_network

        allow_import_network()


import_network = click.option(
    "--allow-import-network",
    is_flag=True,
    expose_value=False,
    callback=_allow_import,
    help="Let the agent's file connect and start processes while it is imported.",
)
tools = together(
    import_network, declared("allow_tools", "mocks", "resources", "middleware", "allow_opaque")
)
"""The options for mocks and tools, and for what the agent's file may do when it is loaded."""


acting = together(
    click.option(
        "--seconds",
        type=Number(min=0, min_open=True),
        default=None,
        metavar="S",
        help="How long one turn may take.",
    ),
    click.option(
        "--max-model-calls",
        type=click.IntRange(min=1),
        default=500,
        show_default=True,
        metavar="N",
        help="How often models may be asked in one turn.",
    ),
    declared("resources", "middleware"),
    declared("store", help="The folder where conversations are kept."),
    click.option(
        "--model", default="", metavar="NAME", help="Use this model for every part of the agent."
    ),
)
"""The options of an agent that acts for real, and the limits of one turn."""


filters = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="GLOB",
    help="Only cases whose id, name or tag matches; '!GLOB' excludes; may be repeated, and each must match.",
)
stored = declared(
    "store",
    help="Look for runs in this folder, or on this server (postgresql://…), instead of "
    "$GREENROOM_STORE or .greenroom.",
)
config = declared("config")
metrics = click.option(
    "-m",
    "--metrics",
    multiple=True,
    metavar="METRICS",
    help="Measure these metrics: names separated by commas, name:VALUE for the first option, "
    "'name={\"option\": 1}' for several, or file.py:name; may be repeated.",
)
trace_reader = click.option(
    "--reader",
    default="",
    metavar="NAME",
    help="Read the files in this format instead of detecting it.",
)


def output(required: bool = False, help: str = "Write it to this file.") -> Decorator[Any]:
    """Where to write."""
    need: dict[str, Any] = {"required": True} if required else {"default": ""}
    return click.option(
        "-o", "--output", type=FILE, metavar="PATH", help=help, callback=_named_file, **need
    )


force = click.option("--force", is_flag=True, help="Overwrite an existing file.")


def _named_file(_: click.Context, __: click.Parameter, given: str) -> str:
    """Refuse `-`, which would be the name of a file: standard output has what people read."""
    if given == "-":
        raise click.UsageError(
            "--output -: standard output has what is printed for people. Name a file, or print JSON alone: --json."
        )
    return given


formats = together(
    output(help="Where reports go: a file, or a folder if there are several formats."),
    click.option(
        "-f",
        "--format",
        "formats",
        multiple=True,
        metavar="FORMAT",
        help="Also write the report as json, junit, html, markdown, annotations, adk or console; json=PATH names "
        "the file; may be repeated.",
    ),
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print only the summary line.")
no_cache = click.option(
    "--no-cache",
    is_flag=True,
    help="Ask judges again instead of reusing their earlier answers.",
)


def loudness(given: dict[str, Any]) -> None:
    """Refuse to print more and less at once."""
    if given["quiet"] and (is_verbose() or given["as_json"]):
        other = "--verbose" if is_verbose() else "--json"
        raise click.UsageError(f"{other} and --quiet contradict each other; give one of them.")


_verbose = partial(
    click.option,
    "-v",
    "--verbose",
    "--print_detailed_results",
    "verbose",
    is_flag=True,
    callback=note_verbose,
    help="Show all details, and the traceback of an error.",
)
verbose = _verbose()
verbose_errors = _verbose(expose_value=False)
"""The same for commands that show no details of their own."""


def _only_json(context: click.Context, _: click.Parameter, given: bool) -> bool:
    if given and not context.resilient_parsing:
        STREAMS.keep_for_json()
    return given


as_json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=_only_json,
    help="Print only JSON, for scripts.",
)
