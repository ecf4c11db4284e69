"""What `[tool.greenroom]` of a project says, and where it is wrong."""

from pathlib import Path

import pytest

from greenroom.errors import BadFile
from greenroom.ledger.redaction import redactor
from greenroom.models.prices import own_prices
from greenroom.project import nearest_project, project_in
from greenroom.store.configuration import configured_place


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pyproject.toml"


def test_the_nearest_file_counts_and_other_tools_are_left_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write_text('[tool.ruff]\nlines = 3\n\n[tool.greenroom]\nstore = "runs"\n')
    (project.parent / "deep").mkdir()
    monkeypatch.chdir(project.parent / "deep")
    found = nearest_project()
    assert found is not None
    assert (found.file, found.settings) == (project, {"store": "runs"})
    assert configured_place() == str(project.parent / "runs")


def test_every_misspelt_setting_is_named_with_its_line_by_whatever_reads_the_file(
    project: Path,
) -> None:
    project.write_text('[tool.greenroom]\nstor = "x"\n\n# secrets\nredact_envs = ["A"]\n')
    for read in (configured_place, redactor, own_prices):
        with pytest.raises(BadFile) as refused:
            read()
        first, second = str(refused.value).splitlines()
        assert first.startswith(
            f"{project}, line 2: [tool.greenroom] has no setting 'stor'. Did you"
        )
        assert "Did you mean 'store'?" in first
        assert second.startswith(f"{project}, line 5: ")
        assert "Did you mean 'redact_env'?" in second


def test_all_wrong_prices_are_named_at_once(project: Path) -> None:
    right = '{ input = 1, output = 2, per = "million" }'
    project.write_text(
        f'[tool.greenroom.prices]\n"a:one" = 3\n"a:two" = {right}\n\'a:three\' = {{ inptu = 1 }}\n'
    )
    with pytest.raises(BadFile) as refused:
        own_prices()
    first, second = str(refused.value).splitlines()
    assert first.startswith(f"{project}, line 2: the price of 'a:one' is 3; write")
    assert second.startswith(f"{project}, line 4: the price of 'a:three' has ['inptu']; write")


def test_a_setting_is_found_however_people_write_it(project: Path) -> None:
    project.write_text(
        'tool.x = 1\n[ tool . greenroom ]\n"store" = "a"\nprices."a:b".input = 1\n'
        "[tool.greenroom.pytest]\ntrials = 1\n"
    )
    found = project_in(project)
    lines = [found.place(name).rpartition(" ")[2] for name in ("store", "prices", "pytest")]
    assert lines == ["3", "4", "5"]
    assert found.place("redact_env") == str(project)


def test_a_file_that_says_something_else_under_the_name_is_refused(project: Path) -> None:
    project.write_text("[tool]\ngreenroom = 3\n")
    with pytest.raises(
        BadFile, match=r"'greenroom' is 3; settings belong under \[tool.greenroom\]"
    ):
        project_in(project)
