"""A real tool acts at most once in a trial, whenever and however its run is killed and continued.

What is counted are the bodies that ran, by what each of them left on the disk.
"""

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from apps.terminals import started
from greenroom.store import Store
from marks import heavy
from torture.acting import Acts, kill_workers
from torture.frameworks import FRAMEWORKS, PYDANTIC_AI, written

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
    [
        ("plain", signal.SIGTERM),
        pytest.param("trials", signal.SIGINT, marks=pytest.mark.heavy),
        ("workers", signal.SIGKILL),
    ],
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


# Trials that are played again because they broke

BREAKING = """
def ending(request):
    if not (HERE / "mended").exists():
        raise RuntimeError("not yet")
    return "All is paid."

AGENT._answers = (*AGENT._answers[:-1], ending)
"""


@pytest.mark.parametrize(
    "sent, kills",
    [
        (signal.SIGTERM, 2),
        *(pytest.param(sent, 6, marks=pytest.mark.torture) for sent in SIGNALS),
    ],
)
def test_a_real_tool_acts_once_in_each_attempt(
    tmp_path: Path, sent: signal.Signals, kills: int
) -> None:
    acts = Acts(tmp_path, "--max-concurrency", "8", more=BREAKING)
    with started(*acts.words, cwd=tmp_path) as process:
        told = process.communicate()[0].decode()
    assert process.returncode == 2, told
    first = Counter(acts.lines)
    assert set(first.values()) == {1}
    (tmp_path / "mended").touch()
    choose = random.Random(kills)
    for _ in range(kills):
        words = ("--resume", acts.run_id, "--retry-errors")
        acts.kill_after(choose.randint(3, 12), choose.uniform(0, 0.02), sent, *words)
    with started(*acts.words, "--resume", acts.run_id, "--retry-errors", cwd=tmp_path) as process:
        told = process.communicate()[0].decode()
    assert process.returncode in (0, 2), told
    second = Counter(acts.lines) - first
    assert second
    assert set(second.values()) == {1}
    acts.check(most=2, earlier=first)


# Worker processes


@pytest.mark.parametrize(
    "kills", [heavy(1), pytest.param(6, marks=pytest.mark.torture)], ids=["once", "often"]
)
def test_a_real_tool_acts_once_though_worker_processes_are_killed(
    tmp_path: Path, kills: int
) -> None:
    acts, choose = Acts(tmp_path, *WAYS["workers"]), random.Random(kills)
    with started(*acts.words, cwd=tmp_path) as process:
        for _ in range(kills):
            acts.wait_for_more(choose.randint(2, 8), process)
            time.sleep(choose.uniform(0, 0.02))
            kill_workers(process)
        told = process.communicate()[0].decode()
    assert process.returncode in (0, 2), told
    acts.check(doubts=("InDoubt", "WorkerDied"))


# Agents of a framework, and plain functions around them


@pytest.mark.parametrize("agent", [heavy("inner"), heavy("around"), "around_blocking"])
@pytest.mark.parametrize(
    "sent, kills",
    [
        (signal.SIGTERM, 2),
        *(pytest.param(sent, 6, marks=pytest.mark.torture) for sent in SIGNALS),
    ],
)
def test_a_real_tool_of_a_framework_acts_once(
    tmp_path: Path, agent: str, sent: signal.Signals, kills: int
) -> None:
    pytest.importorskip("pydantic_ai")
    acts = Acts(tmp_path, *WAYS["plain"], more=written(PYDANTIC_AI, agent))
    assert acts.killed(random.Random(kills), sent, kills)
    acts.finish()
    acts.check()


@pytest.mark.torture
@pytest.mark.parametrize("agent", ["inner", "around"])
@pytest.mark.parametrize("way", ["plain", "workers", "trials"])
@pytest.mark.parametrize("sent", SIGNALS, ids=lambda sent: sent.name)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_real_tool_of_any_framework_acts_once(
    tmp_path: Path, framework: str, sent: signal.Signals, way: str, agent: str
) -> None:
    module, code = FRAMEWORKS[framework]
    pytest.importorskip(module)
    acts = Acts(tmp_path, *WAYS[way], more=written(code, agent))
    assert acts.killed(random.Random(7), sent, 3)
    acts.finish()
    acts.check(trials=3 if way == "trials" else 1)


# Trials that are played again, to see whether a case that flipped has changed


FLIPPED = """
def ending(request):
    return "All is lost." if (HERE / "flipped").exists() else "All is paid."

AGENT._answers = (*AGENT._answers[:-1], ending)
"""


@pytest.mark.torture
@pytest.mark.parametrize("kills", [2, 5])
@pytest.mark.parametrize("sent", SIGNALS, ids=lambda sent: sent.name)
def test_a_real_tool_acts_once_in_each_trial_that_confirms_a_flip(
    tmp_path: Path, sent: signal.Signals, kills: int
) -> None:
    acts = Acts(tmp_path, "--max-concurrency", "8", more=FLIPPED, count=3)
    with started(*acts.words, "-f", "json=before.json", cwd=tmp_path) as process:
        told = process.communicate()[0].decode()
    assert process.returncode == 0, told
    (tmp_path / "acts").unlink()
    (tmp_path / "flipped").touch()
    acts.words = [*acts.words[:3], "--store", "again", *acts.words[5:]]
    acts.words += ["--baseline", "before.json", "--confirm", "4"]
    acts.folder = "again"
    choose = random.Random(kills)
    # Beyond the first round: what is cut there is in doubt, and no flip to be confirmed.
    assert acts.kill_after(3 * 5 + choose.randint(1, 9), choose.uniform(0, 0.02), sent)
    acts.killed(choose, sent, kills - 1)
    acts.finish(codes=(0, 1, 2))
    store = Store(tmp_path / "again")
    twice = Counter(acts.lines) - acts.recorded(store)
    assert not twice, f"done more often than recorded: {twice}"
    # Each case is played once, and no more often again than was asked for.
    assert 1 < max(Counter(acts.lines).values()) <= 1 + 4
