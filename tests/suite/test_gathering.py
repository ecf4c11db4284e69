"""Cases gathered from several files: told apart, judged by their own criteria, traced back."""

import json
from pathlib import Path

import pytest

from greenroom import Case, EvalSet
from greenroom.cases import Criterion
from greenroom.errors import BadFile, BadInput, NotFound
from greenroom.metrics import contains
from greenroom.suite.inputs.sources import (
    Source,
    gather,
    is_usual,
    load_mocks,
    load_model,
    together,
)


def write(path: Path, *ids: str, **fields) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cases = [{"id": case_id, "says": "Hi", "expect": {"contains": "x"}} for case_id in ids]
    path.write_text(json.dumps({"version": 1, "cases": cases, **fields}))
    return path


def test_one_source_is_its_own_set(tmp_path):
    file = write(tmp_path / "one.json", "a", id="mine")
    found = gather(str(file))
    assert (found.evalset.id, found.evalset.ids) == ("mine", ["a"])
    assert found.origins == {"a": (str(file), "a")}


def test_equal_ids_are_told_apart_by_their_set_and_traced_back(tmp_path):
    one, two = (write(tmp_path / f"{name}.json", "same", name) for name in ("one", "two"))
    found = gather(str(tmp_path))
    assert found.evalset.ids == ["one:same", "one", "two:same", "two"]
    assert found.origins["one:same"] == (str(one), "same")
    assert found.origins["two:same"] == (str(two), "same")
    assert found.origins["two"] == (str(two), "two")


def test_sets_with_one_id_are_told_apart_by_their_file(tmp_path):
    for name in ("one.json", "two.json"):
        write(tmp_path / name, "same", id="shop")
    found = gather(str(tmp_path)).evalset
    home = str(tmp_path).replace("/", "_").lstrip("_")
    assert found.ids == [f"{home}_one.json:same", f"{home}_two.json:same"]
    found.save(tmp_path / "all.json")
    assert EvalSet.load(tmp_path / "all.json").ids == found.ids


def test_an_id_that_looks_like_a_prefixed_one_is_still_traced_to_its_own_source():
    one = Source("one", EvalSet("a", [Case("x", "Hi"), Case("y", "Hi")]))
    two = Source("two", EvalSet("b", [Case("x", "Hi"), Case("a:y", "Hi")]))
    found = together([one, two])
    assert found.evalset.ids == ["a:x", "y", "b:x", "a:y"]
    assert [found.origins[case_id] for case_id in found.evalset.ids] == [
        ("one", "x"),
        ("one", "y"),
        ("two", "x"),
        ("two", "a:y"),
    ]


def test_metrics_of_one_set_do_not_judge_another():
    one = Source("one", EvalSet("a", [Case("x", "Hi")], metrics=[contains("1")]))
    two = Source("two", EvalSet("b", [Case("y", "Hi")]))
    x, y = together([one, two]).evalset
    assert [len(x.metrics), len(y.metrics)] == [1, 0]


def test_each_file_is_judged_by_the_config_beside_it(tmp_path):
    write(tmp_path / "one" / "a.json", "a")
    write(tmp_path / "two" / "b.json", "b")
    (tmp_path / "one" / "test_config.json").write_text('{"criteria": {"tool_name_match": 0.5}}')
    a, b = gather(str(tmp_path)).evalset
    assert a.metrics == [Criterion("tool_name_match", threshold=0.5)]
    assert not b.metrics
    a, _ = gather(str(tmp_path), configs=False).evalset
    assert not a.metrics


def test_cases_are_chosen_by_their_ids_and_still_judged_by_the_config(tmp_path):
    file = write(tmp_path / "x.evalset.json", "a", "b", "c")
    (tmp_path / "test_config.json").write_text('{"criteria": {"tool_name_match": 0.5}}')
    found = gather(f"{file}:c, a")
    assert found.evalset.ids == ["c", "a"]
    assert found.evalset.metrics == [Criterion("tool_name_match", threshold=0.5)]
    assert found.origins["c"] == (str(file), "c")


def test_cases_of_a_glob_are_chosen_by_their_ids_wherever_they_lie(tmp_path):
    x, y = write(tmp_path / "x.json", "a", "b"), write(tmp_path / "y.json", "b", "c")
    write(tmp_path / "z.json", "d")
    found = gather(f"{tmp_path}/*.json:c,a")
    assert found.origins == {"a": (str(x), "a"), "c": (str(y), "c")}
    assert gather(f"{tmp_path}/*.json:b").evalset.ids == ["x:b", "y:b"]
    assert gather(f"{tmp_path}/z*.json:d").evalset.ids == ["d"]


@pytest.mark.parametrize("name", ["x.json", "*.json"])
@pytest.mark.parametrize("ids, told", [("nope", "case 'nope'"), ("a,nope", "'nope'"), (",", "','")])
def test_an_id_that_is_nowhere_chooses_nothing(tmp_path, name, ids, told):
    write(tmp_path / "x.json", "a", "b")
    with pytest.raises(BadInput, match=told):
        gather(f"{tmp_path}/{name}:{ids}")


def test_a_glob_passes_the_config_by_as_a_folder_does(tmp_path):
    write(tmp_path / "one.json", "a")
    write(tmp_path / "two.json", "b")
    (tmp_path / "test_config.json").write_text('{"criteria": {"tool_name_match": 0.5}}')
    found = gather(f"{tmp_path}/*.json")
    assert found.evalset.ids == gather(str(tmp_path)).evalset.ids == ["a", "b"]
    assert found.evalset.metrics == [Criterion("tool_name_match", threshold=0.5)]


def test_a_glob_that_matches_nothing_but_a_config_finds_nothing(tmp_path):
    (tmp_path / "test_config.json").write_text('{"criteria": {}}')
    with pytest.raises(NotFound, match="no file matches"):
        gather(f"{tmp_path}/*.json")


def test_a_table_in_a_folder_counts_only_if_it_is_called_an_eval_set(tmp_path):
    (tmp_path / "sales.csv").write_text("region,total\nnorth,7\n")
    (tmp_path / "cases.evalset.csv").write_text("id,says\na,Hi\n")
    assert gather(str(tmp_path)).evalset.ids == ["a"]


@pytest.mark.parametrize(
    "name, usual",
    [
        ("weather.evalset.json", True),
        ("weather.test.yaml", True),
        ("weather.eval.csv", True),
        ("weather.json", False),
        ("test.json", False),
        ("weather.evalset.py", False),
    ],
)
def test_eval_sets_are_called_so(name, usual):
    assert is_usual(Path(name)) is usual


def test_mocks_are_read_from_data_and_from_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mocks.yaml").write_text("pay: {value: 7}\nlook: {in_turn: [{value: 1}]}\n")
    assert load_mocks(str(tmp_path / "mocks.yaml"))["pay"] == 7
    (tmp_path / "mocks.yaml").write_text("pay: {value: 7}\nlook: 3\n")
    with pytest.raises(BadFile, match=r"mocks\.yaml: line 2, column 1, look: 3 is not a mock"):
        load_mocks(str(tmp_path / "mocks.yaml"))
    (tmp_path / "gathered_mocks.py").write_text("answers = {'pay': 8}\nwrong = 3\n")
    assert load_mocks(str(tmp_path / "gathered_mocks.py:answers")) == {"pay": 8}
    with pytest.raises(BadFile, match="mocks are a mapping"):
        load_mocks(str(tmp_path / "gathered_mocks.py:wrong"))
    with pytest.raises(NotFound, match="say what in it"):
        load_mocks(str(tmp_path / "gathered_mocks.py"))


def test_a_model_is_a_name_or_somebody_s_own(tmp_path):
    (tmp_path / "gathered_models.py").write_text("mine = object()")
    assert load_model("openai:gpt-4o-mini") == "openai:gpt-4o-mini"
    assert load_model(f"{tmp_path}/gathered_models.py:mine").__class__ is object
