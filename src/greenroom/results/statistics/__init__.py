"""Intervals, exact and sequential tests, agreement: how certain a figure is."""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy

if TYPE_CHECKING:
    from greenroom.results.statistics.sequential import Sequential
    from greenroom.results.statistics.streams import Drift, StreamRate

__all__ = ["Drift", "Sequential", "StreamRate"]

__getattr__, __dir__ = lazy(__name__, {"sequential": "Sequential", "streams": "Drift StreamRate"})
