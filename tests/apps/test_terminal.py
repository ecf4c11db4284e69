"""The command line as a process: on a terminal, in a pipe, interrupted."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from apps.terminals import WORDS, on_terminal, started, wait_for

CASES = """
good = Case("good", says="Hi", mocks={"refund": "ok"}, metrics=[contains("money")])
bad = Case("bad", says="Hi", mocks={"refund": "ok"}, metrics=[contains("never")])
"""

WAITING = """
import asyncio
from pathlib import Path

async def forever(order):
    Path("waiting").touch()
    await asyncio.sleep(3600)

good = Case("good", says="Hi", mocks={"refund": "ok"}, metrics=[contains("money")])
stuck = Case("stuck", says="Hi", mocks={"refund": forever}, metrics=[contains("money")])
"""

BUSY = """
import time
from pathlib import Path

def forever(order):
    Path("waiting").touch()
    while True:
        time.sleep(0.01)

busy = Case("busy", says="Hi", mocks={"refund": forever}, metrics=[contains("money")])
"""

HIDE_CURSOR = "\x1b[?25l"


def test_a_terminal_shows_progress_with_counts_and_takes_it_away(author, tmp_path):
    author(CASES)
    shown = on_terminal("eval", "run", "shop.py", cwd=tmp_path)
    assert shown.exit_code == 1
    assert HIDE_CURSOR in shown.text
    assert "rehearsing" in shown.text
    assert re.search(r"2/2.* 1 passed, 1 failed .*\d:\d\d:\d\d", shown.text)
    assert "rehearsing" not in shown.text.split("\x1b[2K")[-1]


def test_progress_tells_the_cost_and_the_time_left(author, tmp_path):
    author("""
    from greenroom.models import ModelReply
    agent = clerk(ModelReply("Your money.", cost=0.25, prices="test"))
    cases = [Case(f"c{n}", says="Hi", metrics=[contains("money")]) for n in range(2)]
    """)
    shown = on_terminal("eval", "run", "shop.py", "--trials", "2", cwd=tmp_path)
    assert re.search(r"4/4.* 4 passed, \$1\.00 .*\d:\d\d:\d\d.* left", shown.text)


def test_progress_counts_what_judges_cost(author, tmp_path):
    author("""
    from greenroom.metrics import judge
    from greenroom.models import ModelReply

    answer = ModelReply('{"reasoning": "So.", "verdict": true}', cost=0.25, prices="test")
    agent = clerk(ModelReply("Your money.", cost=0.5, prices="test"))
    tone = judge("tone", "Was it polite?", model=Scripted(answer))
    cases = [Case("c", says="Hi", metrics=[tone])]
    """)
    shown = on_terminal("eval", "run", "shop.py", cwd=tmp_path)
    assert re.search(r"1/1.*, \$0\.7500 ", shown.text), shown.text
    assert "cost $0.5000; judged by scripted; cost $0.2500" in " ".join(shown.text.split())


def test_a_terminal_gets_colours_unless_no_color_is_set(author, tmp_path):
    author(CASES)
    assert on_terminal("eval", "run", "shop.py", cwd=tmp_path).colours
    plain = on_terminal("eval", "run", "shop.py", cwd=tmp_path, NO_COLOR="1")
    assert "1.00 ✓" in plain.text
    assert plain.colours == set()


def test_the_command_that_plays_a_case_alone_can_be_copied_in_one_piece(author, tmp_path):
    long = "with-a-name-that-is-far-too-long-for-" + 5 * "a-single-line-of-any-terminal-"
    author(f"""
    cases = [Case("{long}", says="Hi", mocks={{"refund": "ok"}}, metrics=[contains("never")])]
    """)
    shown = on_terminal("eval", "run", "shop.py", cwd=tmp_path).text
    assert f"greenroom eval run shop.py --filter id:{long}" in shown


def test_quiet_is_quiet_on_a_terminal_too(author, tmp_path):
    author(CASES)
    shown = on_terminal("eval", "run", "shop.py", "-q", cwd=tmp_path)
    assert "rehearsing" not in shown.text
    assert shown.text.startswith("2 cases: 1 passed, 1 failed")


@pytest.mark.parametrize("env", [{}, {"FORCE_COLOR": "1"}])
def test_a_pipe_gets_no_progress(author, tmp_path, env):
    author(CASES)
    with started("eval", "run", "shop.py", cwd=tmp_path, **env) as process:
        shown = process.communicate()[0].decode()
    assert "rehearsing" not in shown
    assert HIDE_CURSOR not in shown
    if not env:
        assert "\x1b" not in shown
        assert "good  passed  1.00 ✓" in shown


def test_a_pipe_that_cannot_show_a_character_still_gets_the_report(author, tmp_path):
    author(CASES.replace('says="Hi"', 'says="Grüße"'))
    with started("eval", "run", "shop.py", cwd=tmp_path, PYTHONIOENCODING="ascii") as process:
        shown = process.communicate()[0].decode("ascii")
    assert "1.00 ok" in shown
    assert r"Gr\xfc\xdfe" in shown


def test_a_list_that_nobody_reads_to_its_end_is_no_accident(author, tmp_path):
    author("cases = [Case(f'case-{n}', 'Hi') for n in range(5000)]")
    with started("eval-set", "list", "shop.py", cwd=tmp_path) as process:
        assert process.stdout
        process.stdout.readline()
        process.stdout.close()
    assert process.returncode == 0


@pytest.mark.parametrize(
    "sent, code, said",
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_an_interrupted_run_shows_what_it_has_and_exits_as_shells_do(
    author, tmp_path, sent, code, said
):
    author(WAITING)
    with started("eval", "run", "shop.py", "--sequential", cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    assert re.search(r"good +passed", shown)
    assert re.search(r"stuck +skipped", shown)
    assert f"{said} after 1 of 2 cases" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_code_that_does_not_look_up_is_broken_off(author, tmp_path, sent, code):
    author(BUSY)
    with started("eval", "run", "shop.py", cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    assert "after 0 of 1 cases" in shown


LOADING = """
import asyncio
from pathlib import Path

async def slowly():
    Path("waiting").touch()
    await asyncio.sleep(3600)

cases = [Case("a", says="Hi")]
"""


@pytest.mark.parametrize(
    "sent, code, said",
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
@pytest.mark.parametrize(
    "words",
    [
        ["agent", "graph", "shop.py:slowly"],
        ["eval", "run", "shop.py:slowly", "shop.py", "--suggest-mocks"],
    ],
)
def test_a_command_interrupted_while_its_agent_is_made_exits_as_shells_do(
    author, tmp_path, words, sent, code, said
):
    author(LOADING)
    with started(*words, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    assert shown == f"greenroom: {said}\n"


def test_where_the_fence_cannot_hold_nothing_runs_and_the_exit_code_is_2(author, tmp_path):
    pytest.importorskip("uvloop")
    author(
        CASES + "import asyncio, uvloop\nasyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\n"
    )
    with started("eval", "run", "shop.py", cwd=tmp_path) as process:
        shown = process.communicate()[0].decode()
    assert process.returncode == 2
    assert "the fence cannot hold here" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("words", [["--help"], ["eval", "run", "--help"], ["--version"]])
def test_help_loads_nothing_but_click(words):
    code = f"""
import sys
from greenroom.apps.cli import main
try:
    main({words!r})
finally:
    ours = {{name for name in sys.modules if name.startswith("greenroom.")}}
    others = {{name for name in ours if not name.startswith(("greenroom.apps", "greenroom.errors", "greenroom.lazy"))}}
    print({{"pydantic", "rich", "asyncio", "yaml"}} & set(sys.modules), sorted(others))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # The table of options declares what the help says; it imports nothing else. Any command says first that
    # it only rehearses, before it imports an author's file.
    table = [
        *("greenroom.suite", "greenroom.suite.inputs", "greenroom.suite.inputs.import_rules"),
        *("greenroom.suite.option_types", "greenroom.suite.options"),
    ]
    if words == ["--help"]:  # which lists the commands of other packages too
        table = ["greenroom.installation", "greenroom.plugins", *table]
    assert shown.stdout.splitlines()[-1] == f"set() {table}"


def test_the_console_script_is_this_command(tmp_path):
    script = Path(sys.executable).with_name("greenroom")
    if not script.exists():
        pytest.skip("greenroom is not installed as a command here")
    by_script = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    by_module = subprocess.run([*WORDS, "--version"], capture_output=True, text=True, check=True)
    assert by_script.stdout == by_module.stdout
