"""`greenroom eval watch`: plays again in a fresh process whenever something that matters changes."""

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.terminals import started, wait_for
from greenroom.apps.cli.request import Order
from greenroom.apps.cli.watch import places_of

pytest.importorskip("watchfiles")

CASES = """
version: 1
cases:
- {id: first, says: Hi, mocks: {refund: {value: ok}}, expect: {contains: money}}
- {id: second, says: Hi, mocks: {refund: {value: ok}}, expect: {contains: money}}
"""
WAITS = """
del agent

async def get_agent_async():
    import asyncio
    from pathlib import Path
    Path("begun").touch()
    await asyncio.sleep(9999)
"""
READY = "watching; Ctrl-C ends it"


class Watched:
    """A watch under way, and everything it has said so far."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.said = ""

    def until(self, text: str) -> str:
        """Wait for a text, and return what was said since the last wait."""
        begin = len(self.said)
        while text not in self.said[begin:]:
            assert self.process.stdout
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, self.said
            self.said += piece.decode()
        return self.said[begin:]

    def interrupted(self, sent: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(sent)
        self.said += self.process.communicate()[0].decode()
        return self.process.returncode


@contextmanager
def watching(*words: str, cwd: Path) -> Generator[Watched]:
    with started("eval", "watch", *words, "-i", "0.05", cwd=cwd) as process:
        try:
            yield Watched(process)
        finally:
            process.kill()


@pytest.fixture
def shop(author, tmp_path) -> Path:
    author("")
    author(CASES, "cases.yaml", bare=True)
    return tmp_path / "shop.py"


@pytest.mark.slow
def test_a_changed_agent_is_played_again_and_the_last_verdict_stays(shop, tmp_path):
    with watching("shop.py", "cases.yaml", cwd=tmp_path) as watch:
        assert "2 cases: 2 passed" in watch.until(READY)
        shop.write_text(shop.read_text().replace("Your money is", "It is"))
        again = watch.until(READY)
        assert again.index("last time: 2 cases: 2 passed") < again.index("changed: shop.py")
        assert "2 cases: 0 passed, 2 failed" in again
        assert watch.interrupted() == 130
        assert "interrupted; 2 cases: 0 passed, 2 failed" in watch.said
        assert "Traceback" not in watch.said


@pytest.mark.slow
def test_a_watch_writes_no_runs(shop, tmp_path, monkeypatch):
    monkeypatch.delenv("GREENROOM_STORE")
    with watching("shop.py", "cases.yaml", cwd=tmp_path) as watch:
        assert "2 cases: 2 passed" in watch.until(READY)
        assert watch.interrupted() == 130
    assert not (tmp_path / ".greenroom" / "runs.db").exists()


@pytest.mark.slow
def test_a_changed_case_is_played_first(shop, tmp_path):
    with watching("shop.py", "cases.yaml", cwd=tmp_path) as watch:
        assert watch.until(READY).index("first ") < watch.said.index("second ")
        cases = tmp_path / "cases.yaml"
        cases.write_text(CASES.replace("id: second, says: Hi", "id: second, says: Hello"))
        again = watch.until(READY)
        assert again.index("second ") < again.index("first ")


@pytest.mark.slow
def test_what_cannot_be_played_is_said_and_watching_goes_on(shop, tmp_path):
    with watching("shop.py", "cases.yaml", cwd=tmp_path) as watch:
        watch.until(READY)
        before = shop.read_text()
        shop.write_text("def agent(:")
        assert "SyntaxError" in watch.until(READY)
        shop.write_text(before)
        again = watch.until(READY)
        assert "last time: not run (exit code 3)" in again
        assert "2 cases: 2 passed" in again
        assert watch.interrupted(signal.SIGTERM) == 143


@pytest.mark.slow
def test_a_run_that_is_out_of_date_is_broken_off(shop, tmp_path):
    with watching("shop.py", "cases.yaml", cwd=tmp_path) as watch:
        watch.until(READY)
        before = shop.read_text()
        shop.write_text(before + WAITS)
        watch.until("changed: shop.py")
        wait_for(tmp_path / "begun", watch.process)
        shop.write_text(before)
        assert "2 cases: 2 passed" in watch.until(READY)


def test_only_files_that_may_change_a_verdict_matter(shop, tmp_path):
    (tmp_path / "evals").mkdir()
    (tmp_path / "judges.json").write_text("{}")
    places = places_of(Order(agent="shop.py", cases="evals", config="judges.json"))
    for name, matters in {
        "shop.py": True,
        "prompts/clerk.md": True,
        "evals/one.json": True,
        "evals/deep/two.yaml": True,
        "judges.json": True,
        "report.json": False,
        ".greenroom/judges/ab/cd.json": False,
        "evals/.cache/one.json": False,
        "__pycache__/shop.pyc": False,
        "node_modules/x/y.md": False,
    }.items():
        assert places.matter(tmp_path.resolve() / name) is matters, name


def test_without_cases_the_eval_sets_beside_the_agent_matter(shop, tmp_path):
    places = places_of(Order(agent="shop.py"))
    assert places.matter(tmp_path.resolve() / "shop.test.json")
    assert not places.matter(tmp_path.resolve() / "report.json")


def test_an_agent_that_is_not_there_cannot_be_watched(shop, greenroom):
    result = greenroom("eval", "watch", "nowhere.py")
    assert result.exit_code == 3
    assert "there is no file 'nowhere.py'" in result.stderr


@pytest.mark.slow
def test_whoever_wants_to_be_told_is_told_by_the_desktop(shop, tmp_path, monkeypatch):
    desktop = tmp_path / "bin" / "notify-send"
    desktop.parent.mkdir()
    desktop.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > told.part && mv told.part told\n')
    desktop.chmod(0o755)
    monkeypatch.setenv("PATH", f"{desktop.parent}:{os.environ['PATH']}")
    with watching("shop.py", "cases.yaml", "--notify", cwd=tmp_path) as watch:
        watch.until(READY)
        wait_for(tmp_path / "told", watch.process)
    assert "greenroom: 2 cases: 2 passed" in (tmp_path / "told").read_text()
