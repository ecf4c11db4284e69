"""A real tool acts at most once in a trial, whenever and however its run is killed and continued.

What is counted are the bodies that ran, by what each of them left on the disk.
"""

import random
import signal
from pathlib import Path

import pytest

from torture.acting import Acts

WAYS = {
    "plain": ("--max-concurrency", "8"),
    "workers": ("--workers", "2", "--max-concurrency", "8"),
    "trials": ("--trials", "3", "--max-concurrency", "8"),
    "sequential": ("--sequential",),
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def played(place: Path, way: str, sent: signal.Signals, seed: int, kills: int) -> None:
    acts = Acts(place, *WAYS[way])
    assert acts.killed(random.Random(seed), sent, kills)
    acts.finish()
    acts.check(trials=3 if way == "trials" else 1)


@pytest.mark.parametrize(
    "way, sent",
    [("plain", signal.SIGTERM), ("trials", signal.SIGINT), ("workers", signal.SIGKILL)],
)
def test_a_real_tool_acts_once_though_its_run_is_killed(
    tmp_path: Path, way: str, sent: signal.Signals
) -> None:
    played(tmp_path, way, sent, seed=1, kills=2)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sent", SIGNALS, ids=lambda sent: sent.name)
@pytest.mark.parametrize("way", WAYS)
def test_a_real_tool_acts_once_however_often_its_run_is_killed(
    tmp_path: Path, way: str, sent: signal.Signals, seed: int
) -> None:
    played(tmp_path, way, sent, seed, kills=6)
