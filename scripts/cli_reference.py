"""Writes docs/reference/cli.md from the commands themselves.

    python scripts/cli_reference.py

A test fails while the page says something else than this would write.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from greenroom.apps.cli import main

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

_TOP = """\
# Command line

<!-- Written by scripts/cli_reference.py from the commands; change those, and run it again. -->

`greenroom COMMAND --help` says the same about each command. `-h` works everywhere. Completion for
your shell: `eval "$(greenroom completion bash)"`, or `zsh`, or `fish`.

<!-- runs, exits 1 -->
```console
$ greenroom eval run -q greenroom.apps.demo.clinic
```

<!-- output -->
```text
3 cases: 2 passed, 1 failed; 67 % (20–94) passing; 831 ms; answered by scripted; users simulated by
scripted; judged by scripted-judge
```

## Agents and cases

AGENT and CASES are `path` or `path:name`:

| written | means |
|---|---|
| `shop.py` | a Python file |
| `shop.py:clerk` | a name inside it, or a dotted one: `shop.py:desk.clerk`, `shop.py:sets.0` |
| `my_agent/` | a folder: its `agent.py`, `__init__.py` or `main.py` |
| `my_package.shop` | a module that can be imported |
| `cases.yaml` | CASES only: [an eval-set file](files.md), of any known shape |
| `cases.json:first,second` | CASES only: the cases of a file with these ids |
| `evals/`, `'evals/*.json'` | CASES only: a folder of such files, or a glob |

**Which agent.** With a name, that one; a function is called, and awaited if necessary. Without a name,
the first of `root_agent`, `agent`, `graph`, `app`; else what `create_graph`, `create_agent` or
`get_agent_async` returns. A function called `main` is never called unless you name it.

**Which cases.** With CASES, those. Without, every `Case`, every `EvalSet` and every list of them at the
top level of AGENT's file, and every eval set next to it (or in `evals/` or `tests/` there) that is called
like `refund.evalset.json`, `refund.test.json` or `refund.eval.yaml` and belongs to this agent: by
its name, or because the agent is called `agent.py`. In a folder, files that are not eval sets are
skipped with a remark. Cases with the same id get the id of their set as a prefix.

**Sets.** The metrics of an `EvalSet` measure its own cases only; all cases run as often as the set with
the most trials asks for. A case that has several names, or is in several sets, runs once, unless
these sets measure it by different metrics.

**What judges them.** Their own metrics and expectations; a `test_config.json` next to their file; with
`--config`, that file instead of it.

**What it prints.** A table, a line for each metric, and for every case that did not pass: the reasons,
what was expected next to what happened, the conversation, and the command that runs this case alone. On
a terminal there is a progress bar with counts, cost and the time left. In a pipe there is neither
progress nor colour; `NO_COLOR` is respected. Remarks about the run go to stderr. There is no option
that allows all tools, and none that switches the fence off.

**What it keeps.** Every finished trial, as part of a run in `.greenroom` or where `--store` or
`GREENROOM_STORE` says. [Runs](../how-to/runs.md) can be resumed, shown, compared and measured again.

## Exit codes

The first that applies:

| code | |
|---|---|
| 129, 130, 143 | ended by SIGHUP, Ctrl-C or SIGTERM; what was finished is shown, and how to resume |
| 3 | bad usage, or an agent, case, file or store that cannot be read or written |
| 2 | errors in the run: a case or a conversation broke, or the fence could not hold |
| 1 | the pass rate is below the minimum, or not shown to reach it where `--trials auto` or `--confident` asks for that; nothing was evaluated; something got worse |
| 0 | passed |
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_TOP, *(_section(path, command) for path, command in _commands(main))])


def _commands(group: click.Group, path: str = "greenroom") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        here = f"{path} {name}"
        if isinstance(command, click.Group):
            yield from _commands(command, here)
        else:
            yield here, command


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join(
        piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"
    )
    title = f"{path} {usage}".strip()
    parts = [f"## `{title}`", _prose(command.help or "")]
    options = [option for option in command.params if isinstance(option, click.Option)]
    rows = [_row(option, context) for option in options if not option.hidden]
    if rows:
        parts.append("\n".join(["| option | |", "|---|---|", *rows]))
    if examples := re.findall(r"^  (.+)$", _examples(command.epilog or ""), re.M):
        parts.append("\n".join(["```console", *(f"$ {line}" for line in examples), "```"]))
    return "\n\n".join(parts) + "\n"


def _prose(text: str) -> str:
    paragraphs = click.unstyle(text).replace("\b\n", "").split("\n\n")
    return "\n\n".join(
        " ".join(line.strip() for line in p.splitlines()) for p in paragraphs
    ).strip()


def _examples(epilog: str) -> str:
    return epilog.partition("Examples:\n")[2].partition("\n\n")[0]


def _row(option: click.Option, context: click.Context) -> str:
    names, _ = option.get_help_record(context) or ("", "")
    usual = f" Default: {option.default}." if option.show_default else ""
    shown = names.replace("|", "\\|")
    return f"| `{shown}` | {option.help}{usual} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
