"""The place that was probably meant by one that nothing writes."""

from collections.abc import Iterable


def nearest_place(meant: str, known: Iterable[str]) -> str:
    """The known place with the nearest name, by edits; empty if none is near."""
    scope, _, key = meant.partition(".")
    allowed, found = max(1, len(key) // 3), ""
    for place in sorted(set(known)):
        other_scope, _, other = place.partition(".")
        distance = edits(key, other) + (other_scope != scope)
        if place != meant and distance <= allowed:
            found, allowed = place, distance - 1
    return found


def edits(one: str, other: str) -> int:
    """How many letters must be put in, taken out, changed or swapped with their neighbour."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        here = [i]
        for j, beside in enumerate(other, 1):
            cost = min(last[j] + 1, here[j - 1] + 1, last[j - 1] + (letter != beside))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == beside:
                cost = min(cost, before[j - 2] + 1)
            here.append(cost)
        before, last = last, here
    return last[-1]
