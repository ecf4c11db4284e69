"""One more case in a file: all else stays, and the file is judged as before."""

import pytest

from greenroom import Case, attach
from greenroom.cases import EvalSet
from greenroom.cases.files import read_evalset, write_evalset
from greenroom.cases.files.additions import add_cases
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
