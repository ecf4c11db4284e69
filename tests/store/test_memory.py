"""Finished trials leave their ledgers on disk: memory does not grow with their number."""

from pathlib import Path

import pytest

from store.large_ledgers import grown

MEGABYTE = 1_000_000


@pytest.mark.heavy
def test_ledgers_do_not_pile_up_in_memory(tmp_path: Path) -> None:
    few = grown(tmp_path / "few", 20, MEGABYTE, exact=True)
    many = grown(tmp_path / "many", 60, MEGABYTE, exact=True)
    assert many < 35
    assert many - few < 10


@pytest.mark.heavy
def test_cases_under_way_hold_their_own_ledgers_and_few_others(tmp_path: Path) -> None:
    # Eight under way, each as events and as lines, and as much again on its way to the disk.
    few = grown(tmp_path / "few", 16, MEGABYTE, concurrency=8, exact=True)
    many = grown(tmp_path / "many", 48, MEGABYTE, concurrency=8, exact=True)
    assert many < 45
    assert many - few < 10
