"""`greenroom eval run` told to stop: what it shows, what it keeps, and how it goes on."""

import re
import shlex
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from apps.terminals import started, wait_for
from greenroom import Report
from greenroom.store import Store
from marks import heavy

BOTH = pytest.mark.parametrize("sent, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])

WAITING = """
import asyncio
from pathlib import Path

async def until_allowed(order):
    Path("waiting").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return "ok"

def counted(order):
    with Path("played").open("a") as file:
        file.write("x")
    return "ok"

cases = EvalSet("errands", [
    Case("good", says="Hi", mocks={"refund": counted}, metrics=[contains("money")]),
    Case("stuck", says="Hi", mocks={"refund": until_allowed}, metrics=[contains("money")]),
    Case("last", says="Hi", mocks={"refund": counted}, metrics=[contains("money")]),
])
"""

STUBBORN = """
import time
from pathlib import Path

def forever(order):
    Path("waiting").touch()
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            Path("asked").touch()

cases = EvalSet("errands", [
    Case("good", says="Hi", mocks={"refund": "ok"}, metrics=[contains("money")]),
    Case("busy", says="Hi", mocks={"refund": forever}, metrics=[contains("money")]),
])
"""

RUN = ("eval", "run", "shop.py", "--sequential", "--store", "runs")


def wait_for_rows(folder: Path, count: int, process: subprocess.Popen) -> None:
    """Come back when so many trials are in the store."""
    while sum(run.done for run in Store(folder / "runs").runs()) < count:
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.01)


def stopped(folder: Path, *words: str, sent: signal.Signals = signal.SIGINT, **env: str) -> str:
    """What a run says that is told to stop while its second case waits."""
    told: Any = {"cwd": folder, **env}
    with started(*RUN, *words, **told) as process:
        wait_for(folder / "waiting", process)
        process.send_signal(sent)
        return process.communicate()[0].decode()


def completed(*words: str, cwd: Path) -> tuple[int, str]:
    with started(*words, cwd=cwd) as process:
        shown = process.communicate()[0].decode()
    return process.returncode, shown


@BOTH
def test_the_first_signal_leaves_a_report_and_a_run_that_can_go_on(author, tmp_path, sent, code):
    author(WAITING)
    words = [*RUN, "-f", "json=partial.json"]
    with started(*words, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    assert "Traceback" not in shown
    report = Report.load(tmp_path / "partial.json")
    assert [result.status for result in report] == ["passed", "skipped", "skipped"]
    [run] = Store(tmp_path / "runs").runs()
    assert (run.id, run.status, run.done, run.total) == (report.id, "interrupted", 1, 3)


LIMITED = """
from pathlib import Path
from greenroom.models import ModelReply

class Slow:
    name = "acme:slow"

    async def respond(self, request, on_delta=None):
        with Path("asked").open("a") as file:
            file.write("x")
        return ModelReply("Your money is on its way.")

agent = Agent("clerk", model=Slow())
cases = EvalSet("errands", [Case(f"c{n}", says="Hi", metrics=[contains("money")]) for n in range(3)])
"""


@pytest.mark.parametrize("workers", [(), heavy(("--workers", "2"))], ids=["alone", "workers"])
def test_a_run_that_waits_for_its_rate_stops_and_goes_on(author, tmp_path, workers):
    author(LIMITED)
    limited = [*RUN[:3], *workers, "--store", "runs", "--rate", "acme:slow=1/min"]
    with started(*limited, cwd=tmp_path) as process:
        wait_for_rows(tmp_path, 1, process)
        process.send_signal(signal.SIGINT)
        shown = process.communicate(timeout=30)[0].decode()
    assert process.returncode == 130, shown
    printed = re.search(r"2 of 3 trials are left; to resume: greenroom (.*)", shown)
    assert printed, shown
    code, shown = completed(*shlex.split(printed[1].replace("1/min", "90/s")), cwd=tmp_path)
    assert code == 0, shown
    assert (tmp_path / "asked").read_text() == "xxx"


def test_the_command_it_prints_goes_on_and_plays_nothing_twice(author, tmp_path):
    author(WAITING)
    shown = stopped(tmp_path)
    printed = re.search(r"2 of 3 trials are left; to resume: greenroom (.*)", shown)
    assert printed, shown
    (tmp_path / "go").touch()
    code, shown = completed(*shlex.split(printed[1]), cwd=tmp_path)
    assert code == 0, shown
    assert "3 cases: 3 passed" in shown
    assert (tmp_path / "played").read_text() == "xx"
    [run] = Store(tmp_path / "runs").runs()
    assert (run.status, run.done) == ("finished", 3)


def test_resume_without_an_id_means_the_latest_unfinished_run(author, tmp_path):
    author(WAITING)
    stopped(tmp_path)
    (tmp_path / "go").touch()
    code, shown = completed(*RUN, "--resume", cwd=tmp_path)
    assert code == 0, shown
    assert [run.status for run in Store(tmp_path / "runs").runs()] == ["finished"]


def test_the_printed_command_says_all_that_was_said(author, tmp_path):
    author(WAITING)
    words = ["--trials", "2", "--budget", "5", "--unknown-prices", "allow", "--confident"]
    words += ["--fail-on", "skipped", "--min-pass-rate", "0.5", "-f", "json", "-o", "some where/"]
    shown = stopped(tmp_path, *words)
    printed = re.search(r"to resume: greenroom (.*)", shown)
    assert printed, shown
    said = shlex.split(printed[1])
    assert said[:3] == ["eval", "run", "shop.py"]
    pairs = list(pairwise(said))
    for pair in [
        ("--trials", "2"),
        ("--max-concurrency", "1"),
        ("--budget", "5"),
        ("--unknown-prices", "allow"),
        ("--fail-on", "skipped"),
        ("--min-pass-rate", "0.5"),
        ("--format", "json"),
        ("--output", "some where/"),
        ("--store", "runs"),
    ]:
        assert pair in pairs
    assert "--confident" in said


def test_without_a_store_there_is_a_report_and_nothing_to_go_on_with(author, tmp_path):
    author(WAITING)
    with started("eval", "run", "shop.py", "--sequential", "--no-store", cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(signal.SIGINT)
        shown = process.communicate()[0].decode()
    assert process.returncode == 130
    assert "3 cases: 1 passed, 2 skipped" in shown
    assert "to resume" not in shown


def test_json_is_json_when_interrupted_too(author, tmp_path):
    author(WAITING)
    with started(*RUN, "--json", "-f", "json=same.json", cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(signal.SIGTERM)
        shown = process.communicate()[0].decode()
    text, _, told = shown.rpartition("\n}\n")
    assert text.startswith("{")
    assert told.startswith("greenroom: terminated after 1 of 3 cases")


@BOTH
def test_the_second_signal_ends_even_code_that_catches_everything(author, tmp_path, sent, code):
    author(STUBBORN)
    with started(*RUN, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        wait_for_rows(tmp_path, 1, process)
        process.send_signal(sent)
        wait_for(tmp_path / "asked", process)
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    [run] = Store(tmp_path / "runs").runs()
    told, how = shown.splitlines()[-2:]
    assert told in ("greenroom: interrupted", "greenroom: terminated")
    assert how.startswith(f"run {run.id}; to resume: greenroom eval run shop.py")
    assert how.endswith(f"--resume {run.id}")
    assert (run.status, run.done) == ("interrupted", 1)


def test_nothing_is_printed_below_the_last_words(author, tmp_path):
    loud = STUBBORN.replace("import time", "import sys, time")
    author(loud.replace("time.sleep(0.01)", "print('still here', file=sys.stderr)"))
    with started(*RUN, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        wait_for_rows(tmp_path, 1, process)
        process.send_signal(signal.SIGINT)
        wait_for(tmp_path / "asked", process)
        process.send_signal(signal.SIGINT)
        shown = process.communicate()[0].decode()
    before, _, after = shown.rpartition("greenroom: interrupted\n")
    assert "still here" in before
    assert after.startswith("run ")
    assert len(after.splitlines()) == 1


LINGERING = """
import asyncio
import time
from pathlib import Path

def until_released():
    while not Path("released").exists():
        time.sleep(0.01)

async def forever(order):
    asyncio.get_running_loop().run_in_executor(None, until_released)
    Path("waiting").touch()
    await asyncio.sleep(3600)

cases = EvalSet("errands", [
    Case("stuck", says="Hi", mocks={"refund": forever}, metrics=[contains("money")]),
])
"""


@BOTH
def test_the_second_signal_names_a_run_that_is_stopped_and_not_shown_yet(
    author, tmp_path, sent, code
):
    author(LINGERING)
    with started(*RUN, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(sent)
        while [run.status for run in Store(tmp_path / "runs").runs()] != ["interrupted"]:
            assert process.poll() is None, process.stdout and process.stdout.read()
            time.sleep(0.01)
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    [run] = Store(tmp_path / "runs").runs()
    assert shown.rstrip().endswith(f"--resume {run.id}")


def test_a_run_that_does_not_stop_is_left_behind_with_its_report(author, tmp_path):
    author(STUBBORN)
    shown = stopped(tmp_path, "-f", "json=partial.json", sent=signal.SIGTERM)
    assert re.search(r"good +passed", shown), shown
    assert "terminated after 1 of 2 cases" in shown
    assert "to resume: greenroom eval run shop.py" in shown
    report = Report.load(tmp_path / "partial.json")
    assert [result.case_id for result in report] == ["good"]
    assert shown.rstrip().endswith(f"--resume {report.id}")


DEAFENING = """
import asyncio
import signal
from pathlib import Path

async def forever(order):
    signal.set_wakeup_fd(-1)
    Path("waiting").touch()
    await asyncio.sleep(3600)

cases = [Case("stuck", says="Hi", mocks={"refund": forever}, metrics=[contains("money")])]
"""


@BOTH
def test_signals_are_heard_though_an_event_loop_wants_them_for_itself(author, tmp_path, sent, code):
    author(DEAFENING)
    with started(*RUN, cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    assert "after 0 of 1 cases" in shown


BLOCKING_IMPORT = """
import time
from pathlib import Path

cases = [Case("a", says="Hi")]

def make():
    Path("waiting").touch()
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass
"""


@BOTH
def test_an_agent_that_cannot_even_be_made_is_not_waited_for(author, tmp_path, sent, code):
    author(BLOCKING_IMPORT)
    with started("eval", "run", "shop.py:make", "shop.py", cwd=tmp_path) as process:
        wait_for(tmp_path / "waiting", process)
        process.send_signal(sent)
        process.send_signal(sent)
        process.communicate()
    assert process.returncode == code
