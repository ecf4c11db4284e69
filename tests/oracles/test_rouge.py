"""The figures of rouge-score 0.1.2 for 500 pairs of its own test data, stemmed and not."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from greenroom.metrics.rouge import KINDS, rouge

DATA = os.environ.get("GREENROOM_DATA")

pytestmark = pytest.mark.skipif(
    not DATA, reason="GREENROOM_DATA names no folder with rouge_pairs.jsonl"
)


def recorded() -> list[dict[str, Any]]:
    lines = (Path(DATA or "") / "rouge_pairs.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stemmed", [True, False], ids=["stem", "nostem"])
def test_every_recorded_figure_is_reached(kind, stemmed):
    pairs = recorded()
    assert len(pairs) == 500
    for pair in pairs:
        found = rouge(pair["target"], pair["prediction"], kind, stemmed)
        wanted = pair["stem" if stemmed else "nostem"][kind]
        assert list(found) == pytest.approx(wanted, rel=0, abs=1e-9), pair["i"]
