"""Two rows of things laid side by side: who fits whom, in order or not.

Both rows are given as `fitting`: for each wanted thing the places of the made things that fit it,
ascending.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

Fitting = Sequence[Sequence[int]]
Pairs = dict[int, int]
"""The place of a wanted thing and the place of the made thing that stands for it."""


def pairs_in_order(fitting: Fitting, made: int) -> Pairs:
    """As many pairs as possible that do not cross: a longest common subsequence."""
    # best[i][j]: how many pairs the wanted things from i and the made things from j can form.
    best = [[0] * (made + 1) for _ in range(len(fitting) + 1)]
    for i in range(len(fitting) - 1, -1, -1):
        fits, row, below = set(fitting[i]), best[i], best[i + 1]
        for j in range(made - 1, -1, -1):
            row[j] = below[j + 1] + 1 if j in fits else max(below[j], row[j + 1])
    found: Pairs = {}
    i = j = 0
    while i < len(fitting) and j < made:
        if j in fitting[i]:
            found[i], i, j = j, i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def most_pairs(fitting: Fitting, begin: Pairs | None = None) -> Pairs:
    """As many pairs as possible in any order, each thing in one pair only.

    Things that are paired in `begin` stay paired, though perhaps with another.
    """
    pairs = dict(begin or {})
    taken = {j: i for i, j in pairs.items()}
    for start in range(len(fitting)):
        if start not in pairs:
            _make_room(start, fitting, pairs, taken)
    return pairs


def _make_room(start: int, fitting: Fitting, pairs: Pairs, taken: dict[int, int]) -> None:
    """Pair `start`, moving others to another partner where that helps (an augmenting path)."""
    came_from: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        i = waiting.popleft()
        for j in fitting[i]:
            if j in came_from:
                continue
            came_from[j] = i
            if j not in taken:
                return _move_along(j, came_from, pairs, taken)
            waiting.append(taken[j])
    return None


def _move_along(j: int, came_from: Pairs, pairs: Pairs, taken: dict[int, int]) -> None:
    while True:
        i = came_from[j]
        before = pairs.get(i)
        pairs[i], taken[j] = j, i
        if before is None:
            return
        j = before


def in_order(pairs: Pairs) -> set[int]:
    """The wanted things of the most pairs that do not cross (a longest rising row)."""
    ends: list[int] = []
    tails: list[int] = []
    previous: dict[int, int | None] = {}
    for i in sorted(pairs):
        place = bisect_left(ends, pairs[i])
        previous[i] = tails[place - 1] if place else None
        ends[place : place + 1] = [pairs[i]]
        tails[place : place + 1] = [i]
    found: set[int] = set()
    last = tails[-1] if tails else None
    while last is not None:
        found.add(last)
        last = previous[last]
    return found
