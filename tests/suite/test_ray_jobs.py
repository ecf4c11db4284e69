"""Runs that are submitted to a Ray cluster as jobs, and packages that its nodes install: `make test-all`."""

import json
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from zipfile import ZipFile

import pytest

from greenroom import Case, Expect, evaluate
from greenroom.ledger import response
from greenroom.store import Store
from greenroom.suite import Ray
from ray_clusters import RayCluster, free_port, new_cluster

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]

SHOP = """
from greenroom import step


def asks(ctx):
    from paint_for_tests import COLOUR

    return COLOUR


painter = step(asks)
place = step(lambda: __file__, name="place")
"""


@pytest.fixture(scope="module")
def dashboard() -> Generator[str]:
    """Where a cluster of its own takes jobs."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'greenroom[ray]'")
    pytest.importorskip("aiohttp", reason="jobs need Ray's dashboard: pip install 'ray[default]'")
    cluster, port = new_cluster(), free_port()
    try:
        cluster.start_head(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        cluster.stop()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "shop.py").write_text(SHOP)
    (project / "pyproject.toml").touch()
    monkeypatch.chdir(project)
    return project


def test_a_run_is_submitted_as_a_job_and_uses_the_code_that_came_with_it(
    dashboard: str, shop: Path, tmp_path: Path
) -> None:
    cases = [{"id": f"c{n}", "says": "Hi", "expect": {"contains": "shop.py"}} for n in range(4)]
    (shop / "cases.json").write_text(json.dumps({"version": 1, "id": "jobs", "cases": cases}))
    job = [sys.executable, "-m", "ray.scripts.scripts", "job", "submit", "--address", dashboard]
    run = [sys.executable, "-m", "greenroom", "eval", "run", "shop.py:place", "cases.json"]
    where = ["--on", "ray", "--workers", "1", "--store", str(tmp_path / "runs")]
    done = submitted_once_ready([*job, "--working-dir", ".", "--", *run, *where])
    assert done.returncode == 0, done.stdout + done.stderr
    store = Store(tmp_path / "runs")
    [submitted] = store.runs()
    assert (submitted.status, submitted.counts) == ("finished", {"passed": 4})
    for result in store.report(submitted.id):
        answer = response(result.ledger) or ""
        assert answer.endswith("shop.py")
        assert not answer.startswith(str(shop)), "the job ran the files of this folder"


def submitted_once_ready(command: list[str]) -> "subprocess.CompletedProcess[str]":
    """A job as it ended. A node that has just started refuses jobs until its agent is there."""
    until = time.monotonic() + 120
    while True:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if "No available agent" not in done.stderr or time.monotonic() > until:
            return done
        time.sleep(1)


async def test_packages_are_installed_on_the_nodes_for_this_run(
    cluster: RayCluster, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        "virtualenv", reason="Ray(pip=) needs virtualenv: pip install 'ray[default]'"
    )
    monkeypatch.chdir(shop)
    asked = [Case("a", "Which colour?", expect=Expect(contains=["mauve"]))]
    on = Ray(pip=[str(wheel(tmp_path))])
    report = await evaluate("shop.py:painter", asked, on=on, workers=1, store=False)
    assert report.passed, str(report)


def wheel(folder: Path) -> Path:
    """A package that no index has, ready to be installed without a network."""
    path, about = folder / "paint_for_tests-1.0-py3-none-any.whl", "paint_for_tests-1.0.dist-info"
    with ZipFile(path, "w") as file:
        file.writestr("paint_for_tests.py", "COLOUR = 'mauve'\n")
        file.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: paint-for-tests\nVersion: 1.0\n"
        )
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")
    return path
