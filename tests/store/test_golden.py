"""Stores that earlier versions have written are read, resumed, compared and scored as they were then."""

import json
from pathlib import Path
from shutil import copytree

import pytest

from store.golden.shop import found, written

GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize("name", ["format-1"])
async def test_a_golden_store_says_what_it_has_always_said(tmp_path: Path, name: str) -> None:
    place = Path(copytree(GOLDEN / name, tmp_path / "store"))
    assert written(await found(place)) == json.loads((GOLDEN / f"{name}.json").read_text())
