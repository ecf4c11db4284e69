"""Files of every shape as they have been written: read today, and written again letter for letter."""

from pathlib import Path

import pytest

from greenroom.cases import read_evalset, write_evalset

GOLDEN = sorted((Path(__file__).parent / "golden").iterdir())


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name)
def test_a_file_that_was_written_before_is_read_and_written_the_same(
    file: Path, tmp_path: Path
) -> None:
    found = read_evalset(file)
    write_evalset(found, tmp_path / file.name, shape=found.shape)
    assert (tmp_path / file.name).read_text() == file.read_text()


def test_there_is_a_file_of_every_shape_of_ours() -> None:
    shapes = {read_evalset(file).shape for file in GOLDEN}
    ours = {"greenroom", "adk", "adk-flat", "adk-named", "agentflow", "queries", "sessions"}
    assert shapes == {*ours, "fluent", "scenarios", "table"}
