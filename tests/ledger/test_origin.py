"""Where an error arose: in its author's code, named so that it means something elsewhere too."""

import json
from pathlib import Path

import pytest

from greenroom import Case
from greenroom.ledger.origin import place_of, summarize_error

HERE = "test_origin.py"


def raised(work: object, *args: object) -> Exception:
    try:
        work(*args)  # pyright: ignore[reportCallIssue]
    except Exception as error:
        return error
    raise AssertionError("it should have failed")


def of_line(number: int, folder: Path) -> Exception:
    """An error of a script in this folder, raised in that line of it."""
    script = folder / "desk.py"
    source = "\n" * (number - 1) + "raise KeyError('order')\n"
    return raised(exec, compile(source, script, "exec"))


def test_a_script_below_the_folder_one_works_in_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_of(of_line(3, tmp_path / "agents")) == str(Path("agents", "desk.py")) + ":3"
    assert summarize_error(of_line(7, tmp_path)) == "KeyError: 'order' (desk.py:7)"


def test_one_that_lies_elsewhere_is_named_without_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert place_of(of_line(2, tmp_path)) == "desk.py:2"


def test_what_a_library_or_we_raised_was_called_by_the_author() -> None:
    for error in (raised(json.loads, "no JSON"), raised(Case, "")):
        file, line = place_of(error).rsplit("/", 1)[-1].split(":")
        assert (file, line.isdecimal()) == (HERE, True)


def test_an_error_that_passed_no_code_of_an_author_has_no_place() -> None:
    assert summarize_error(ValueError("never raised")) == "ValueError: never raised"
    assert summarize_error(ValueError()) == "ValueError"
    assert place_of(raised(json.loads, "no JSON").with_traceback(None)) == ""


def test_seen_from_the_root_a_script_is_named_without_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert place_of(of_line(2, tmp_path)) == "desk.py:2"


def test_an_error_is_called_by_its_class_whatever_it_says_of_itself() -> None:
    class Declined(Exception):
        error_type = "card_declined"

    class Speechless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert summarize_error(Declined("no money")) == "Declined: no money"
    assert summarize_error(Speechless("nothing")) == "Speechless"
    assert summarize_error(RuntimeError("again"), "ValueError") == "ValueError: again"


def test_a_folder_that_is_gone_hinders_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert place_of(of_line(2, tmp_path)) == "desk.py:2"
