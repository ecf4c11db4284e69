"""Gigabytes of ledgers, played with the memory of a small machine."""

from pathlib import Path

import pytest

from store.large_ledgers import grown

pytestmark = pytest.mark.torture

MOST = 300
"""Megabytes."""


@pytest.mark.parametrize("concurrency", [4, 64])
def test_a_thousand_ledgers_of_a_megabyte_fit(tmp_path: Path, concurrency: int) -> None:
    few = grown(tmp_path / "few", 200, 1_000_000, concurrency=concurrency)
    many = grown(tmp_path / "many", 1000, 1_000_000, concurrency=concurrency)
    assert many < MOST
    assert many - few < 80  # a tenth of what the other 800 weigh


@pytest.mark.parametrize("concurrency", [4, 64])
def test_ten_thousand_ledgers_of_a_hundred_kilobytes_fit(tmp_path: Path, concurrency: int) -> None:
    assert grown(tmp_path / "store", 10_000, 100_000, concurrency=concurrency) < MOST
