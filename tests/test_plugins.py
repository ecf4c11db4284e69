"""One door for all plug-ins: metrics, file shapes, reports, model providers, backends and checks."""

import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Scripted, plugins
from greenroom.agents import check
from greenroom.agents.contracts.registry import CHECKS
from greenroom.apps.cli.plugin_commands import COMMANDS
from greenroom.backends import backend_for
from greenroom.backends.registry import BACKENDS
from greenroom.cases import read_evalset, register_shape, write_evalset
from greenroom.cases.files import shape_names, shapes
from greenroom.cases.files.shapes import SHAPES
from greenroom.errors import BadAgent, BadFile, BadMetric, BadPlugin, MissingExtra, NotFound
from greenroom.metrics.registry import METRICS
from greenroom.models import as_model
from greenroom.models.named import PROVIDERS
from greenroom.results.reporters import REPORTERS
from greenroom.traces.readers import READERS

DOORS = [METRICS, SHAPES, REPORTERS, PROVIDERS, BACKENDS, CHECKS, READERS, COMMANDS]
GROUPS = {door.group: door for door in DOORS}
CODE = """
from greenroom.cases.files import Shape
from greenroom import EvalSet, Case

nothing = 7

def recognises(data):
    return "it has `dialogues`" if "dialogues" in data else None

def read(data, stem):
    return EvalSet(stem, [Case(name, says) for name, says in data["dialogues"].items()])

def write(evalset):
    return {"dialogues": {case.id: case.says for case in evalset.cases}}

dialogues = Shape("dialogues", "a mapping with `dialogues`", recognises, read, write)

def mute(name, **options):
    return "no model"

class Stage:
    '''A framework of the visitors' own.'''

class StageBackend:
    name = "stage"

    def __init__(self, agent):
        self.agent = agent

    async def advance(self, ledger, world): ...

    def snapshot(self): ...

def suspicious(graph, schema, given):
    from greenroom.agents import Issue
    yield Issue("Suspicious", "note", graph.root.id, "", "looks odd.")
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package of this name with entry points, as an installer would leave it."""
    # What an example of the documentation has registered in this process is not meant here.
    monkeypatch.setattr(shapes, "_REGISTERED", {})
    site = tmp_path / "site"
    site.mkdir()
    (site / "visitors.py").write_text(CODE)
    (site / "breaking.py").write_text("raise LookupError('no key')")
    monkeypatch.syspath_prepend(site)

    def install(package: str, group: str, points: str, metadata: str = "") -> None:
        info = site / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n{metadata}"
        (info / "METADATA").write_text(head)
        (info / "entry_points.txt").write_text(f"[{group}]\n{points}\n")
        plugins.forget()

    yield install
    plugins.forget()
    for module in ("visitors", "breaking"):
        sys.modules.pop(module, None)


def test_every_part_of_ours_comes_in_by_the_visitors_door() -> None:
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    declared = settings["project"]["entry-points"]
    declared.pop("pytest11")
    assert declared.keys() == GROUPS.keys()
    for group, points in declared.items():
        assert GROUPS[group].names() == sorted(points)
        assert all(GROUPS[group].load(name) is not None for name in points)


def test_a_check_of_a_visitor_is_made_of_every_agent(install: Install) -> None:
    install("visitors", "greenroom.checks", "suspicious = visitors:suspicious")
    assert [issue.says for issue in check(Agent("clerk", model=Scripted("x")))] == ["looks odd."]


def test_what_is_no_check_is_refused_by_its_package(install: Install) -> None:
    install("visitors", "greenroom.checks", "odd = visitors:nothing")
    with pytest.raises(BadPlugin, match=r"the check 'odd' of visitors .* is 7, but should be"):
        check(Agent("clerk", model=Scripted("x")))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.group)
def test_two_packages_that_offer_one_name_are_both_named(door: Any, install: Install) -> None:
    own = door.names()[0]
    install("rival", door.group, f"{own} = rival:thing")
    with pytest.raises(BadPlugin, match=r"greenroom \(.*\) and rival \(rival:thing\)\. Uninstall"):
        door.load(own)
    assert door.names().count(own) == 1


def test_the_files_of_a_package_are_read_only_for_an_error(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metrics are loaded by name for every case, and reading takes longer than measuring."""
    read: list[object] = []
    metadata: Any = Distribution.metadata
    monkeypatch.setattr(
        Distribution, "metadata", property(lambda d: read.append(d) or metadata.fget(d))
    )
    install("visitors", SHAPES.group, "dialogues = visitors:dialogues\nnothing = visitors:nothing")
    SHAPES.names()
    read.clear()
    assert SHAPES.load("dialogues").name == "dialogues"
    assert read == []
    with pytest.raises(BadPlugin, match="of visitors"):
        SHAPES.load("nothing")
    assert read


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.group)
def test_two_packages_that_offer_the_same_thing_agree(door: Any, install: Install) -> None:
    own = "greenroom" if door is SHAPES else door.names()[0]
    before = door.load(own)
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    value = settings["project"]["entry-points"][door.group][own]
    install("again", door.group, f"{own} = {value}")
    assert type(door.load(own)) is type(before)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.group)
@pytest.mark.parametrize(
    "value, error, told",
    [
        (
            "nowhere:thing",
            MissingExtra,
            "cannot be loaded: No module named 'nowhere'. Install what",
        ),
        ("breaking:thing", BadPlugin, "cannot be loaded: LookupError: no key. Correct"),
        ("visitors:gone", BadPlugin, "cannot be loaded: AttributeError: .*'gone'. Correct"),
        ("visitors:nothing", BadPlugin, "is 7, but should be a"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_named_with_its_package(
    door: Any, value: str, error: type[Exception], told: str, install: Install
) -> None:
    install("visiting-parts", door.group, f"odd = {value}")
    with pytest.raises(error, match=rf"'odd' of visiting-parts \({value}\) {told}"):
        door.load("odd")


def test_a_missing_module_is_installed_with_the_extra_that_is_called_like_it(
    install: Install,
) -> None:
    extras = "Provides-Extra: big-screen\n"
    install("cinema", "greenroom.reports", "film = cinema.big_screen:film", extras)
    with pytest.raises(MissingExtra, match=r"pip install 'cinema\[big-screen\]'"):
        REPORTERS.load("film")


@pytest.mark.parametrize(
    "door, error",
    [
        (METRICS, BadMetric),
        (SHAPES, BadFile),
        (REPORTERS, NotFound),
        (PROVIDERS, BadAgent),
        (BACKENDS, NotFound),
    ],
    ids=lambda given: getattr(given, "group", ""),
)
def test_an_unknown_name_is_refused_with_the_nearest(door: Any, error: type[Exception]) -> None:
    known = max(door.names(), key=len)
    with pytest.raises(error, match=rf"there is no .*Did you mean .*'{known}'"):
        door.load(f"{known}x".upper())


def test_names_are_listed_without_importing_any_plug_in() -> None:
    code = (
        "import sys, greenroom.cases.files, greenroom.metrics.registry as metrics\n"
        "assert 'importlib.metadata' not in sys.modules, 'entry points were read at import'\n"
        "from greenroom.cases.files import shape_names\n"
        "assert 'adk' in shape_names() and 'contains' in metrics.METRICS.names()\n"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "greenroom.cases.files.adk" not in loaded
    assert "greenroom.metrics.judges.safety" not in loaded


# What each kind of visitor can do


def test_a_visitors_shape_has_the_rank_of_ours(tmp_path: Path, install: Install) -> None:
    install("visitors", "greenroom.shapes", "dialogues = visitors:dialogues")
    evalset = EvalSet("talks", [Case("a", "Hi")])
    write_evalset(evalset, tmp_path / "talks.json", shape="dialogues")
    found = read_evalset(tmp_path / "talks.json")
    assert (found, found.shape) == (evalset, "dialogues")
    (tmp_path / "both.json").write_text('{"version": 1, "cases": [], "dialogues": {}}')
    with pytest.raises(BadFile, match=r"several kinds .*dialogues: .*greenroom: .*Give shape="):
        read_evalset(tmp_path / "both.json")


def test_a_shape_that_is_registered_and_offered_differently_is_refused(
    tmp_path: Path, install: Install
) -> None:
    own = shapes.Shape("dialogues", "", lambda _: "it is ours", lambda _, stem: EvalSet(stem), str)
    register_shape(own)
    install("visitors", "greenroom.shapes", "dialogues = visitors:dialogues")
    assert shape_names().count("dialogues") == 1
    with pytest.raises(BadPlugin, match=r"'dialogues' is registered in Python, and .*another"):
        shapes.shape_named("dialogues")
    (tmp_path / "s.json").write_text('{"version": 1, "cases": [{"id": "a", "says": "Hi"}]}')
    assert read_evalset(tmp_path / "s.json").shape == "greenroom"
    with pytest.raises(BadPlugin, match="registered in Python"):
        read_evalset(tmp_path / "s.json", shape="dialogues")


def test_a_shape_that_is_registered_and_offered_alike_is_that_shape(install: Install) -> None:
    install("visitors", "greenroom.shapes", "dialogues = visitors:dialogues")
    shapes._REGISTERED["dialogues"] = offered = SHAPES.load("dialogues")
    assert shapes.shape_named("dialogues") is offered


@pytest.mark.parametrize("broken", ["nowhere:shape", "breaking:shape", "visitors:nothing"])
def test_a_broken_shape_keeps_no_other_file_from_being_read(
    broken: str, tmp_path: Path, install: Install
) -> None:
    install("visitors", "greenroom.shapes", f"odd = {broken}\ndialogues = visitors:dialogues")
    (tmp_path / "s.json").write_text('{"version": 1, "cases": [{"id": "a", "says": "Hi"}]}')
    assert read_evalset(tmp_path / "s.json").cases[0].says == "Hi"
    # A shape that breaks over data it does not know is passed over too.
    (tmp_path / "seven.json").write_text("7")
    with pytest.raises(BadFile, match=r"dialogues: failed: TypeError(.|\n)*- odd: failed"):
        read_evalset(tmp_path / "seven.json")


def test_a_shape_is_offered_under_its_own_name(install: Install) -> None:
    install("visitors", "greenroom.shapes", "talks = visitors:dialogues")
    with pytest.raises(BadPlugin, match=r"'talks' .*should be a Shape of that name"):
        SHAPES.load("talks")


def test_a_visitors_backend_runs_objects_of_its_framework(install: Install) -> None:
    install("visitors", "greenroom.backends", "visitors = visitors:StageBackend")
    from visitors import Stage  # pyright: ignore[reportMissingImports]

    assert backend_for(Stage()).name == "stage"


def test_a_provider_must_return_a_model(install: Install) -> None:
    install("visitors", "greenroom.models", "mute = visitors:mute")
    with pytest.raises(BadPlugin, match=r"agent 'clerk' .*'mute:any'.*'no model', which cannot"):
        Agent("clerk", model="mute:any")
    install("deafness", "greenroom.models", "deaf = nowhere:deaf")
    with pytest.raises(MissingExtra, match=r"^the model is 'deaf:any', but the model provider"):
        as_model("deaf:any")
    assert as_model(Scripted("Hi")).name
