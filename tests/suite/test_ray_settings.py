"""Which cluster is meant, and what travels there; no cluster is needed for it."""

import subprocess
import sys
import textwrap
from pathlib import Path
from time import sleep
from typing import Any

import msgspec
import pytest

from greenroom import Case, Expect, evaluate
from greenroom.errors import BadInput
from greenroom.store.configuration import withheld
from greenroom.suite import Ray
from greenroom.suite.plan import assemble
from greenroom.suite.workers.ray.relay import Relay
from greenroom.suite.workers.ray.shipment import EXCLUDED, pack, project_root


@pytest.mark.parametrize(
    "written, meant",
    [
        ("ray", Ray()),
        ("ray://head:10001", Ray("ray://head:10001")),
        ("ray?env=KEY,OTHER&cpus=0.5", Ray(env=["KEY", "OTHER"], cpus=0.5)),
        ("ray?env=KEY&env=OTHER", Ray(env=["KEY", "OTHER"])),
        ("ray://h:1?processes=8&patience=5&pip=a", Ray("ray://h:1", processes=8, patience=5.0, pip=["a"])),
    ],
)  # fmt: skip
def test_a_cluster_is_named_in_one_word(written: str, meant: Ray) -> None:
    assert Ray.of(written) == meant
    assert Ray.of(meant) is meant


@pytest.mark.parametrize(
    "written", ["ray://", "rays", "ray?cpu=1", "ray?cpus=many", "ray?processes=0", "ray?cpus=0"]
)
def test_what_names_no_cluster_is_refused(written: str) -> None:
    with pytest.raises(BadInput):
        Ray.of(written)


@pytest.mark.parametrize(
    "given",
    [{"env": "KEY"}, {"env": [""]}, {"cpus": -1}, {"cpus": True}, {"processes": 1.5}, {"address": "local"}],
)  # fmt: skip
def test_a_cluster_that_cannot_be_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="Ray\\("):
        Ray(**given)


# Without Ray, or without a cluster


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop.py").write_text(
        textwrap.dedent("""
            from greenroom import step

            agent = step(lambda: "Hi.", name="agent")
        """)
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


CASES = [Case("c", "Hi", expect=Expect(contains=["Hi"]))]


WITHOUT_RAY = """
import sys
from greenroom import Case, Expect, rehearse


class Absent:
    def find_spec(self, name, *_):
        if name == "ray":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Absent())
try:
    rehearse("shop.py:agent", [Case("c", "Hi", expect=Expect(contains=["Hi"]))], on="ray", store=False)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_the_extra_is_named_where_ray_is_not_installed(project: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_RAY], capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("MissingExtra ")
    assert "[ray]" in told


@pytest.mark.parametrize("address", ["127.0.0.1:1", "local"])
async def test_a_cluster_is_never_started_unasked(
    project: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'greenroom[ray]'")
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(BadInput, match="ray start --head") as found:
        await evaluate("shop.py:agent", [*CASES], on="ray", store=project / "runs")
    assert "--on ray://" in str(found.value)
    assert not (project / "runs").exists()


async def test_the_kernels_fence_is_for_one_machine(project: Path) -> None:
    with pytest.raises(BadInput, match="of this machine"):
        await evaluate("shop.py:agent", [*CASES], on="ray", fence="kernel", store=False)


# What travels


def briefing(**parts: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"metrics": [], "mocks": {}, "resources": {}, "cache": None}
    return {
        "agent": "shop.py:agent",
        "cases": {"reference": "cases.yaml"},
        "options": {**options, **parts.pop("options", {})},
        "modules": [],
        **parts,
    }


def test_the_project_is_the_folder_of_the_nearest_pyproject(project: Path) -> None:
    (project / "a" / "b").mkdir(parents=True)
    assert project_root(project / "a" / "b") == project
    assert project_root(Path("/")) == Path("/")


def test_paths_are_named_from_the_folder_in_which_the_run_was_started(project: Path) -> None:
    (project / "evals").mkdir()
    (project / "evals" / "cases.yaml").touch()
    given = briefing(
        agent=f"{project / 'shop.py'}:agent",
        cases={"gathered": str(project / "evals" / "cases.yaml"), "configs": True},
        options={
            "metrics": [{"reference": f"{project / 'shop.py'}:polite"}, "exact"],
            "model": "openai:gpt-x",
            "cache": str(project / ".greenroom" / "judges"),
        },
        modules=[["shop", str(project / "shop.py")]],
    )
    found = pack(given, project, project / "evals")
    assert found.folder == "evals"
    assert found.briefing["agent"] == "../shop.py:agent"
    assert found.briefing["cases"] == {"gathered": "cases.yaml", "configs": True}
    assert found.briefing["modules"] == [["shop", "../shop.py"]]
    options: Any = found.briefing["options"]
    assert options["metrics"] == [{"reference": "../shop.py:polite"}, "exact"]
    assert options["model"] == "openai:gpt-x"
    assert options["cache"] is None


@pytest.mark.parametrize(
    "where", ["../outside.py:agent", "/nowhere/outside.py:agent", ".venv/a.py:x"]
)
def test_a_reference_that_cannot_travel_is_refused_by_name(project: Path, where: str) -> None:
    (project / ".venv").mkdir()
    (project / ".venv" / "a.py").touch()
    with pytest.raises(BadInput, match="no node") as found:
        pack(briefing(agent=where), project, project)
    assert where in str(found.value)
    assert "the agent" in str(found.value)


def test_what_a_package_holds_is_found_by_its_name(project: Path) -> None:
    from greenroom.metrics import response

    given = briefing(options={"metrics": [{"reference": f"{response.__file__}:exact"}]})
    options: Any = pack(given, project, project).briefing["options"]
    assert options["metrics"] == [{"reference": "greenroom.metrics.response:exact"}]


async def test_a_process_beside_a_relay_has_neither_the_store_nor_rays_own_variables(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_STORE", "postgresql://me:sesame-9@db/evals")
    for name in ("PGPASSWORD", "PGPASSFILE", "RAY_ADDRESS", "SHOP_URL"):
        monkeypatch.setenv(name, "sesame-9")
    place = "postgresql://db/evals"
    relay = Relay({})
    for number, env in enumerate(({}, {"PGPASSWORD": "named"})):
        parcel = pack(briefing(), project, project, withheld(place))
        pid = await relay.start(number, msgspec.json.encode(parcel), env)
        seen = _variables(pid)
        assert seen["GREENROOM_STORE"] == "off"
        assert {*seen} & {"PGPASSWORD", "PGPASSFILE", "RAY_ADDRESS"} == {*env}
        assert seen["SHOP_URL"] == "sesame-9"
    await relay.close()


@pytest.mark.parametrize(
    "other, said",
    [
        ({"python": "2.7"}, r"has Python 2\.7.* use the same image for both\.$"),
        ({"greenroom": "0.0.1"}, r"has Greenroom 0\.0\.1.*Ray\(pip=\['greenroom=="),
        ({"now": 0.0}, ""),
    ],
)
async def test_a_node_with_other_versions_is_refused_and_a_wrong_clock_is_noted(
    project: Path, other: dict[str, Any], said: str
) -> None:
    pytest.importorskip("ray")
    ready = await assemble("shop.py:agent", [*CASES], {"on": "ray", "store": False})
    place: Any = ready.executor._place  # pyright: ignore[reportAttributeAccessIssue]
    notes: list[str] = []
    place._note = notes.append
    found = await Relay({}).about()
    place._check_node(found, 0.1)
    assert notes == []
    if said:
        with pytest.raises(BadInput, match=said):
            place._check_node({**found, **other}, 0.1)
    else:
        place._check_node({**found, **other}, 0.1)
        assert notes == ["the clocks of the nodes differ from this one's by more than a second"]


def _variables(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    environ = Path(f"/proc/{pid}/environ")
    while not (text := environ.read_text()):  # until the kernel has put the new program in place
        sleep(0.01)
    lines = text.split("\0")
    return dict(line.split("=", 1) for line in lines if line)


@pytest.mark.parametrize(
    "store, omitted",
    [
        ("runs", ["/runs"]),
        ("postgresql://me:sesame-9@db/evals", []),
        ("/elsewhere/runs", []),
        (".", []),
        ("off", []),
    ],
)
async def test_the_store_does_not_travel_and_its_address_is_not_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, store: str, omitted: list[str]
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("GREENROOM_STORE", store)
    for given in (None, store):
        ready = await assemble("shop.py:agent", [*CASES], {"on": "ray", "store": given})
        place: Any = ready.executor._place  # pyright: ignore[reportAttributeAccessIssue]
        sent = place._runtime_env()
        assert sent["excludes"] == [*EXCLUDED, *omitted]
        assert "sesame" not in str(sent)
