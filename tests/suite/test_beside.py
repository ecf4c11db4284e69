"""Which agent a file of cases belongs to, and where a reference points."""

from pathlib import Path

import pytest

from greenroom.suite.inputs.references import agent_beside, anchored


def place(root: Path, name: str, text: str = "root_agent = 1") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "agent, cases",
    [
        ("weather.py", "weather.test.json"),
        ("weather.py", "weather.evalset.json"),
        ("weather/agent.py", "weather.test.json"),
        ("agent.py", "anything.eval.yaml"),
        ("agent.py", "evals/anything.eval.yaml"),
    ],
)
def test_an_agent_is_found_beside_its_cases(tmp_path: Path, agent: str, cases: str) -> None:
    path = place(tmp_path, agent)
    assert agent_beside(tmp_path / cases, tmp_path) == str(path)


def test_the_agent_of_the_same_name_comes_first(tmp_path: Path) -> None:
    place(tmp_path, "agent.py")
    path = place(tmp_path, "weather.py")
    assert agent_beside(tmp_path / "weather.test.json", tmp_path) == str(path)


def test_an_agent_outside_the_project_is_not_found(tmp_path: Path) -> None:
    place(tmp_path, "agent.py")
    assert agent_beside(tmp_path / "project/x.test.json", tmp_path / "project") is None


@pytest.mark.parametrize(
    "text",
    [
        "root_agent: object = 1",
        "a = agent = 1",
        "from .flow import graph",
        "from .flow import it as app",
        "async def get_agent_async(): ...",
        "def create_agent(): ...",
        "try:\n    root_agent = 1\nexcept ImportError:\n    raise",
        "try:\n    import fast\nexcept ImportError:\n    root_agent = 1",
        "for _ in [1]:\n    agent = 1",
        "from .flow import *",
        "def __getattr__(name): ...",
        "root_agent, other = 1, 2",
        "root_agent = (",
    ],
)
def test_a_module_is_an_agents_if_it_names_one_or_cannot_be_read(tmp_path: Path, text: str) -> None:
    place(tmp_path, "agent.py", text)
    assert agent_beside(tmp_path / "x.test.json", tmp_path) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class Agent: ...",
        "root_agent: object",
        "'agent'",
        "def f():\n    agent = 1",
        "x.agent = 1",
    ],
)
def test_a_module_without_an_agent_is_nobodys(tmp_path: Path, text: str) -> None:
    place(tmp_path, "agent.py", text)
    assert agent_beside(tmp_path / "x.test.json", tmp_path) is None


def test_nothing_is_run_to_find_out(tmp_path: Path) -> None:
    place(tmp_path, "agent.py", "root_agent = 1\nopen('ran', 'w')")
    agent_beside(tmp_path / "x.test.json", tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_reference_points_into_the_first_folder_that_has_it(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    path = place(far, "agent.py")
    assert anchored("agent.py:clerk", near, far) == f"{path}:clerk"
    assert anchored("agent.py", near, far) == str(path)
    path = place(near, "agent.py")
    assert anchored("agent.py", near, far) == str(path)
    assert anchored("shop.agents:clerk", near, far) == "shop.agents:clerk"
