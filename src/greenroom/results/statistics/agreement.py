"""How far people, or a judge and people, agree on the same items, beyond what chance would bring.

Two graders who say yes nine times in ten agree on most items by chance. Kappa corrects for that: 1 is full
agreement, 0 is what chance would bring. Its interval comes from resampling the table of answers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum
from random import Random

from greenroom.results.statistics.intervals import percent

FEWEST = 20
"""With fewer items in common, only their number is reported: two that agree say nothing."""
_DRAWS = 2_000
_SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two graders agree. `str(agreement)` says it in a sentence.

    `luck` is the share of items on which they would agree by chance alone, if each gave their answers as often
    as they do. `kappa` is None where that is all of them, because both always give the same answer, and where
    there are fewer than twenty items. `low` and `high` bound its 95 % interval.
    """

    items: int
    agreed: int
    luck: float = 0.0
    kappa: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def share(self) -> float:
        """The share of items on which they agree; 0 if they have none in common."""
        return self.agreed / self.items if self.items else 0.0

    @property
    def is_enough(self) -> bool:
        """Whether there are enough items to measure agreement."""
        return self.items >= FEWEST

    def __str__(self) -> str:
        if not self.is_enough:
            return f"have graded {self.items} of the same items; it takes {FEWEST} to measure agreement"
        said = f"agree on {self.agreed} of {self.items} ({percent(self.share, 0)}); "
        if self.kappa is None or self.low is None or self.high is None:
            return f"{said}both always give the same answer, so chance explains all of it"
        bounds = f"{self.low:.2f} to {self.high:.2f}"
        return f"{said}by chance it would be {percent(self.luck, 0)}: kappa {self.kappa:.2f} ({bounds})"


def agreement_between(one: Mapping[str, str], other: Mapping[str, str]) -> Agreement:
    """Cohen's kappa of two graders, each given as answers by item, over the items that both graded."""
    table = Counter((one[item], other[item]) for item in one if item in other)
    items = sum(table.values())
    if not items:
        return Agreement(0, 0)
    words = sorted({word for pair in table for word in pair})
    cells = [table[pair] for pair in product(words, words)]
    agreed = sum(cells[:: len(words) + 1])
    luck = _luck(cells, len(words))
    if len(words) == 1 or items < FEWEST:
        return Agreement(items, agreed, luck)
    low, high = _interval(cells, len(words))
    kappa = (agreed / items - luck) / (1 - luck)
    return Agreement(items, agreed, luck, kappa, min(low, kappa), max(high, kappa))


def _luck(cells: Sequence[float], words: int) -> float:
    """How often they would agree if their answers were independent."""
    total = sum(cells)
    rows = [sum(cells[n * words : (n + 1) * words]) for n in range(words)]
    columns = [sum(cells[n::words]) for n in range(words)]
    return sum(row * column for row, column in zip(rows, columns, strict=True)) / total**2


def _interval(cells: Sequence[int], words: int) -> tuple[float, float]:
    """The middle 95 % of kappa over tables drawn like this one.

    A plain bootstrap says "1 to 1" of twenty equal answers. So the shares of the cells are drawn (a Bayesian
    bootstrap), with one more answer spread over all of them: what was not seen may still happen.
    """
    random, more = Random(_SEED), 1 / len(cells)
    found: list[float] = []
    for _ in range(_DRAWS):
        drawn = [random.gammavariate(count + more, 1.0) for count in cells]
        luck, total = _luck(drawn, words), sum(drawn)
        found.append((sum(drawn[:: words + 1]) / total - luck) / (1 - luck) if luck < 1 else 1.0)
    found.sort()
    edge = _DRAWS // 40
    return found[edge], found[-edge - 1]


def alpha(units: Iterable[Sequence[str]]) -> float | None:
    """Krippendorff's alpha: how far any number of graders agree; a missing answer is not a disagreement.

    Each unit holds its graders' answers. None if no two answers can differ, or if fewer than twenty units have
    two answers.
    """
    units = [unit for unit in units if len(unit) > 1]
    if len(units) < FEWEST:
        return None
    weights: dict[tuple[str, str], float] = {}
    for unit in units:
        counts = Counter(unit)
        for (a, times), (b, others) in product(counts.items(), repeat=2):
            if pairs := times * (others - (a == b)):
                weights[a, b] = weights.get((a, b), 0.0) + pairs / (len(unit) - 1)
    words = {word for word, _ in weights}
    totals = {
        word: fsum(weight for (a, _), weight in weights.items() if a == word) for word in words
    }
    differing = fsum(weight for (a, b), weight in weights.items() if a != b)
    by_luck = fsum(totals[a] * totals[b] for a, b in product(words, repeat=2) if a != b)
    return 1 - (fsum(totals.values()) - 1) * differing / by_luck if by_luck else None
