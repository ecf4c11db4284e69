"""An option is declared once, and every door offers it, checks it and repeats it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Scripted, rehearse
from greenroom.apps.pytest_plugin import EvalRunner
from greenroom.errors import BadInput
from greenroom.suite import evaluate, stream
from nested_pytest import FEW_PLUGINS

# Every process that begins with this folder on its path has one option more in its table.
ONE_MORE = """
import os
from pathlib import Path
from greenroom.suite.option_types import Flag, Option
from greenroom.suite.options import OPTIONS

SEEN = Path(__file__).with_name("seen")

def accepts(value):
    with SEEN.open("a") as seen:
        seen.write(f"{os.getpid()} {value}\\n")
    return value in ("mild", "hot")

OPTIONS["flavour"] = Option(
    accepts,
    "one of 'mild', 'hot'",
    "mild",
    ("mild", "hot"),
    per_trial=True,
    flag=Flag(names=("--flavour",), help="How it tastes.", metavar="WORD", in_watch=True),
    setting="How they taste.",
)
"""
SHOP = """
from greenroom import Agent, Case, Expect, Scripted
agent = Agent("shop", model=Scripted("Hello."))
cases = [Case(name, says="Hi", expect=Expect(response="Never.")) for name in ("a", "b")]
"""
CLI = ["-m", "greenroom.apps.cli"]
EVAL = [*CLI, "eval", "run", "shop.py", "shop.py:cases"]
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider"]
WRONG = "should be one of 'mild', 'hot'."


class Shop:
    """A project where the table of options has one entry more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sitecustomize.py").write_text(ONE_MORE)
        (folder / "shop.py").write_text(textwrap.dedent(SHOP))
        (folder / "pyproject.toml").write_text("")

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = {"PYTHONPATH": str(self.folder), "COLUMNS": "200"}
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**os.environ, **FEW_PLUGINS, **path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.mark.parametrize("command", ["run", "watch"])
def test_a_new_option_is_in_the_help(shop: Shop, command: str) -> None:
    said = shop.run(*CLI, "eval", command, "--help").stdout
    assert "--flavour WORD" in said
    assert "How it tastes." in said


def test_a_new_option_and_its_words_are_completed(shop: Shop) -> None:
    asked = {"_GREENROOM_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    flags = shop.run(*CLI, **asked, COMP_WORDS="greenroom eval run --fla").stdout
    assert "plain,--flavour" in flags
    asked["COMP_CWORD"] = "4"
    words = shop.run(*CLI, **asked, COMP_WORDS="greenroom eval run --flavour ").stdout
    assert words.split() == ["plain,mild", "plain,hot"]


def test_a_new_option_of_the_pytest_plug_in_is_in_its_help(shop: Shop) -> None:
    said = " ".join(shop.run(*PYTEST, "--help").stdout.split())
    assert "--greenroom-flavour=WORD How they taste." in said


@pytest.mark.parametrize("door", ["call", "command", "pyproject", "pytest"])
def test_a_new_option_is_checked_at_every_door(shop: Shop, door: str) -> None:
    match door:
        case "call":
            call = (
                "import greenroom, shop; greenroom.rehearse(shop.agent, shop.cases, flavour='hott')"
            )
            done = shop.run("-c", call)
        case "command":
            done = shop.run(*EVAL, "--flavour", "hott")
        case "pyproject":
            text = '[tool.greenroom.pytest]\nflavour = "hott"\n'
            (shop.folder / "pyproject.toml").write_text(text)
            done = shop.run(*PYTEST)
        case _:
            done = shop.run(*PYTEST, "--greenroom-flavour", "hott")
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert f"'hott' {WRONG} Did you mean 'hot'?" in said


def test_a_new_option_reaches_workers_and_the_printed_commands(shop: Shop) -> None:
    done = shop.run(*EVAL, "--flavour", "hot", "--workers", "1", "--fail-fast", "--store", "runs")
    seen = [line.split() for line in (shop.folder / "seen").read_text().splitlines()]
    assert {value for _, value in seen} == {"hot"}
    assert len({process for process, _ in seen}) == 2  # the parent and its worker
    again = next(line for line in done.stdout.splitlines() if "again: " in line)
    assert "--flavour hot" in again
    resume = next(line for line in done.stderr.splitlines() if "to resume: " in line)
    assert "--flavour hot" in resume
    assert "--resume" in resume


def test_a_new_option_that_is_not_given_has_its_default(shop: Shop) -> None:
    shop.run(*EVAL, "--workers", "1")
    seen = [line.split()[1] for line in (shop.folder / "seen").read_text().splitlines()]
    assert set(seen) == {"mild"}  # as a worker is sent it


AGENT = Agent("hello", model=Scripted("Hello."))
CASE = Case("a", says="Hi.", expect=Expect(response="Hello."))
REFUSED: list[tuple[str, Any, str]] = [
    ("trials", 0, "trials=0 should be a whole number of 1 or more, or 'auto'."),
    ("trials", True, "trials=True should be a whole number of 1 or more, or 'auto'."),
    ("trials", "atuo", "trials='atuo' should be a whole number of 1 or more, or 'auto'."),
    ("min_pass_rate", float("nan"), "min_pass_rate=nan should be a share from 0 to 1."),
    ("min_pass_rate", 1.5, "min_pass_rate=1.5 should be a share from 0 to 1."),
    (
        "min_pass_rate",
        0.5,
        (
            "min_pass_rate=0.5 says when trials='auto' may stop; give that too, or leave it out. "
            "Whether a report reaches a minimum is for greenroom.results.Gate."
        ),
    ),
    (
        "trials",
        "auto",
        "trials='auto' needs a min_pass_rate below 1: no number of trials shows that a case always passes.",
    ),
    ("metrics", "contains", "metrics='contains' should be a list of metrics, or of their names."),
    ("config", 5, "config=5 should be an EvalConfig, or the path of a file with one."),
    ("fail_fast", "no", "fail_fast='no' should be True or False."),
    ("seconds_per_metric", -1, "seconds_per_metric=-1 should be a number of seconds above 0."),
    ("workers", -2, "workers=-2 should be a whole number from 1 to 4096, or Workers(...)."),
    (
        "store",
        ["runs"],
        "store=['runs'] should be a folder, the address of a server, a Store, or False.",
    ),
    ("allow_tools", "refund", "allow_tools='refund' should be a list of tools, or of their names."),
    (
        "unknown_prices",
        "alow",
        "unknown_prices='alow' should be one of 'refuse', 'allow'. Did you mean 'allow'?",
    ),
    (
        "accept_changes",
        True,
        "accept_changes=True is for resume= or resume_or_new=; give that too, or leave it out.",
    ),
]


CALLS = ["rehearse", "evaluate", "stream", "EvalRunner"]


async def call(door: str, **options: Any) -> None:
    match door:
        case "rehearse":
            rehearse(AGENT, [CASE], **options)
        case "evaluate":
            await evaluate(AGENT, [CASE], **options)
        case "stream":
            [_ async for _ in stream(AGENT, [CASE], **options)]
        case _:
            EvalRunner(AGENT, options.pop("metrics", ()), **options).run(CASE)


@pytest.mark.parametrize("name, value, said", REFUSED, ids=lambda part: str(part)[:20])
@pytest.mark.parametrize("door", CALLS)
async def test_what_cannot_be_meant_is_refused_alike_by_every_call(
    door: str, name: str, value: Any, said: str
) -> None:
    begun: list[Case] = []
    with pytest.raises(BadInput) as refused:
        await call(door, **{"on_case_start": begun.append, name: value})
    assert str(refused.value) == said
    assert begun == []


@pytest.mark.parametrize("door", CALLS)
async def test_an_unknown_option_is_refused_with_the_nearest_one(door: str) -> None:
    with pytest.raises(TypeError, match=r"no option 'fail_fsat'\. Did you mean fail_fast\?"):
        await call(door, fail_fsat=True)
