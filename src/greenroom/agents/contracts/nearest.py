"""The place that was probably meant by one that nothing writes."""

from functools import lru_cache


@lru_cache(maxsize=1024)
def nearest_place(meant: str, known: frozenset[str]) -> str:
    """The known place with the nearest name, by edits; empty if none is near."""
    scope, _, key = meant.partition(".")
    allowed, found = max(1, len(key) // 3), ""
    for place in sorted(known):
        other_scope, _, other = place.partition(".")
        # Edits are counted for few names only: each missing letter needs an edit.
        missing = max(abs(len(key) - len(other)), len({*key} - {*other}))
        if place == meant or missing > allowed:
            continue
        distance = edits(key, other, allowed) + (other_scope != scope)
        if distance <= allowed:
            found, allowed = place, distance - 1
    return found


def edits(one: str, other: str, most: int = 1_000_000) -> int:
    """How many letters must be inserted, removed, changed or swapped with their neighbour.

    If there are more than `most`, they are not counted further.
    """
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        here = [i]
        for j, beside in enumerate(other, 1):
            cost = min(last[j] + 1, here[j - 1] + 1, last[j - 1] + (letter != beside))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == beside:
                cost = min(cost, before[j - 2] + 1)
            here.append(cost)
        if min(here) > most:
            return most + 1
        before, last = last, here
    return last[-1]
