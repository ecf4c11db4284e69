"""Agents and cases named by a path: found where they are looked for, and never guessed."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet
from greenroom.cases.parts import metric_name
from greenroom.errors import BadFile, BadInput, ImportFailed, NotFound
from greenroom.suite.inputs.references import load_agent
from greenroom.suite.inputs.sources import as_evalset, load_cases

HEAD = """
from greenroom import Agent, Case, EvalSet, Scripted

def named(name):
    return Agent(name, model=Scripted("Hello."))
"""


@pytest.fixture(autouse=True)
def imports_forgotten() -> Iterator[None]:
    """Modules of one test are not found by the next."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def module(folder: Path, body: str, name: str = "mine.py") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(HEAD + body)
    return str(folder / name)


async def loaded(reference: str) -> str:
    agent = await load_agent(reference)
    assert isinstance(agent, Agent)
    return agent.name


ORDER = ["root_agent", "agent", "graph", "app", "create_graph", "create_agent", "get_agent_async"]


@pytest.mark.parametrize("first", range(len(ORDER)))
async def test_an_agent_is_found_by_its_usual_names_in_order(tmp_path: Path, first: int) -> None:
    lines: list[str] = []
    for name in reversed(ORDER[first:]):
        if name == "get_agent_async":
            lines.append(f"async def {name}(): return named('{name}')")
        elif name.startswith("create"):
            lines.append(f"def {name}(): return named('{name}')")
        else:
            lines.append(f"{name} = named('{name}')")
    assert await loaded(module(tmp_path, "\n".join(lines))) == ORDER[first]


async def test_a_named_agent_comes_before_all_others(tmp_path: Path) -> None:
    path = module(tmp_path, "root_agent = named('root')\nother = named('other')")
    assert await loaded(f"{path}:other") == "other"


async def test_a_named_agent_may_lie_deep(tmp_path: Path) -> None:
    path = module(tmp_path, "class Shop:\n    clerk = named('clerk')")
    assert await loaded(f"{path}:Shop.clerk") == "clerk"


@pytest.mark.parametrize("how", ["def", "async def"])
async def test_a_named_factory_is_called(tmp_path: Path, how: str) -> None:
    path = module(tmp_path, f"{how} make(): return named('made')")
    assert await loaded(f"{path}:make") == "made"


async def test_main_is_never_called_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # another test's
    body = "ran = []\ndef main():\n    ran.append(1)\n    return named('main')\n"
    path = module(tmp_path, body)
    with pytest.raises(NotFound, match="no agent found"):
        await load_agent(path)
    assert sys.modules["mine"].ran == []
    assert await loaded(f"{path}:main") == "main"


@pytest.mark.parametrize("first", range(3))
async def test_a_folder_is_searched_in_order(tmp_path: Path, first: int) -> None:
    files = ["agent.py", "__init__.py", "main.py"]
    for index, name in enumerate(files[first:], start=first):
        module(tmp_path / f"folder{first}", f"agent = named('file{index}')", name)
    assert await loaded(str(tmp_path / f"folder{first}")) == f"file{first}"


async def test_a_folder_without_an_agent_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no agent module found in .*agent\.py"):
        await load_agent(str(tmp_path))


async def test_an_agent_may_be_named_by_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(tmp_path / "corner_shop", "clerk = named('clerk')\nagent = named('agent')", "staff.py")
    monkeypatch.chdir(tmp_path)
    assert await loaded("corner_shop.staff") == "agent"
    assert await loaded("corner_shop.staff:clerk") == "clerk"


@pytest.mark.parametrize(
    "reference, told",
    [
        ("nowhere.py", "there is no file 'nowhere.py'"),
        ("some/where", "there is no file 'some/where'"),
        ("no.such.module", "no file or module 'no.such.module'"),
    ],
)
async def test_a_path_that_leads_nowhere_is_named(reference: str, told: str) -> None:
    with pytest.raises(NotFound, match=told):
        await load_agent(reference)


async def test_an_attribute_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    path = module(tmp_path, "clerk = named('clerk')")
    with pytest.raises(NotFound, match=r"there is no 'cashier'\. .*Known: .*clerk"):
        await load_agent(f"{path}:cashier")


async def test_a_module_without_an_agent_says_what_it_could_be_called(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"defines none of root_agent.*Name it: .*:your_agent"):
        await load_agent(module(tmp_path, "clerk = named('clerk')"))


async def test_a_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.txt").write_text("hello")
    with pytest.raises(BadFile, match=r"agent\.txt is not a Python file"):
        await load_agent(str(tmp_path / "agent.txt"))


async def test_cases_in_the_place_of_an_agent_are_told_what_comes_first(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text("cases: []")
    with pytest.raises(BadFile, match=r"first: greenroom eval run agent\.py desk\.yaml"):
        await load_agent(str(tmp_path / "desk.yaml"))


async def test_a_module_that_breaks_is_not_half_loaded(tmp_path: Path) -> None:
    path = module(tmp_path, "agent = named('a')\n1 / 0")
    for _ in range(2):
        with pytest.raises(ImportFailed, match=r"mine\.py cannot be loaded: ZeroDivisionError"):
            await load_agent(path)


async def test_a_file_is_loaded_once(tmp_path: Path) -> None:
    path = module(tmp_path, "agent = named('a')")
    assert await load_agent(path) is await load_agent(path)


async def test_a_file_that_was_loaded_by_another_name_is_not_loaded_again(tmp_path: Path) -> None:
    reference = module(tmp_path, "agent = named('one')")
    spec = importlib.util.spec_from_file_location("what_a_plug_in_calls_it", reference)
    assert spec is not None
    assert spec.loader is not None
    by_name = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(by_name)
    assert await load_agent(reference) is by_name.agent


async def test_a_library_that_is_blocked_is_no_module_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests put None into `sys.modules`, so that an import fails as if nothing were installed."""
    for name in ("pandas", "helpers"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "helpers.py").write_text("")
    assert await loaded(module(tmp_path, "agent = named('one')")) == "one"


async def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    one = module(tmp_path / "one", "agent = named('one')")
    two = module(tmp_path / "two", "agent = named('two')")
    assert [await loaded(one), await loaded(two)] == ["one", "two"]


async def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    module(tmp_path, "clerk = named('clerk')", "my_staff.py")
    assert await loaded(module(tmp_path, "from my_staff import clerk as agent")) == "clerk"


async def test_each_file_gets_the_neighbours_of_its_own_folder(tmp_path: Path) -> None:
    agent = "from my_staff import NAME\nagent = named(NAME)"
    for name in ("one", "two"):
        module(tmp_path / name, f"NAME = {name!r}", "my_staff.py")
    one, two = (module(tmp_path / name, agent, "agent.py") for name in ("one", "two"))
    assert [await loaded(one), await loaded(two)] == ["one", "two"]
    staff = [sys.modules["my_staff"].NAME]
    assert await load_agent(one) is await load_agent(one)  # it has its neighbours again
    assert [*staff, sys.modules["my_staff"].NAME] == ["two", "one"]


@pytest.mark.parametrize("init", [True, False])
async def test_folders_of_neighbours_are_told_apart_too(tmp_path: Path, init: bool) -> None:
    agent = "from my_staff.names import NAME\nagent = named(NAME)"
    for name in ("one", "two"):
        module(tmp_path / name / "my_staff", f"NAME = {name!r}", "names.py")
        if init:
            (tmp_path / name / "my_staff" / "__init__.py").touch()
    paths = [module(tmp_path / name, agent, f"{name}.py") for name in ("one", "two")]
    assert [await loaded(path) for path in paths] == ["one", "two"]


async def test_packages_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shop = tmp_path / name / "my_shop"
        module(shop, f"NAME = {name!r}", "parts.py")
        module(shop, "", "__init__.py")
        module(shop, "from .parts import NAME\nagent = named(NAME)", "agent.py")
    found = [await loaded(str(tmp_path / name / "my_shop")) for name in ("one", "two", "one")]
    assert found == ["one", "two", "one"]


@pytest.mark.parametrize("late", ["one", "two"])
async def test_a_neighbour_that_is_imported_late_cannot_be_mixed_up(
    tmp_path: Path, late: str
) -> None:
    paths: list[str] = []
    for name in ("one", "two"):
        module(tmp_path / name, f"NAME = {name!r}", "my_staff.py")
        body = f"import my_staff\nagent = named({name!r})"
        if name == late:
            body += "\ndef tool():\n    from my_staff import NAME\n    return NAME"
        paths.append(module(tmp_path / name, body, "agent.py"))
    assert await loaded(paths[0]) == "one"
    for _ in range(2):
        with pytest.raises(
            BadFile, match=rf"{late}/agent\.py, line \d+, imports 'my_staff' inside"
        ):
            await loaded(paths[1])
        assert sys.modules["my_staff"].NAME == "one"


async def test_neighbours_come_back_after_a_file_that_breaks(tmp_path: Path) -> None:
    files = {
        "one": "from helper import NAME\nagent = named(NAME)",
        "two": "from helper import NAME\n1 / 0",
    }
    for folder, body in files.items():
        module(tmp_path / folder, f"NAME = {folder!r}", "helper.py")
        module(tmp_path / folder, body)
    one = await load_agent(str(tmp_path / "one/mine.py"))
    helper = sys.modules["helper"]
    with pytest.raises(ImportFailed, match="ZeroDivisionError"):
        await load_agent(str(tmp_path / "two/mine.py"))
    assert await load_agent(str(tmp_path / "one/mine.py")) is one
    assert sys.modules["helper"] is helper


async def test_a_file_is_hardly_dearer_to_load_after_many_of_its_name(tmp_path: Path) -> None:
    """Each test of an agent may load a file of its own, and a test run has thousands."""
    calls: list[int] = []
    for number in range(16):
        path = module(tmp_path / str(number), "agent = named('a')")
        calls.append(0)

        def count(_frame: object, event: str, _arg: object) -> None:
            calls[-1] += event == "call"

        sys.setprofile(count)
        try:
            await load_agent(path)
        finally:
            sys.setprofile(None)
    assert calls[-1] < calls[3] + 20 * 12


async def test_a_neighbour_that_the_folder_does_not_import_stays_as_it_is(tmp_path: Path) -> None:
    for name in ("one", "two"):
        module(tmp_path / name, f"NAME = {name!r}", "my_staff.py")
    await loaded(module(tmp_path / "one", "import my_staff\nagent = named('one')", "first.py"))
    before = sys.modules["my_staff"]
    await loaded(module(tmp_path / "two", "agent = named('two')", "second.py"))
    assert sys.modules["my_staff"] is before


async def test_what_another_folder_loaded_is_the_same_object_here(tmp_path: Path) -> None:
    one = module(tmp_path / "one", "agent = named('one')", "my_agent.py")
    two = module(tmp_path / "two", "from my_agent import agent", "my_cases.py")
    assert await load_agent(one) is await load_agent(two)


async def test_a_folder_that_is_reached_by_two_paths_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(tmp_path / "real", "NAME = 'x'", "my_staff.py")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.syspath_prepend(str(tmp_path / "link"))
    staff = importlib.import_module("my_staff")
    await loaded(module(tmp_path / "real", "import my_staff\nagent = named('x')", "agent.py"))
    assert sys.modules["my_staff"] is staff


async def test_a_package_with_the_name_of_a_library_is_told_to_be_renamed(tmp_path: Path) -> None:
    module(tmp_path / "pytest", "", "__init__.py")
    path = module(tmp_path / "pytest", "from .parts import NAME", "agent.py")
    with pytest.raises(BadFile, match=r"library is called 'pytest' too; rename the folder"):
        await load_agent(path)


def ids(cases: EvalSet) -> list[str]:
    return [case.id for case in cases]


def test_cases_of_a_module_are_all_found_each_once(tmp_path: Path) -> None:
    path = module(
        tmp_path,
        "a = Case('a')\nalias = a\nmany = [a, Case('b')]\npair = (Case('c'),)\n"
        "whole = EvalSet('s', [Case('d')])\nmixed = [Case('e'), 5]\nnothing = []\n",
    )
    assert ids(load_cases(path)) == ["a", "b", "c", "d"]


def test_cases_may_be_named(tmp_path: Path) -> None:
    path = module(
        tmp_path, "a = Case('a')\nb = [Case('b1'), Case('b2')]\nc = EvalSet('s', [Case('c')])"
    )
    assert ids(load_cases(f"{path}:a")) == ["a"]
    assert ids(load_cases(f"{path}:b")) == ["b1", "b2"]
    assert load_cases(f"{path}:c").id == "s"


SETS = """
from greenroom.metrics import contains
theirs = EvalSet('s', [Case('c', says='Hi')], name='Theirs', metrics=[contains('x')], trials=2)
"""


def test_the_only_set_of_a_module_is_that_set_whole(tmp_path: Path) -> None:
    path = module(tmp_path, f"{SETS}alias = theirs\nlisted = [theirs]\nc = theirs['c']\n")
    assert load_cases(path) == load_cases(f"{path}:theirs")
    assert (load_cases(path).name, load_cases(path).trials) == ("Theirs", 2)


def test_a_set_of_a_module_is_judged_as_the_file_it_was_read_from(tmp_path: Path) -> None:
    file = tmp_path / "x.test.json"
    file.write_text(
        '[{"query": "Hi", "expected_tool_use": [], "reference": "Hello.", '
        '"expected_intermediate_agent_responses": []}]'
    )
    path = module(tmp_path, f"read = EvalSet.load({str(file)!r})\n")
    assert load_cases(path).usual
    assert load_cases(path).usual == EvalSet.load(file).usual


def test_the_sets_of_a_module_keep_their_metrics_to_themselves(tmp_path: Path) -> None:
    path = module(tmp_path, f"{SETS}own = Case('c')\nsets = [EvalSet('t', [Case('c'), Case('d')])]")
    found = load_cases(path)
    assert (found.id, found.trials) == ("mine", 2)
    assert {case.id: len(case.metrics) for case in found} == {
        "mine:c": 0,
        "s:c": 1,
        "t:c": 0,
        "d": 0,
    }


def test_several_sets_are_one_as_a_value_and_by_name(tmp_path: Path) -> None:
    path = module(tmp_path, f"{SETS}both = [theirs, EvalSet('t', [Case('c')]), Case('d')]")
    found = load_cases(f"{path}:both")
    assert (ids(found), found.trials) == (["d", "s:c", "t:c"], 2)
    assert ids(load_cases(f"{path}:both.1")) == ["c"]
    with pytest.raises(NotFound, match=r"there is no '3'"):
        load_cases(f"{path}:both.3")
    with pytest.raises(BadInput, match="holds 5, which is not a Case"):
        as_evalset([found, 5])


@pytest.mark.parametrize(
    "body, kept",
    [
        ("all = EvalSet('all', [a, b], metrics=[m])\nsome = all.limit(1)", ["a m", "b m"]),
        ("some = EvalSet('some', [a])\nall = EvalSet('all', [a, b], metrics=[m])", ["a m", "b m"]),
        (
            "x = EvalSet('x', [a], metrics=[m])\ny = EvalSet('y', [a, b], metrics=[n])",
            ["x:a m", "y:a n", "b n"],
        ),
    ],
)
def test_a_case_of_several_sets_runs_once_for_each_way_it_is_judged(
    tmp_path: Path, body: str, kept: list[str]
) -> None:
    metrics = "from greenroom.cases import Criterion\nm, n = Criterion('m'), Criterion('n')\n"
    found = load_cases(module(tmp_path, f"{metrics}a, b = Case('a'), Case('b')\n{body}\n"))
    judged = [(case, *case.metrics, *found.metrics) for case in found]
    assert [" ".join([case.id, *map(metric_name, by)]) for case, *by in judged] == kept


def test_a_module_without_cases_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no cases found in .*mine\.py"):
        load_cases(module(tmp_path, "agent = named('a')"))


@pytest.mark.parametrize("given", [5, None, object()])
def test_what_holds_no_cases_is_refused(given: Any) -> None:
    with pytest.raises(BadFile, match="neither a case, a list of cases, an EvalSet nor a path"):
        as_evalset(given)


def test_a_name_that_is_no_case_is_refused(tmp_path: Path) -> None:
    path = module(tmp_path, "agent = named('a')")
    with pytest.raises(BadInput):
        load_cases(f"{path}:agent")


def test_one_case_is_an_eval_set_of_its_own() -> None:
    case = Case("only")
    assert (as_evalset(case).id, list(as_evalset(case))) == ("only", [case])


async def test_an_agent_in_a_package_may_import_its_neighbours(tmp_path: Path) -> None:
    package = tmp_path / "clinic_package"
    package.mkdir()
    (package / "__init__.py").write_text("from . import agent\n")
    (package / "words.py").write_text("GREETING = 'hello'\n")
    (package / "agent.py").write_text(
        "from greenroom import Agent, Scripted\n"
        "from .words import GREETING\n"
        "root_agent = Agent(GREETING, model=Scripted('hi'))\n"
    )
    assert (await load_agent(str(package))).name == "hello"
    assert (await load_agent(str(package / "agent.py"))).name == "hello"


async def test_an_agent_that_is_none_is_not_found(tmp_path: Path) -> None:
    file = tmp_path / "nothing_here.py"
    file.write_text("agent = None\n")
    with pytest.raises(NotFound, match="no agent found"):
        await load_agent(str(file))


async def test_a_factory_that_needs_arguments_is_named(tmp_path: Path) -> None:
    file = tmp_path / "needy_factory.py"
    file.write_text("def create_agent(name): ...\n")
    with pytest.raises(BadFile, match="create_agent"):
        await load_agent(str(file))


@pytest.mark.parametrize("read", [load_cases, as_evalset])
def test_cases_of_a_data_file_are_chosen_by_their_ids(tmp_path: Path, read: Any) -> None:
    file = tmp_path / "x.evalset.json"
    EvalSet("x", [Case(case_id, says="Hi") for case_id in "abc"]).save(file)
    assert read(str(file)).ids == ["a", "b", "c"]
    assert read(f"{file}:b").ids == ["b"]
    assert read(f"{file}:c, a").ids == ["c", "a"]
    with pytest.raises(BadInput, match="no case 'd'"):
        read(f"{file}:d")
