"""Results that are read each time they are asked for and never all kept: a run may have a million."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import cast, overload

from greenroom.results.facts import Facts
from greenroom.results.report import Report
from greenroom.results.result import CaseResult


class ReadResults(Sequence[CaseResult], ABC):
    """The results of a run in the order of its cases, the trials of a case one after the other."""

    @abstractmethod
    def read(self, first: int = 0, count: int | None = None) -> Iterator[CaseResult]:
        """This many results, from this one on; each is created when it is asked for."""

    @abstractmethod
    def facts(self) -> Iterator[Facts]:
        """The facts of all results, which are read in a fraction of the time."""

    @abstractmethod
    def of_case(self, case_id: str) -> list[CaseResult]:
        """The trials of one case."""

    def __iter__(self) -> Iterator[CaseResult]:
        return self.read()

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CaseResult]: ...
    def __getitem__(self, index: int | slice) -> CaseResult | Sequence[CaseResult]:
        if isinstance(index, slice):
            places = range(len(self))[index]
            if not places:
                return []
            first, last = sorted((places[0], places[-1]))
            found = list(islice(self.read(first, last - first + 1), 0, None, abs(places.step)))
            return found if places.step > 0 else found[::-1]
        return next(self.read(range(len(self))[index], 1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        others = cast("Sequence[object]", other)
        return len(self) == len(others) and all(a == b for a, b in zip(self, others, strict=True))

    def __hash__(self) -> int:
        raise TypeError("results cannot be hashed: what they hold is read again each time")


def cases_in(report: Report) -> Callable[[str], Sequence[CaseResult]]:
    """A function that gives the trials of a case, one case after another; none for an unknown case."""
    if isinstance(report.results, ReadResults):
        return report.results.of_case
    found = report.by_case()
    return lambda case_id: found.get(case_id, [])
