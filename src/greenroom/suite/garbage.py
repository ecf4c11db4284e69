"""Garbage collection while many cases run: seldom, because records hold no cycles."""

import gc
from typing import Self

_OFTEN_ENOUGH = 50_000
"""New objects between two looks for cycles; Python's own 700 would look at every other case."""

_open: list["RareCollection"] = []
_before: list[tuple[int, int, int]] = []


class RareCollection:
    """While open, look for cycles seldom; the last one out restores what was set before."""

    def __enter__(self) -> Self:
        if not _open:
            _before.append(gc.get_threshold())
            first, second, third = _before[0]
            # A threshold of zero means that somebody switched collection off.
            gc.set_threshold(max(first, _OFTEN_ENOUGH) if first else 0, second, third)
        _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open.remove(self)
        if not _open:
            gc.set_threshold(*_before.pop())
