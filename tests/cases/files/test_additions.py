"""One more case in a file: all else stays, and the file is judged as before."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from greenroom import Case, attach
from greenroom.cases import EvalSet
from greenroom.cases.files import read_evalset, write_evalset
from greenroom.cases.files.additions import add_cases
from greenroom.cases.files.changes import changing
from greenroom.errors import BadFile

MINE = """\
# mine
version: 1
id: shop
cases:
  # all of them
  - id: one
    says: "Where is order #7?"  # the parcel
"""


def test_comments_and_margins_stay(tmp_path):
    file = tmp_path / "shop.yaml"
    file.write_text(MINE)
    add_cases(file, Case("two", "Hi"))
    assert file.read_text() == MINE + "  - id: two\n    says: Hi\n"


@pytest.mark.parametrize("name", ["shop.evalset.json", "shop.yaml"])
def test_a_foreign_file_keeps_its_shape_and_how_it_is_judged(tmp_path, name):
    file = tmp_path / name
    write_evalset(EvalSet("shop", [Case("one", "Where is order #7?")]), file, shape="adk")
    before = read_evalset(file)
    add_cases(file, Case("two", "Hi"))
    after = read_evalset(file)
    assert after.ids == ["one", "two"]
    assert (after.shape, after.usual) == ("adk", before.usual)
    assert after.usual


def test_comments_that_would_be_lost_are_a_refusal(tmp_path):
    foreign, flow = tmp_path / "adk.yaml", tmp_path / "flow.yaml"
    write_evalset(EvalSet("shop", [Case("one", "Hi")]), foreign, shape="adk")
    foreign.write_text(foreign.read_text() + "# mine\n")
    flow.write_text("version: 1\nid: flow\ncases: [{id: one, says: Hi}]  # mine\n")
    for file, advice in ((foreign, "Add the cases yourself"), (flow, "- id: two\n  says: Hi")):
        before = file.read_text()
        with pytest.raises(BadFile, match=advice):
            add_cases(file, Case("two", "Hi"))
        assert file.read_text() == before


def test_what_the_case_attaches_is_kept_beside_the_file(tmp_path):
    file = tmp_path / "shop.yaml"
    file.write_text(MINE)
    add_cases(file, Case("two", "Hi", attachments=[attach(b"%PDF-1.4 bill", "application/pdf")]))
    [kept] = [one for one in (tmp_path / "attachments").rglob("*") if one.is_file()]
    assert kept.read_bytes() == b"%PDF-1.4 bill"


@pytest.mark.parametrize("name", ["shop.yaml", "new/shop.evalset.json"])
def test_cases_that_are_added_at_once_are_all_there(tmp_path, name):
    file = tmp_path / name

    def add(number):
        add_cases(file, Case(f"c{number}", "Hi"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(16)))
    assert sorted(read_evalset(file).ids) == sorted(f"c{number}" for number in range(16))


def test_what_was_read_is_still_there_when_it_is_written(tmp_path):
    file = tmp_path / "shop.yaml"
    add_cases(file, Case("first", "Hi"))

    def number_of_cases(_):
        with changing(file):
            count = len(read_evalset(file))
            add_cases(file, Case(f"c{count}", "Hi"))
        return count

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(number_of_cases, range(8))) == [*range(1, 9)]
