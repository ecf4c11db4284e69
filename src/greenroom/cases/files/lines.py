"""Which lines places stand on: the paths to look for, and what was found along them."""

from collections.abc import Iterable

from greenroom.cases.places import Key, keys_of

Branches = dict[Key, "Branches"]
"""Places as a tree: each step leads to the steps after it."""

Found = dict[tuple[Key, ...], int]
"""The line of each place that was found, by the steps to it."""


def branches_to(places: Iterable[str]) -> Branches:
    """The tree of all steps that lead to these places."""
    tree: Branches = {}
    for place in places:
        branch = tree
        for key in keys_of(place):
            branch = branch.setdefault(key, {})
    return tree


def line_of(place: str, found: Found) -> int | None:
    """The line of a place, or of the nearest thing around it that is there."""
    keys = tuple(keys_of(place))
    while keys and keys not in found:
        keys = keys[:-1]
    return found.get(keys)
