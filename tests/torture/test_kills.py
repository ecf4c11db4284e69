"""A process may be killed at any moment: what was finished stays, and nothing is paid for twice.

Each process plays the same evaluation on the same store, goes on with what the one before had done,
and is killed, until one comes to the end.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from greenroom.store import Store
from greenroom.store.failpoints import FAILPOINTS
from store.timeless import timeless
from torture.answering import Answering, Question
from warm_python import WarmPython

PLAYER = Path(__file__).with_name("player.py")


@pytest.fixture
def answering() -> Iterator[Answering]:
    server = Answering()
    yield server
    server.close()


class Play:
    """One evaluation, played by as many processes as it takes."""

    def __init__(self, place: Path, answering: Answering) -> None:
        self.place = place
        self.answering = answering
        self.processes = 0
        self.acknowledged: list[set[str]] = []
        """The cases that each process said were finished."""

    def start(self, failpoint: str = "") -> "subprocess.Popen[str]":
        self.processes += 1
        command = [sys.executable, str(PLAYER), str(self.place / "store"), str(self._target)]
        return WarmPython(
            [*command, str(self.answering.port), str(self.processes)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GREENROOM_FAILPOINT": failpoint},
        )

    @property
    def _target(self) -> Path:
        return self.place / "report.json"

    def end(self, process: "subprocess.Popen[str]") -> int:
        """How a process ended; one that broke in its own way is a failure of the test."""
        told, complaint = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL, -signal.SIGINT), complaint
        # A line that was cut acknowledges nothing.
        self.acknowledged.append(set(told.split("\n")[:-1]))
        return process.returncode

    def crash_at(self, failpoint: str) -> bool:
        """Whether a process came by this failpoint, and died there."""
        return self.end(self.start(failpoint)) == -signal.SIGKILL

    def kill_after(self, calls: int, pause: float, *signals: signal.Signals) -> bool:
        """Whether a process was killed a moment after so many questions, or came to the end."""
        reached = threading.Event()
        self.answering.ring_after(calls, reached.set)
        process = self.start()
        while process.poll() is None and not reached.wait(0.01):
            pass
        for sent in signals or (signal.SIGKILL,):
            time.sleep(pause)
            process.send_signal(sent)
        return self.end(process) != 0

    def finish(self) -> None:
        assert self.end(self.start()) == 0

    @property
    def report(self) -> Any:
        return json.loads(self._target.read_text(encoding="utf-8"))

    def in_flight(self) -> Counter[Question]:
        """What may have been under way when each process died: the last question of each trial.

        The two samples of a judge are asked together.
        """
        last: dict[tuple[int, str], list[Question]] = {}
        for process, question in self.answering.log:
            before = last.get((process, question[0]), [])
            together = [q for q in before if q == question and q[1] not in _IN_TURN]
            last[process, question[0]] = [*together, question][-2:]
        return Counter(q for questions in last.values() for q in questions)


_IN_TURN = ("clerk", "patient", "helper")


def check(play: Play, whole: Any, expected: Counter[Question]) -> None:
    """Nothing lost, nothing repeated that was finished, and the same report in the end."""
    assert play.report["report"] == whole
    store = Store(play.place / "store")
    [run] = store.runs()
    assert (run.id, run.status, run.done) == (play.report["id"], "finished", len(whole["results"]))
    assert timeless(store.report(run.id)) == whole
    assert not list((play.place / "store" / "journals").glob("*/*"))

    finished: set[str] = set()
    for number, told in enumerate(play.acknowledged, 1):
        assert not finished & told, "a finished trial was played again"
        asked = {case for process, (case, *_) in play.answering.log if process == number}
        assert not finished & asked, "a finished trial asked something again"
        finished |= told
    repeated = play.answering.counted() - expected
    assert not repeated - play.in_flight(), "an answer that was there was asked for again"
    assert not expected - play.answering.counted()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Counter[Question]]:
    """The report of a run that nobody killed, and what it asked."""
    server = Answering()
    play = Play(tmp_path_factory.mktemp("whole"), server)
    play.finish()
    server.close()
    whole = play.report["report"]
    assert [result["status"] for result in whole["results"]] == ["passed"] * 6
    assert whole["notes"] == []
    return whole, server.counted()


def kill_at_random(play: Play, choose: random.Random, kills: int) -> int:
    """Kill processes at random moments until one comes to the end, at most so many."""
    for number in range(kills):
        if not play.kill_after(choose.randint(1, 14), choose.uniform(0, 0.006)):
            return number
    return kills


@pytest.mark.heavy
def test_a_run_that_is_killed_again_and_again_comes_to_the_same_end(
    tmp_path: Path, answering: Answering, unbroken: Any
) -> None:
    play = Play(tmp_path, answering)
    assert kill_at_random(play, random.Random(1), 8) > 4
    play.finish()
    check(play, *unbroken)


@pytest.mark.parametrize(
    "signals",
    [
        (signal.SIGINT,),
        pytest.param((signal.SIGINT, signal.SIGINT), marks=pytest.mark.torture),
        pytest.param((signal.SIGINT, signal.SIGKILL), marks=pytest.mark.torture),
    ],
    ids=repr,
)
def test_a_run_that_is_interrupted_goes_on(
    tmp_path: Path, answering: Answering, unbroken: Any, signals: tuple[signal.Signals, ...]
) -> None:
    play, choose = Play(tmp_path, answering), random.Random(3)
    for calls in (5, 14):
        assert play.kill_after(calls, choose.uniform(0, 0.006), *signals)
    play.finish()
    check(play, *unbroken)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_a_run_survives_kills_at_random_moments(
    tmp_path: Path, answering: Answering, unbroken: Any, seed: int
) -> None:
    """Ten runs, each killed a dozen times or so: more than a hundred kills."""
    play = Play(tmp_path, answering)
    kill_at_random(play, random.Random(seed), 40)
    play.finish()
    check(play, *unbroken)


def test_a_run_that_crashes_wherever_it_hurts_comes_to_the_same_end(
    tmp_path: Path, answering: Answering, unbroken: Any
) -> None:
    play = Play(tmp_path, answering)
    for failpoint in FAILPOINTS:
        assert play.crash_at(failpoint), f"nobody comes by {failpoint!r} any more"
    play.finish()
    check(play, *unbroken)


@pytest.mark.torture
@pytest.mark.parametrize("failpoint", [name for name in FAILPOINTS if name != "resume.read"])
def test_a_first_process_that_crashes_where_it_hurts_loses_nothing(
    tmp_path: Path, answering: Answering, unbroken: Any, failpoint: str
) -> None:
    play = Play(tmp_path, answering)
    assert play.crash_at(failpoint), "nobody comes by this failpoint any more"
    play.finish()
    check(play, *unbroken)


@pytest.mark.torture
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_run_that_crashes_while_it_goes_on_comes_to_the_same_end(
    tmp_path: Path, answering: Answering, unbroken: Any, failpoint: str
) -> None:
    play, choose = Play(tmp_path, answering), random.Random(failpoint)
    assert play.crash_at("trial.played")
    for _ in range(2):
        # Some failpoints are passed by once in a process, some often; both shall be hit.
        play.crash_at(f"{failpoint}:{choose.choice((1, 1, 2, 3, 8))}")
        play.kill_after(choose.randint(1, 6), choose.uniform(0, 0.004))
    play.finish()
    check(play, *unbroken)
