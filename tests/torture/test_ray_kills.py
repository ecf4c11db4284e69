"""A real tool acts at most once, whatever is killed of a run on Ray, and every trial comes to a verdict."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.terminals import started
from ray_clusters import RayCluster, processes_beside, relays
from torture.acting import Acts

pytestmark = [pytest.mark.torture, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def acts(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Acts:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setenv("ACTS", str(tmp_path / "acts"))
    on = "ray?env=ACTS&patience=4&processes=1"
    return Acts(tmp_path, "--on", on, "--workers", "2", "--max-concurrency", "8")


@pytest.mark.parametrize(
    "sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda sent: sent.name
)
def test_a_real_tool_acts_once_though_the_driver_is_killed(
    acts: Acts, sent: signal.Signals
) -> None:
    assert acts.killed(random.Random(sent), sent, kills=2)
    acts.finish()
    acts.check()


def send(signal_: signal.Signals, pids: list[int]) -> list[int]:
    for pid in pids:
        try:
            os.kill(pid, signal_)
        except ProcessLookupError:
            continue
    return pids


def end_processes() -> None:
    send(signal.SIGKILL, processes_beside(relays()))


def end_relays() -> None:
    send(signal.SIGKILL, relays())


def stop_for_a_while() -> None:
    """A relay that stands still, counts as lost, and wakes up when others do its work."""
    stopped = send(signal.SIGSTOP, relays()[:1])
    time.sleep(6)
    send(signal.SIGCONT, stopped)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cut", [end_processes, end_relays, stop_for_a_while])
def test_a_real_tool_acts_once_though_what_runs_it_is_cut(
    acts: Acts, cut: Callable[[], None], seed: int
) -> None:
    choose = random.Random(seed)
    with started(*acts.words, cwd=acts.place) as process:
        for _ in range(2):
            acts.wait_for_more(choose.randint(2, 8), process)
            time.sleep(choose.uniform(0, 0.02))
            if process.poll() is None:
                cut()
        told = process.communicate()[0].decode()
    assert process.returncode in (0, 2), told
    acts.check(doubts=("InDoubt", "WorkerDied"))


def test_a_real_tool_acts_once_though_a_node_is_lost(acts: Acts, cluster: RayCluster) -> None:
    known = cluster.processes("raylet/raylet", str(cluster.folder))
    node = cluster.add_node()
    added = [p for p in cluster.processes("raylet/raylet", str(cluster.folder)) if p not in known]
    assert added
    words = [w.replace("processes=1", "processes=1&cpus=1") for w in acts.words]
    acts.words = ["3" if w == "2" else w for w in words]
    with started(*acts.words, cwd=acts.place) as process:
        acts.wait_for_more(6, process)
        send(signal.SIGKILL, added)
        told = process.communicate()[0].decode()
    node.terminate()
    assert process.returncode in (0, 2), told
    acts.check(doubts=("InDoubt", "WorkerDied"))
