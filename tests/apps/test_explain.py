"""`greenroom explain` says what an error means, and every error's message points there."""

import runpy
from pathlib import Path

import pytest

from greenroom.agents.schema import SchemaConflict
from greenroom.apps.cli.explain import ERRORS, explained_name
from greenroom.errors import BadFile, ToolRefused

ROOT = Path(__file__).parent.parent.parent


def test_an_error_is_explained_whatever_the_case_of_its_name(greenroom):
    result = greenroom("explain", "toolrefused")
    assert result.exit_code == 0
    assert result.stdout.startswith("ToolRefused\n\nA tool was called that has no mock")
    assert "Case(mocks=" in result.stdout


def test_without_a_name_all_errors_are_listed(greenroom):
    lines = greenroom("explain").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(ERRORS)


def test_an_unknown_error_is_answered_with_the_nearest(greenroom):
    result = greenroom("explain", "ToolRefuzed")
    assert result.exit_code == 3
    assert "Did you mean ToolRefused?" in result.stderr


def test_a_part_of_a_name_finds_the_errors_that_have_it(greenroom):
    assert "Did you mean BadFile?" in greenroom("explain", "file").stderr
    found = greenroom("explain", "bad").stderr
    assert "Did you mean BadInput or " in found
    assert all(name in found for name in ERRORS if name.startswith("Bad"))


def test_a_name_that_is_like_no_other_is_not_guessed(greenroom):
    result = greenroom("explain", "Unmocked")
    assert result.stderr.startswith("greenroom: no error is called 'Unmocked'. `greenroom explain`")


def test_a_command_that_stops_says_where_more_is_said(greenroom, tmp_path):
    result = greenroom("eval", "run", tmp_path / "gone.py")
    assert result.exit_code == 3
    assert result.stderr.endswith("\nMore: greenroom explain NotFound\n")


def test_an_error_of_a_finer_kind_is_explained_by_the_one_it_descends_from():
    assert explained_name(SchemaConflict("x")) == "BadAgent"
    assert explained_name(BadFile("x")) == "BadFile"
    assert explained_name(ValueError("x")) == ""


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_says_what_it_is_and_what_to_do(name):
    meaning, *advice = (ERRORS[name].__doc__ or "").strip().split("\n\n")
    assert meaning.endswith(".")
    assert advice, f"{name} does not say what to do"


def test_the_page_of_errors_is_what_the_source_says():
    script = runpy.run_path(str(ROOT / "scripts" / "errors_reference.py"))
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert script["page"]() == page, "run scripts/errors_reference.py"
    assert f"\n## {ToolRefused.__name__}\n" in page
