"""Ray is no way out of the fence. With a real one: `make test-all`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, evaluate
from greenroom.metrics import called

pytestmark = pytest.mark.heavy
ray: Any = pytest.importorskip("ray", reason="ray is not installed here; scripts/ray.sh has one")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray.init(
        address="local", num_cpus=1, include_dashboard=False, _node_ip_address="127.0.0.1",
        log_to_driver=False,
    )  # fmt: skip
    yield
    ray.shutdown()


def act(file: str) -> str:
    Path(file).touch()
    return "acted"


class Actor:
    def act(self, file: str) -> str:
        return act(file)


def by_function(file: str) -> Any:
    return ray.get(ray.remote(act).remote(file), timeout=60)


def by_options(file: str) -> Any:
    return ray.get(ray.remote(act).options(num_cpus=0).remote(file), timeout=60)


def by_actor(file: str) -> Any:
    actor = ray.remote(Actor).remote()
    return ray.get(actor.act.remote(file), timeout=60)


def by_older_actor(file: str) -> Any:
    return ray.get(OLDER[0].act.remote(file), timeout=60)


OLDER: list[Any] = []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", [by_function, by_options, by_actor, by_older_actor])
async def test_a_case_hands_no_work_to_ray(way: Callable[[str], Any], tmp_path: Path) -> None:
    if way is by_older_actor and not OLDER:
        OLDER.append(ray.remote(Actor).options(num_cpus=0).remote())
    canary = tmp_path / "acted"
    assert way(str(canary)) == "acted"
    assert canary.exists()
    canary.unlink()

    def agent(message: str) -> str:
        try:
            return way(str(canary))
        except Exception:
            return "fine"

    report = await evaluate(agent, Case("c", "Hi", metrics=[called("act")]))
    assert report.results[0].error is not None
    assert report.results[0].error.type == "FenceBreach"
    assert "ray.remote" in report.results[0].error.message
    assert not canary.exists()


@pytest.mark.filterwarnings("ignore")
async def test_after_the_rehearsal_ray_works_as_before(tmp_path: Path) -> None:
    await evaluate(lambda message: "hi", Case("c", "Hi"))
    assert by_function(str(tmp_path / "acted")) == "acted"
