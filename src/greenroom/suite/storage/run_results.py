"""The results of a run that is too large for memory: the store has them, except those of trials left out."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from greenroom.cases.evalset import EvalSet
from greenroom.results.data import facts_in, verdict_in
from greenroom.results.facts import Facts, TrialFacts
from greenroom.results.result import CaseResult
from greenroom.results.stored_results import ReadResults
from greenroom.results.trial_verdict import skipped
from greenroom.store.columns import to_column
from greenroom.store.contents import StoreReader
from greenroom.store.ledgers import RunLedgers
from greenroom.store.results import OF_REPORT, changed
from greenroom.store.runs import ReadVerdict
from greenroom.suite.storage.stored_cases import Cases
from greenroom.suite.trial_state import Trial

T = TypeVar("T", bound="Facts")


class RunResults(ReadResults):
    """One result for each trial of a set: from the store as it was at the position `latest`, or left out."""

    def __init__(
        self,
        store: StoreReader,
        run_id: str,
        latest: int,
        names: Cases,
        evalset: EvalSet,
        left_out: Mapping[int, str],
    ) -> None:
        self._store, self._run_id, self._latest = store, run_id, latest
        self._names, self._cases, self._trials = names, evalset.cases, evalset.trials
        self._left_out = left_out
        """Why trials have no result of their own, by their positions."""
        self._ledgers = RunLedgers(store, run_id)

    def __len__(self) -> int:
        return len(self._cases) * self._trials

    def read(self, first: int = 0, count: int | None = None) -> Iterator[CaseResult]:
        """`count` results, from position `first` on."""
        last = len(self) if count is None else min(first + count, len(self))
        return self._results(first, last)

    def facts(self) -> Iterator[Facts]:
        """The parts of all results that figures are computed from."""
        for place, facts in self._whole(facts_in, 0, len(self)):
            case_id = self._cases[place // self._trials].id
            if isinstance(facts, TrialFacts):
                facts.case_id = case_id
                yield facts
            else:
                yield replace(facts, case_id=case_id)

    def of_case(self, case_id: str) -> list[CaseResult]:
        """The trials of one case."""
        if (place := self._places.get(case_id)) is None:
            return []
        first = place * self._trials
        stored = self._names.key(Trial(first, self._cases[place], 1)).case_id
        return [*self._results(first, first + self._trials, "case_id = ?", to_column(stored))]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {case.id: place for place, case in enumerate(self._cases)}

    def _results(
        self, first: int, last: int, only: str = "true", *values: object
    ) -> Iterator[CaseResult]:
        for place, result in self._whole(verdict_in, first, last, only, *values):
            case = self._cases[place // self._trials]
            # The store may have the case under another name, without the secret in it.
            yield replace(result, case_id=case.id, asked=case)

    def _whole(
        self, read: ReadVerdict[T], first: int, last: int, only: str = "true", *values: object
    ) -> Iterator[tuple[int, T | CaseResult]]:
        """What the store has between two positions, and between its rows what was left out."""
        wanted = f"{OF_REPORT} and place >= ? and place < ? and {only} order by place"
        asked = self._trials, self._latest, first, last, *values
        rows = self._store.trials(read, self._run_id, wanted, *asked, ledgers=self._ledgers)
        for _, place, _, found in rows:
            yield from self._skipped(first, place)
            yield place, found
            first = place + 1
        yield from self._skipped(first, last)

    def _skipped(self, first: int, last: int) -> Iterator[tuple[int, CaseResult]]:
        for position in range(first, last):
            if (why := self._left_out.get(position)) is None:
                raise changed(self._run_id)
            place, number = divmod(position, self._trials)
            yield position, replace(skipped(self._cases[place], why), trial=number + 1)
