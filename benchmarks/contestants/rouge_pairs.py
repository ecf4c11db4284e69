"""ROUGE alone: CPU of pairs of forty varied words, by Greenroom and by rouge-score, nothing else."""

import json
import sys
from collections.abc import Callable

from rouge_score.rouge_scorer import RougeScorer
from scenario import compared_rows
from stopwatch import cpu_seconds

from greenroom.metrics.rouge import KINDS, RougeKind, rouge

Compare = Callable[[str, str], object]


def measured(compare: Compare, pairs: list[tuple[str, str]]) -> float:
    """CPU seconds for one pair."""
    begun = cpu_seconds()
    for reference, said in pairs:
        compare(reference, said)
    return (cpu_seconds() - begun) / len(pairs)


def contestants(kind: RougeKind, stem: bool) -> dict[str, Compare]:
    """Both, for one kind of ROUGE."""
    return {
        "greenroom": lambda reference, said: rouge(reference, said, kind, stem),
        "rouge-score": RougeScorer([kind], use_stemmer=stem).score,
    }


def main(count: int) -> None:
    """Measure every kind, and print the figures as a line of JSON."""
    # Texts of its own for every kind: what one kind stemmed must not help the next.
    rows = compared_rows(count * 2 * len(KINDS))
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        for stem in (True, False):
            part, rows = rows[:count], rows[count:]
            pairs = [(row.reference, row.answer) for row in part]
            name = f"{kind}, {'stems' if stem else 'words'}"
            found[name] = {
                who: measured(compare, pairs) for who, compare in contestants(kind, stem).items()
            }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
