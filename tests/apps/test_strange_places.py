"""What is not a plain file of ours is refused before anything is read from it or written to it."""

import gzip
import os
import zipfile
from pathlib import Path

import pytest

from greenroom import Ledger, Report
from greenroom.errors import BadFile, BadLedger, StoreRefused
from greenroom.ledger import text_files
from greenroom.world.answers import AnswerCache

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def strange(kind: str, folder: Path) -> Path:
    place = folder / "strange.json"
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "device":
            return Path("/dev/zero")
        case "folder":
            place.mkdir()
        case "zip":
            with zipfile.ZipFile(place, "w") as packed:
                packed.writestr("report.json", "{}")
        case "gzip":
            place.write_bytes(gzip.compress(b"{}"))
        case "binary":
            place.write_bytes(b'{"a": "\x00"}')
        case _:
            place.write_text("{}".rjust(2000))
    return place


KINDS = ("pipe", "device", "folder", "zip", "gzip", "binary", "too long")


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_or_ledger_is_a_plain_file_of_bounded_length(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.results.files.MAX_KEPT", 1000)
    monkeypatch.setattr("greenroom.ledger.ledger.MAX_KEPT", 1000)
    place = strange(kind, tmp_path)
    with pytest.raises(BadFile, match=str(place)):
        Report.load(place)
    with pytest.raises(BadLedger, match=str(place)):
        Ledger.load(place)


@pytest.mark.parametrize("kind", KINDS[:6])
def test_strange_files_end_a_command_with_code_3(kind: str, author, greenroom, tmp_path: Path):
    author("agent = clerk('ok')\none = Case('one', says='Hi', metrics=[contains('ok')])")
    place = strange(kind, tmp_path)
    for words in (
        ["eval", "compare", place, place],
        ["eval", "run", "shop.py", "--baseline", place],
        ["eval", "run", "shop.py", place],
        ["eval", "run", "shop.py", "--config", place],
        ["eval-set", "validate", place],
    ):
        result = greenroom(*words)
        assert result.exit_code == 3, (words, result.output)
        assert str(place) in result.output, words


def test_files_that_are_packed_are_called_by_their_name(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="a zip archive"):
        text_files.text_of(strange("zip", tmp_path))


def play(author, greenroom, store: Path):
    author("agent = clerk('ok')\none = Case('one', says='Hi', metrics=[contains('ok')])")
    return greenroom("eval", "run", "shop.py", "--store", store)


def test_a_store_below_a_link_is_as_good_as_any(author, greenroom, tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert play(author, greenroom, tmp_path / "link" / "kept").exit_code == 0


@pytest.mark.parametrize("name", ["", "runs.db", "runs.db-wal", "journals"])
def test_a_store_that_is_a_link_or_holds_one_is_refused(
    name: str, author, greenroom, tmp_path: Path
):
    kept, elsewhere = tmp_path / "kept", tmp_path / "elsewhere"
    assert play(author, greenroom, kept).exit_code == 0
    database = "runs.db"
    place = kept / name.replace("runs.db", database)
    if place.exists():
        place.rename(elsewhere)
    place.symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir()) if elsewhere.is_dir() else None
    for result in (play(author, greenroom, kept), greenroom("runs", "list", "--store", kept)):
        assert result.exit_code == 3
        assert "symbolic link" in result.stderr
    assert before is None or sorted(elsewhere.iterdir()) == before


def test_the_usual_store_is_refused_too_if_it_is_a_link(
    author, greenroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("GREENROOM_STORE", raising=False)
    author("agent = clerk('ok')\none = Case('one', says='Hi', metrics=[contains('ok')])")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".greenroom").symlink_to(tmp_path / "elsewhere")
    assert greenroom("eval", "run", "shop.py").exit_code == 3
    assert list((tmp_path / "elsewhere").iterdir()) == []


@AS_ROOT
@pytest.mark.parametrize("name", ["", "runs.db", "journals"])
def test_a_store_of_another_user_is_refused_even_to_root(
    name: str, author, greenroom, tmp_path: Path
):
    kept = tmp_path / "kept"
    assert play(author, greenroom, kept).exit_code == 0
    (kept / "journals").mkdir(exist_ok=True)
    place = kept / name.replace("runs.db", "runs.db")
    os.chown(place, 12345, 12345)
    for result in (play(author, greenroom, kept), greenroom("runs", "list", "--store", kept)):
        assert result.exit_code == 3
        assert "belongs to user 12345" in result.stderr
        assert "chown" in result.stderr


def test_answers_of_judges_are_kept_in_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoreRefused, match="symbolic link"):
        AnswerCache(tmp_path / "link")
