"""What an agent's file starts while it is imported, such as a thread, acts in no command that only rehearses."""

import subprocess
import sys
from pathlib import Path

import pytest

from warm_python import WarmPython

AGENT = '''
import atexit
import threading
from greenroom import Agent, Case, Scripted, tool
from greenroom.metrics import contains

@tool
def refund(order: int) -> str:
    """Refund."""
    with open("acted", "a") as file:
        file.write(f"{order}\\n")
    return "ok"

def swallowing(order):
    try:
        refund(order=order)
    except Exception as error:
        with open("refused", "a") as file:
            file.write(f"{order} {error}\\n")

after_import = threading.Event()
tried = threading.Event()

def in_thread():
    after_import.wait()
    swallowing(98)
    tried.set()

atexit.register(swallowing, 99)
threading.Thread(target=in_thread, daemon=True).start()

def make_agent():
    after_import.set()
    tried.wait()
    return Agent("desk", model=Scripted("fine"))

cases = [Case("a", "hi", metrics=[contains("fine")])]
'''


def run(folder: Path, *words: str) -> tuple[int, str]:
    with (folder / "said").open("w") as said:
        command = [sys.executable, "-m", "greenroom", *words]
        code = WarmPython(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT).wait(600)
    return code, (folder / "said").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(AGENT)
    return tmp_path


@pytest.mark.parametrize("more", [(), ("--workers", "2"), ("--dry-run",)])
def test_an_evaluation_refuses_it_and_names_it_as_a_fault(
    more: tuple[str, ...], folder: Path
) -> None:
    code, said = run(folder, "eval", "run", "desk.py:make_agent()", "desk.py:cases", *more)
    assert not (folder / "acted").exists(), said
    refused = (folder / "refused").read_text()
    assert "98 what the import of desk.py started tried a call of the tool 'refund'" in refused
    assert "99 what the import of desk.py started tried a call of the tool 'refund'" in refused
    if "--dry-run" not in more:
        assert code == 2, said
        assert "fault of the run: what the import of desk.py started tried a call" in said


@pytest.mark.parametrize("words", [("agent", "check"), ("agent", "graph")])
def test_commands_that_only_look_at_an_agent_let_nothing_act(
    words: tuple[str, ...], folder: Path
) -> None:
    _, said = run(folder, *words, "desk.py:make_agent()")
    assert not (folder / "acted").exists(), said
    assert "99 what the import" in (folder / "refused").read_text()


def test_an_agent_that_acts_for_real_may_have_such_helpers(folder: Path) -> None:
    code, said = run(folder, "perform", "desk.py:make_agent()", "--message", "hello")
    assert code == 0, said
    assert (folder / "acted").read_text().split() == ["98", "99"]
    assert not (folder / "refused").exists()


PROGRAM = """
import desk
from greenroom import rehearse
report = rehearse("desk.py:make_agent()", "desk.py:cases", store=False)
print(report.results[0].status, report.faults)
desk.swallowing(1)
"""


def test_a_program_of_the_author_s_may_act_when_its_rehearsal_is_over(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)
    with (folder / "said").open("w") as said:
        WarmPython(
            [sys.executable, "program.py"], cwd=folder, stdout=said, stderr=subprocess.STDOUT
        ).wait(600)
    acted = (folder / "acted").read_text().split()
    assert acted[-2:] == ["1", "99"], (folder / "said").read_text()
