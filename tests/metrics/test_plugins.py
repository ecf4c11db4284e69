"""Metrics of a package that was installed alongside Greenroom, found by their names."""

import sys
from pathlib import Path

import pytest

from greenroom import Agent, Case, Score, Scripted, plugins, rehearse
from greenroom.cases import Criterion
from greenroom.errors import BadPlugin
from greenroom.metrics.registry import METRICS, criterion_names

CODE = '''
"""Criteria of our own."""

from greenroom import Score


def brief(response, longest: int = 20):
    """A plain function: bound by the names of its parameters."""
    return len(response) <= longest


class Calm:
    """A class with `evaluate`, made with the options of the criterion."""

    name = "calm"

    def __init__(self, loudest: int = 0, threshold: float = 0.8):
        self.loudest = loudest
        self.threshold = threshold

    def evaluate(self, response):
        return 1.0 if response.count("!") <= self.loudest else 0.0


class Quick:
    def __init__(self, seconds):
        self.name, self.limit = "quick", seconds

    def measure(self, case, ledger, world):
        return Score(1.0, reason=f"the limit is {self.limit}", name=self.name)


def quick(seconds: float) -> Quick:
    """A factory, though a run could fill `seconds`."""
    return Quick(seconds)
'''
POINTS = """
[greenroom.metrics]
brief = house_metrics:brief
calm = house_metrics:Calm
quick = house_metrics:quick
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package as an installer would leave it."""
    (tmp_path / "house_metrics.py").write_text(CODE)
    info = tmp_path / "house_metrics-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-metrics\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.forget()
    yield
    plugins.forget()
    sys.modules.pop("house_metrics", None)


clerk = Agent("clerk", model=Scripted("Good day to you!"))


@pytest.mark.usefixtures("installed")
def test_a_plug_ins_metrics_are_used_by_name_like_ours():
    asked = ["brief", Criterion("calm", threshold=0.9, options={"loudest": 1})]
    report = rehearse(clerk, [Case("c", says="Hi")], metrics=asked)
    (result,) = report.results
    assert list(result.scores) == ["brief", "calm"]
    assert all(isinstance(found, Score) and found.value == 1 for found in result.scores.values())
    assert report.passed


@pytest.mark.usefixtures("installed")
def test_a_case_may_ask_for_a_plug_ins_metric_with_options():
    case = Case("c", says="Hi", metrics=[Criterion("calm", options={"loudest": 0})])
    (result,) = rehearse(clerk, [case]).results
    assert result.status == "failed"


@pytest.mark.usefixtures("installed")
def test_a_function_annotated_to_return_a_metric_is_a_factory():
    case = Case("c", says="Hi", metrics=[Criterion("quick", options={"seconds": 3})])
    (result,) = rehearse(clerk, [case]).results
    found = result.scores["quick"]
    assert isinstance(found, Score)
    assert found.reason == "the limit is 3"


@pytest.mark.usefixtures("installed")
def test_a_plug_ins_names_are_among_those_that_are_near():
    assert {"brief", "calm", "called"} <= set(criterion_names())


def install(folder: Path, name: str, points: str) -> None:
    """Another package alongside the first."""
    info = folder / f"{name.replace('-', '_')}-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(f"[greenroom.metrics]\n{points}\n")
    plugins.forget()


@pytest.mark.usefixtures("installed")
def test_a_name_that_two_packages_use_for_different_things_is_refused(tmp_path: Path):
    install(tmp_path, "rival-metrics", "brief = rival_metrics:brief")
    with pytest.raises(BadPlugin, match="'brief'") as told:
        METRICS.load("brief")
    for part in ("house-metrics", "house_metrics:brief", "rival-metrics", "rival_metrics:brief"):
        assert part in str(told.value)
    assert METRICS.load("calm").__name__ == "Calm"
    assert criterion_names().count("brief") == 1


@pytest.mark.usefixtures("installed")
def test_a_name_that_two_packages_use_for_one_thing_is_that_thing(tmp_path: Path):
    install(tmp_path, "house-metrics-again", "brief = house_metrics:brief")
    assert METRICS.load("brief").__name__ == "brief"


@pytest.mark.usefixtures("installed")
def test_a_plug_in_that_takes_a_name_of_ours_is_refused(tmp_path: Path):
    install(tmp_path, "rival-metrics", "contains = rival_metrics:contains")
    with pytest.raises(BadPlugin, match="rival_metrics:contains"):
        METRICS.load("contains")
