"""The command line offers and checks the options of an evaluation as their table declares them."""

import re

import click
import pytest

from greenroom.apps.cli.eval_commands import eval_run, eval_watch
from greenroom.suite.options import OPTIONS

FLAGS = {name: option.flag for name, option in OPTIONS.items() if option.flag}
TYPED = {
    "fence": ["kernels", "kernel:", "kernel:a b", "none"],
    "trials": ["0", "-1", "1.5", "many", "²", "nan"],
    "min_pass_rate": ["-0.1", "1.1", "nan", "most"],
    "confirm": ["-1", "1.5", "never"],
    "budget": ["0", "-1", "nan", "inf", "much", "1_0"],
    "unknown_prices": ["x", "1", "Allow"],
    "check": ["x", "1", "Error"],
    "on_drift": ["x", "1", "Live", "skip"],
    "concurrency": ["0", "-1", "1.5", "all", "9" * 5000],
    "on": ["here", "rays", "ray:", "kubernetes"],
    "resume_or_new": [" "],
    "shard": ["0/4", "5/4", "2", "-1/4", "1/0", "one/two"],
    "workers": ["0", "-1", "4097", "1.5", "all"],
    "seconds_per_metric": ["0", "-1", "nan", "inf", "soon"],
    "seconds_per_case": ["0", "-1", "nan", "inf", "soon"],
    "metric_attempts": ["0", "-1", "1.5", "often"],
}


def parameters(command: click.Command) -> dict[str | None, click.Parameter]:
    return {parameter.name: parameter for parameter in command.params}


def test_every_option_with_a_flag_is_offered_with_its_help() -> None:
    for name, flag in FLAGS.items():
        for command in (eval_run, eval_watch) if flag.in_watch else (eval_run,):
            offered = parameters(command)[name]
            assert isinstance(offered, click.Option)
            assert (set(offered.opts), offered.help) == (set(flag.names), flag.help)


def test_every_value_that_is_typed_is_tried_below() -> None:
    assert {name for name, flag in FLAGS.items() if flag.kind == "value"} == TYPED.keys()


@pytest.mark.parametrize(
    "name, typed",
    # In Python an empty shard is none; the command line refuses it as it refuses any empty value.
    [(n, typed) for n, texts in TYPED.items() for typed in (*texts, "") if typed or n != "shard"],
    ids=lambda part: part[:20],
)
def test_what_an_option_cannot_be_is_refused_in_the_words_of_every_door(greenroom, name, typed):
    flag, option = FLAGS[name], OPTIONS[name]
    result = greenroom("eval", "run", "shop.py", f"{flag.names[0]}={typed}")
    assert result.exit_code == 3
    said = " ".join(result.stderr.split())
    assert f"'{flag.names[0]}'" in said
    assert f"{typed!r} should be {option.wanted}." in said


def test_words_to_choose_from_are_completed() -> None:
    offered = parameters(eval_run)["unknown_prices"]
    context = click.Context(eval_run)
    found = [item.value for item in offered.shell_complete(context, "re")]
    assert found == ["refuse"]


def test_the_printed_commands_repeat_what_was_given(author, greenroom) -> None:
    author("cases = [Case('a', 'Hi', metrics=[contains('never')])]")
    typed = ["--trials", "2", "--budget", "1.5", "--unknown-prices", "allow", "--sequential"]
    typed += ["--min-pass-rate", "0.25", "--allow-tool", "refund", "--allow-opaque", "--fail-fast"]
    typed += ["--seconds-per-case", "9.5"]
    result = greenroom(
        "eval", "run", "shop.py", *typed, "--sample", "1", "--seed", "3", "--store", "runs"
    )
    again = re.search("again: greenroom (.*)", result.stdout)
    assert again is not None
    shown = "eval run shop.py --filter id:a --allow-tool refund --allow-opaque"
    assert again[1] == f"{shown} --seconds-per-case 9.5 --store runs --trials 2"


def test_what_was_not_recorded_is_not_recorded_by_the_printed_command(author, greenroom) -> None:
    author("cases = [Case('a', 'Hi', metrics=[contains('never')])]")
    result = greenroom("eval", "run", "shop.py", "--no-store")
    assert "again: greenroom eval run shop.py --filter id:a --no-store\n" in result.stdout
