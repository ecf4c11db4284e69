"""Help is everywhere, has examples, and is what the reference page says."""

import sys
from pathlib import Path

import click
import pytest

import warm_python
from greenroom.apps.cli import main

ROOT = Path(__file__).parent.parent.parent


def commands(group: click.Group = main, path: tuple[str, ...] = ()):
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = dict(commands())


def test_every_command_of_the_design_is_there():
    wanted = """
        demo, init, completion, eval run, eval watch, eval compare, eval-set create, eval-set add,
        eval-set remove, eval-set list, eval-set validate, eval-set merge, eval-set convert,
        eval-set schema, simulate run, simulate batch, agent graph, agent check, eval rescore, runs list,
        runs show, runs delete
    """
    assert {tuple(name.split()) for name in wanted.split(",")} <= ALL.keys()


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_explains_itself(greenroom, words):
    result = greenroom(*words, "--help")
    assert result.exit_code == 0
    assert result.stdout == greenroom(*words, "-h").stdout
    command = ALL[words]
    assert command.help
    for option in command.params:
        assert not isinstance(option, click.Option) or option.hidden or option.help, option.name
    if not isinstance(command, click.Group) and command.params:
        assert f"greenroom {' '.join(words)}" in result.stdout.partition("Examples:")[2]


def test_the_reference_page_is_what_the_commands_say():
    import runpy

    script = runpy.run_path(str(ROOT / "scripts" / "cli_reference.py"))
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert script["page"]() == page, "run scripts/cli_reference.py"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_every_shell(greenroom, shell):
    result = greenroom("completion", shell)
    assert result.exit_code == 0
    assert f"_GREENROOM_COMPLETE={shell}_complete" in result.stdout


def test_a_shell_that_asks_gets_the_words(tmp_path):
    code = "from greenroom.apps.cli import main; main(prog_name='greenroom')"
    env = {
        "_GREENROOM_COMPLETE": "bash_complete",
        "COMP_WORDS": "greenroom eval ",
        "COMP_CWORD": "2",
    }
    done = warm_python.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [
        "plain,clear-cache",
        "plain,compare",
        "plain,merge",
        "plain,mutants",
        "plain,rescore",
        "plain,run",
        "plain,score",
        "plain,watch",
    ]
