"""A real Ray cluster for tests: one node on this machine, on loopback, with a folder of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest

_STARTING = 120.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclass
class RayCluster:
    """Nodes that were started here, and are ended by their pids."""

    folder: Path
    port: int
    client_port: int
    nodes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, *words: str, cpus: int = 2) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
        common = [
            *(
                "--node-ip-address=127.0.0.1",
                f"--num-cpus={cpus}",
                "--object-store-memory=80000000",
            ),
            "--disable-usage-stats",
        ]
        log = (self.folder / f"node-{len(self.nodes)}.log").open("wb")
        node = subprocess.Popen(
            [*command, *words, *common],
            stdout=log,
            stderr=log,
            cwd=self.folder,
            start_new_session=True,
        )
        self.nodes.append(node)
        return node

    def start_head(self, dashboard_port: int | None = None) -> None:
        dashboard = ["--include-dashboard=false"]
        if dashboard_port is not None:  # which takes the jobs that are submitted
            dashboard = ["--include-dashboard=true", "--dashboard-host=127.0.0.1"]
            dashboard.append(f"--dashboard-port={dashboard_port}")
            # Another cluster of this machine has the usual one.
            dashboard.append(f"--dashboard-agent-listen-port={free_port()}")
        self.start(
            "--head",
            f"--port={self.port}",
            f"--ray-client-server-port={self.client_port}",
            *dashboard,
            f"--temp-dir={self.folder / 't'}",
        )
        self.wait_for(1)

    def add_node(self) -> "subprocess.Popen[bytes]":
        node = self.start(f"--address={self.address}", cpus=1)
        self.wait_for(2)
        return node

    def wait_for(self, count: int) -> None:
        until = time.monotonic() + _STARTING
        asking = "import ray,sys; ray.init(sys.argv[1], log_to_driver=False); print(sum(n['Alive'] for n in ray.nodes()))"
        while time.monotonic() < until:
            try:
                told = subprocess.run(
                    [sys.executable, "-c", asking, self.address],
                    capture_output=True, text=True, timeout=60, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                continue
            if told.stdout.strip().isdecimal() and int(told.stdout) >= count:
                return
            time.sleep(1)
        pytest.skip(f"Ray did not start here within {_STARTING:g} s: {self.logs()[-500:]}")

    def logs(self) -> str:
        return "".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))

    def processes(self, *words: str) -> list[int]:
        """The pids of this cluster's processes whose command has all these words."""
        found: list[int] = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if all(word in command for word in words):
                found.append(int(path.parent.name))
        return found

    def stop(self) -> None:
        for node in reversed(self.nodes):
            node.terminate()
        for node in self.nodes:
            try:
                node.wait(20)
            except subprocess.TimeoutExpired:
                node.kill()
        for pid in self.processes(str(self.folder)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        rmtree(self.folder, ignore_errors=True)


def new_cluster() -> RayCluster:
    """A cluster that is not started yet."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    # Ray's sockets need a short path.
    return RayCluster(Path(mkdtemp(prefix="ray-", dir="/tmp")), free_port(), free_port())


def relays() -> list[int]:
    """The pids of relays on this machine: Ray gives its workers the name of their actor."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::Relay"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture(scope="session")
def started_cluster() -> Generator[RayCluster]:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'greenroom[ray]'")
    if sys.platform != "linux":
        pytest.skip("the processes of a node are looked for in /proc")
    cluster = new_cluster()
    try:
        cluster.start_head()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(
    started_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> RayCluster:
    """The cluster, as `on="ray"` finds it from a project's folder."""
    monkeypatch.setenv("RAY_ADDRESS", started_cluster.address)
    monkeypatch.chdir(tmp_path)
    return started_cluster


def processes_beside(pids: list[int]) -> list[int]:
    """The worker processes that these relays have started."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields: list[Any] = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) in pids:
            found.append(int(path.parent.name))
    return found
