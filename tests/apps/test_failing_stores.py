"""`greenroom eval run` when nothing can be written any more: it stops, says how to go on, and acts no more."""

import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from apps.terminals import WORDS, started
from store.test_disks import small_disk
from torture.acting import Acts

__all__ = ["small_disk"]

FAILING = """
import shutil

def spoil():
    if (HERE / "spare").exists() or len((HERE / "acts").read_text().splitlines()) < 20:
        return
    (HERE / "spare").touch()
    {how}

def act(line, real=act):
    told = real(line)
    spoil()
    return told
"""
FULL = """
    with open(HERE / "disk" / "filler", "wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                break
"""
BOTH = pytest.mark.parametrize("words", [(), ("--workers", "2")], ids=["plain", "workers"])


def stopped(acts: Acts) -> tuple[str, str]:
    """The command that goes on, and all else that a run shows which has to stop for its store."""
    with started(*acts.words, cwd=acts.place) as process:
        shown = process.communicate()[0].decode()
    assert process.returncode == 3, shown
    assert "Traceback" not in shown
    assert "the run has stopped, because not everything could be recorded" in shown
    printed = re.search(r"to resume: greenroom (.*)", shown)
    assert printed, shown
    return printed[1], shown


@BOTH
def test_a_full_disk_stops_the_run_and_begins_no_tool(
    small_disk: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    acts = Acts(tmp_path, "--max-concurrency", "4", *words, more=FAILING.format(how=FULL))
    acts.words[acts.words.index("runs")] = "disk/store"
    command, shown = stopped(acts)
    assert "not finished: " in shown
    assert "not run: " in shown
    before = len(acts.lines)
    assert before < 40, "tools went on acting"
    (small_disk / "filler").unlink()
    with started(*shlex.split(command), cwd=tmp_path) as process:
        shown = process.communicate()[0].decode()
    assert process.returncode in (0, 2), shown
    assert max(Counter(acts.lines).values()) == 1
    acts.check(place="disk/store")


@BOTH
def test_a_store_that_is_deleted_under_way_stops_the_run(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    how = 'shutil.rmtree(HERE / "runs")'
    acts = Acts(tmp_path, "--max-concurrency", "4", *words, more=FAILING.format(how=how))
    assert "--resume" in stopped(acts)[0]
    assert len(acts.lines) < 40, "tools went on acting"
    assert max(Counter(acts.lines).values()) == 1


def test_files_that_may_not_grow_stop_the_run(tmp_path: Path) -> None:
    acts = Acts(tmp_path, "--max-concurrency", "4")
    told = subprocess.run(
        ["bash", "-c", f"ulimit -f 300; exec {shlex.join([*WORDS, *acts.words])}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 3, told.stderr
