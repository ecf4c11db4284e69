"""The sets of the page are the files that the terminal named, also when one of them goes away."""

from pathlib import Path

import pytest

from greenroom.apps.web.sets_page import SetFiles
from greenroom.errors import BadFile, NotFound
from web.serving import cases


def test_a_set_that_is_not_there_is_named_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no eval set '.*refunds\.yaml'"):
        SetFiles([str(tmp_path / "refunds.yaml")])


def test_a_set_deleted_while_it_is_edited_takes_nothing_else_along(tmp_path: Path) -> None:
    for name in ("refunds", "others"):
        (tmp_path / f"{name}.yaml").write_text(cases(2))
    sets = SetFiles([str(tmp_path / "refunds.yaml"), str(tmp_path / "others.yaml")])
    opened = sets.read("refunds")
    (tmp_path / "refunds.yaml").unlink()
    gone, other = sets.lines()
    assert "refunds.yaml" in gone.why
    assert other.cases == 2
    with pytest.raises(BadFile, match=r"was deleted since you opened it\. Your text is still here"):
        sets.save("refunds", opened.text, opened.digest)
    (tmp_path / "refunds.yaml").write_text(opened.text)
    assert sets.save("refunds", f"{opened.text}\n", opened.digest).text.endswith("\n\n")


def test_a_set_is_found_by_what_it_calls_itself(tmp_path: Path) -> None:
    (tmp_path / "second-draft.yaml").write_text(
        "version: 1\nid: refunds\ncases: [{id: a, says: hi}]\n"
    )
    (tmp_path / "torn.yaml").write_text("cases: [")
    sets = SetFiles([str(tmp_path)])
    assert sets.called("refunds").id == "second-draft"
    assert [line.evalset for line in sets.lines()] == ["refunds", ""]
    with pytest.raises(NotFound, match="second-draft"):
        sets.called("second-draft")
