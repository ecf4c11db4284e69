"""Ray is no way out of the fence. With a real one: `make test-all`."""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, evaluate
from greenroom.errors import FenceBreach
from greenroom.metrics import called
from greenroom.simulation.fence import enclose, opening_for

pytestmark = pytest.mark.heavy
ray: Any = pytest.importorskip("ray", reason="ray is not installed here; scripts/ray.sh has one")
get_imported_before = ray.get


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


def by_call_of_an_older_actor(file: str) -> Any:
    return ray.get(OLDER[0].__ray_call__.remote(lambda self: act(file)), timeout=60)


def by_graph(file: str) -> Any:
    return ray.get(ray.remote(act).bind(file).execute(), timeout=60)


def by_pool(file: str) -> Any:
    pools: Any = import_module("ray.util.multiprocessing")
    with pools.Pool(1, ray_remote_args={"num_cpus": 0}) as pool:
        return pool.apply(act, (file,))


OLDER: list[Any] = []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "way",
    [
        by_function,
        by_options,
        by_actor,
        by_older_actor,
        by_call_of_an_older_actor,
        by_graph,
        by_pool,
    ],
)
async def test_a_case_hands_no_work_to_ray(way: Callable[[str], Any], tmp_path: Path) -> None:
    if "older" in way.__name__ and not OLDER:
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
def test_a_graph_compiled_earlier_runs_nothing_in_a_case(tmp_path: Path) -> None:
    dag: Any = import_module("ray.dag")
    actor = ray.remote(Actor).options(num_cpus=0).remote()
    with dag.InputNode() as file:
        graph = actor.act.bind(file).experimental_compile()
    canary = tmp_path / "acted"
    try:
        assert ray.get(graph.execute(str(canary)), timeout=60) == "acted"
        canary.unlink()
        with enclose("case") as scope, pytest.raises(FenceBreach, match=r"ray\.remote"):
            graph.execute(str(canary))
    finally:
        graph.teardown()
    assert scope.breach is not None
    assert not canary.exists()


def test_what_a_cluster_holds_is_neither_read_nor_changed_in_a_case() -> None:
    held, victim = ray.put("held"), ray.remote(Actor).options(num_cpus=0).remote()
    tries: dict[str, Callable[[], Any]] = {
        "ray.get": lambda: ray.get(held),
        "ray.put": lambda: ray.put("more"),
        "ray.kill": lambda: ray.kill(victim),
        "ray.cancel": lambda: ray.cancel(held),
        "ray.init": lambda: ray.init("auto", ignore_reinit_error=True),
    }
    for route, act in tries.items():
        with enclose("case") as scope, pytest.raises(FenceBreach):
            act()
        assert scope.breach is not None
        assert scope.breach.route == route
    with enclose("case") as scope, pytest.raises(FenceBreach):
        get_imported_before(held)
    with enclose("case") as scope, pytest.raises(FenceBreach):
        ray.init("ray://127.0.0.1:1", allow_multiple=True)
    assert ray.get(held) == "held"


@pytest.mark.filterwarnings("ignore")
def test_a_model_may_be_asked_on_a_cluster(tmp_path: Path) -> None:
    with enclose("case") as scope, opening_for():
        assert by_function(str(tmp_path / "acted")) == "acted"
    assert scope.breach is None


@pytest.mark.filterwarnings("ignore")
async def test_a_report_says_that_a_cluster_has_ways_of_its_own() -> None:
    report = await evaluate(lambda message: "hi", Case("c", "Hi"))
    assert "the fence cannot see connections of ray" in report.notes


@pytest.mark.filterwarnings("ignore")
async def test_after_the_rehearsal_ray_works_as_before(tmp_path: Path) -> None:
    await evaluate(lambda message: "hi", Case("c", "Hi"))
    assert by_function(str(tmp_path / "acted")) == "acted"
