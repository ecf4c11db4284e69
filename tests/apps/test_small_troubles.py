"""Troubles around a command: output that cannot be written, signals, torn and read-only stores."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import warm_python
from apps.conftest import AUTHOR
from apps.terminals import (
    WORDS,
    environment,
    hears_interrupts,
    on_terminal,
    started,
    wait_for,
)
from apps.test_stopping import RUN, WAITING
from greenroom.store import Store
from marks import heavy

PASSING = """
cases = [Case(f"case {i}", says="Hi", mocks={"refund": "ok"}, metrics=[contains("money")])
         for i in range(3)]
"""
FAILING = PASSING.replace("money", "nothing of it")
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory) -> Path:
    """A project whose store has two runs."""
    folder = tmp_path_factory.mktemp("two_runs")
    (folder / "shop.py").write_text(AUTHOR + PASSING)
    for _ in range(2):
        with started("eval", "run", "shop.py", "--store", "runs", cwd=folder) as process:
            shown = process.communicate()[0].decode()
        assert process.returncode == 0, shown
    return folder


@pytest.fixture
def kept(two_runs, author, tmp_path) -> Path:
    """A store with two runs."""
    author(PASSING)
    return shutil.copytree(two_runs / "runs", tmp_path / "runs")


def printing_to(output: int, *words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """The command, to its end, with its output going to a file that is closed then."""
    env = environment({})
    done = warm_python.run(
        [*WORDS, *words], cwd=cwd, stdout=output, stderr=subprocess.PIPE, text=True, env=env
    )
    os.close(output)
    return done


def shell(command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """A command line in which `greenroom` is this one."""
    words = f'"{sys.executable}" -c "from greenroom.apps.cli import main; main()"'
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command.replace('greenroom', words)}"],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=environment({}),
    )


# Output


@pytest.mark.parametrize("text, code", [(PASSING, 0), (FAILING, 1)])
def test_a_reader_that_goes_away_changes_no_verdict(author, tmp_path, text, code):
    author(text)
    reads, writes = os.pipe()
    os.close(reads)
    told = printing_to(writes, "eval", "run", "shop.py", "-v", cwd=tmp_path)
    assert told.returncode == code, told.stderr
    assert "Traceback" not in told.stderr
    assert "BrokenPipe" not in told.stderr


@needs_full
@pytest.mark.parametrize(
    "words", [("eval", "run", "shop.py"), ("runs", "list"), ("--help",), ("demo",), ("-h",)]
)
def test_a_full_disk_behind_the_output_is_told(kept, tmp_path, words):
    store = ("--store", str(kept)) if len(words) > 1 else ()
    full = os.open("/dev/full", os.O_WRONLY)
    told = printing_to(full, *words, *store, cwd=tmp_path)
    assert told.returncode == 3, told.stderr
    assert "not everything could be printed: No space left on device" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("closed", [*map(heavy, (">&-", "2>&-", "<&-")), ">&- 2>&- <&-"])
def test_closed_output_spoils_no_store(author, tmp_path, closed):
    """A file that is opened would take the number of what is closed, and be printed into."""
    author('print("hello")\n' + PASSING)
    told = shell(f"greenroom eval run shop.py --store runs {closed}", tmp_path)
    assert told.returncode == 0, told.stderr
    [run] = Store(tmp_path / "runs").runs()
    assert (run.status, run.done) == ("finished", 3)


@pytest.mark.parametrize("columns", ["0", heavy("")])
def test_a_terminal_of_no_known_width_is_printed_to_as_any_other(author, tmp_path, columns):
    author(PASSING)
    words = ("eval", "run", "shop.py", "--store", "runs")
    assert on_terminal(*words, cwd=tmp_path, COLUMNS=columns).exit_code == 0
    told = shell(f"COLUMNS={columns} greenroom {' '.join(words)}", tmp_path)
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(
    "words", ["eval run ../shop.py", *map(heavy, ("runs list", "eval-set create new"))]
)
def test_a_current_folder_that_was_deleted_is_bad_input(author, tmp_path, words):
    author(PASSING)
    told = shell(f"mkdir gone; cd gone; rmdir ../gone; greenroom {words}", tmp_path)
    assert told.returncode == 3, told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("status", [0, heavy(1), heavy(5)])
def test_a_process_that_the_agent_ended_is_never_taken_for_a_verdict(author, tmp_path, status):
    author(f"import os; os._exit({status})")
    told = shell("greenroom eval run shop.py", tmp_path)
    assert told.returncode == 2
    assert "ended by code that it ran" in told.stderr


# Signals


def test_a_second_interrupt_while_the_first_is_reported_prints_no_traceback(tmp_path):
    program = (
        "import signal, sys\n"
        "from greenroom.apps.cli import main\n"
        "class Again:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.startswith('greenroom.'): signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Again())\n"
        "main(['demo'])\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=hears_interrupts,
    )
    assert told.returncode == 130, told.stderr
    assert "Traceback" not in told.stderr


def test_a_terminal_that_hangs_up_leaves_a_report_and_a_run_that_can_go_on(author, tmp_path):
    author(WAITING)
    with started(*RUN, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(signal.SIGHUP)
        shown = process.communicate()[0].decode()
    assert process.returncode == 129
    assert "hung up after 1 of 3 cases" in shown
    assert "to resume: greenroom" in shown
    assert [run.status for run in Store(tmp_path / "runs").runs()] == ["interrupted"]


def test_who_asked_not_to_hear_of_it_is_not_hung_up(author, tmp_path):
    author(WAITING)
    words = ["nohup", *WORDS, *RUN]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as p:
        wait_for(tmp_path / "waiting", p)
        p.send_signal(signal.SIGHUP)
        (tmp_path / "go").touch()
        shown = p.communicate()[0].decode()
    assert p.returncode == 0, shown


def test_two_interrupts_at_once_spoil_nothing(author, tmp_path):
    author(WAITING)
    with started(*RUN, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        shown = process.communicate()[0].decode()
    assert process.returncode == 130
    assert "Traceback" not in shown
    (tmp_path / "go").touch()
    with started(*RUN, "--resume", cwd=tmp_path) as process:
        shown = process.communicate()[0].decode()
    assert process.returncode == 0, shown
    assert (tmp_path / "played").read_text() == "xx"


LOADING = """
import sys
import time
import types

class Slow(types.ModuleType):
    def __getattr__(self, name):
        if not name.startswith("__"):
            print("loading", flush=True)
            time.sleep(60)
        raise AttributeError(name)

sys.modules["click"] = Slow("click")
from greenroom.apps.cli import main
"""


def test_an_interrupt_while_the_command_is_loaded_leaves_no_traceback(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", LOADING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_interrupts,  # noqa: PLW1509 - no threads run here yet
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        told = process.communicate()[1]
    assert process.returncode == 130
    assert told == ""


@pytest.mark.torture
def test_an_interrupt_at_any_early_moment_leaves_no_traceback_of_ours(author, tmp_path):
    author(PASSING)
    for number in range(60):
        with started(*RUN, cwd=tmp_path) as process:
            time.sleep(0.01 * number)
            process.send_signal(signal.SIGINT)
            shown = process.communicate()[0].decode()
        # What Python loads by itself before it comes to us may still be broken into.
        assert "Traceback" not in shown or "greenroom/" not in shown, shown


# Stores


def tear(store: Path, column: str, table: str = "trials") -> str:
    """Cut a text of the latest run in half; its id."""
    run_id = Store(store).runs()[0].id
    with closing(sqlite3.connect(store / "runs.db")) as connection, connection:
        named = "id" if table == "runs" else "run_id"
        connection.execute(
            f"update {table} set {column} = substr({column}, 1, length({column}) / 2) "
            f"where {named} = ?",
            (run_id,),
        )
    return run_id


@pytest.mark.parametrize("column", ["plan", "notes"])
def test_a_run_that_was_torn_hides_no_other(kept, greenroom, column):
    run_id = tear(kept, column, "runs")
    told = greenroom("runs", "list", "--store", kept)
    assert told.exit_code == 0, told.output
    assert run_id in told.output
    assert len(Store(kept).runs()) == 2


@pytest.mark.parametrize("column", ["verdict", "ledger"])
def test_a_trial_that_was_torn_is_named(kept, greenroom, column):
    run_id = tear(kept, column)
    told = greenroom("runs", "show", run_id, "--store", kept, "-f", "html=page.html")
    assert told.exit_code == 3, told.output
    assert "Traceback" not in told.output
    assert f"run {run_id!r}, case 'case 0'" in told.output


@pytest.fixture
def read_only(kept, tmp_path) -> Iterator[Path]:
    """The same store where nothing can be written."""
    place = tmp_path / "read_only"
    if os.geteuid():
        shutil.copytree(kept, place)
        paths = [place, *place.rglob("*")]
        for path in paths:
            path.chmod(0o500 if path.is_dir() else 0o400)
        yield place
        for path in paths:
            path.chmod(0o700)
        return
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(place)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("nothing can be mounted here")
    shutil.copytree(kept, place, dirs_exist_ok=True)
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_store_that_cannot_be_written_can_be_read(read_only, greenroom):
    [latest, _] = Store(read_only).runs()
    for words in (("runs", "list"), ("runs", "show", latest.id)):
        told = greenroom(*words, "--store", read_only)
        assert told.exit_code == 0, told.output
        assert latest.id in told.output


@pytest.mark.parametrize(
    "words", [("eval", "run", "shop.py"), ("runs", "delete", "--older-than", "0h", "--yes")]
)
def test_a_store_that_cannot_be_written_says_so(read_only, greenroom, words):
    told = greenroom(*words, "--store", read_only)
    assert told.exit_code == 3, told.output
    assert any(text in told.output for text in ("read-only", "Read-only", "ermission"))
    assert "Traceback" not in told.output
