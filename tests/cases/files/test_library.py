"""Eval sets kept by name, in memory or in a folder."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Case, EvalSet, Expect
from greenroom.cases import EvalSets, write_evalset
from greenroom.errors import BadInput, NotFound

REFUNDS = EvalSet("refunds", [Case("late", says="Where is it?", expect=Expect(response="Soon."))])


@pytest.fixture(params=["memory", "folder"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> EvalSets:
    return EvalSets(None if request.param == "memory" else tmp_path / "evals")


def test_sets_are_kept_found_listed_and_removed_by_name(library: EvalSets) -> None:
    library["refunds"] = REFUNDS
    library["other one"] = EvalSet("other", [Case("hello", says="Hello.")])
    assert library["refunds"] == REFUNDS
    assert sorted(library) == ["other one", "refunds"]
    del library["other one"]
    assert list(library) == ["refunds"]


def test_a_set_that_is_not_there_is_named_beside_those_that_are(library: EvalSets) -> None:
    library["refunds"] = REFUNDS
    with pytest.raises(NotFound, match=r"no eval set 'refund'; there are \['refunds'\]"):
        _ = library["refund"]
    with pytest.raises(KeyError):
        del library["refund"]
    assert library.get("refund") is None


def test_a_set_is_replaced_by_the_next_of_its_name(library: EvalSets) -> None:
    library["refunds"] = REFUNDS
    library["refunds"] = EvalSet("refunds", [Case("early", says="So soon?")])
    assert [case.id for case in library["refunds"]] == ["early"]
    assert len(library) == 1


def test_a_file_of_another_tool_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "refunds.evalset.json"
    write_evalset(EvalSet("refunds", [Case("late", says="Where is it?")]), file, shape="adk")
    library = EvalSets(tmp_path)
    kept = library["refunds"]
    library["refunds"] = kept
    assert library["refunds"].shape == "adk"
    assert [path.name for path in tmp_path.iterdir()] == ["refunds.evalset.json"]


@given(st.text(min_size=1, max_size=20).filter(str.strip))
def test_no_name_leads_out_of_the_folder(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp("library")
    library = EvalSets(folder / "inside")
    try:
        library[name] = REFUNDS
    except (BadInput, UnicodeEncodeError):
        return
    assert [path.name for path in folder.iterdir()] == ["inside"]
    assert list(library) == [name]
    assert library[name] == REFUNDS


@pytest.mark.parametrize("name", ["", "  ", "x" * 500])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="cannot name an eval set"):
        EvalSets(tmp_path)[name] = REFUNDS
