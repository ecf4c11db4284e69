"""Files that people name, written whole."""

import os
import stat
from pathlib import Path

import pytest

from greenroom import Case, EvalSet, Ledger
from greenroom.cases.files.save import write_evalset
from greenroom.ledger.events import Noted
from greenroom.results.files import write_whole


def evalset(target: Path) -> None:
    write_evalset(EvalSet("s", [Case("a", "Hi")]), target)


def ledger(target: Path) -> None:
    Ledger([Noted(name="a")]).save(target)


def report(target: Path) -> None:
    write_whole("{}", target)


WRITERS = pytest.mark.parametrize("write", [evalset, ledger, report])


@WRITERS
def test_a_pipe_is_written_into_and_never_replaced(write, tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.read(reading, 1_000_000)
    os.close(reading)


@WRITERS
def test_a_link_stays_a_link_and_its_file_is_replaced(write, tmp_path):
    file = tmp_path / "file.json"
    file.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(file)
    write(link)
    assert link.is_symlink()
    assert file.read_text() != "old"


@WRITERS
def test_a_file_that_only_its_owner_may_read_stays_so(write, tmp_path):
    file = tmp_path / "file.json"
    file.touch(0o600)
    write(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@WRITERS
def test_a_long_name_leaves_room_for_the_draft(write, tmp_path):
    file = tmp_path / f"{'x' * 245}.json"
    write(file)
    assert [place.name for place in tmp_path.iterdir()] == [file.name]
