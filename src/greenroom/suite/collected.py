"""What a run collects from its trials: results, kept or passed to the caller of a stream, and common notes."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable

from msgspec import Struct, field

from greenroom.cases.scores import NotApplicable
from greenroom.ledger.simulated import SIMULATED
from greenroom.metrics.scores import LEFT_OUT
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import REPLAYED, UNSEEN
from greenroom.results.words import listed, number_of
from greenroom.world.rates import Rates

_SCRIPT = "scripted"
"""A script that answers for the agent and for its judge is two scripts."""
_AHEAD = 16
"""How many results of a stream may wait for the caller."""


class ResultQueue:
    """Results on their way to the caller, who sets the pace. Once it is left, nothing is kept."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[CaseResult | None] = asyncio.Queue()
        self._taken = asyncio.Event()
        self._is_left = False

    def put(self, result: CaseResult) -> None:
        """Add a result."""
        if not self._is_left:
            self._waiting.put_nowait(result)

    async def room(self) -> None:
        """Wait while the caller is far behind."""
        while self._waiting.qsize() > _AHEAD and not self._is_left:
            self._taken.clear()
            await self._taken.wait()

    async def results(self, whole: "asyncio.Future[Report]") -> AsyncGenerator[CaseResult]:
        """The results until the whole is done; leaving ends the whole."""
        whole.add_done_callback(lambda _: self._waiting.put_nowait(None))
        try:
            while (result := await self._waiting.get()) is not None:
                self._taken.set()
                yield result
            await whole
        finally:
            self._is_left = True
            self._taken.set()
            whole.cancel()
            await asyncio.gather(whole, return_exceptions=True)


class CommonNotes(Struct):
    """Notes that a report makes once for all its trials, collected as they end: a large run keeps none of them."""

    _trials: int = 0
    """How many trials there were, without those that were skipped."""
    _said: Counter[str] = field(default_factory=Counter[str])
    """The notes that trials have in common, each with how many have it."""
    _replaced: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The trials in which hooks replaced what a metric found, by the metric."""
    _simulated: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The tools that models answered for, by the beginning of the note that says so, which `_said` counts."""
    _models: set[str] = field(default_factory=set[str])
    _own_judges: Counter[str] = field(default_factory=Counter[str])
    """The models that judged what they had answered themselves, each with in how many trials."""
    _inapplicable: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Why metrics did not apply, by name; None once one has measured something, or failed."""

    def add(self, result: CaseResult) -> None:
        """One more trial."""
        self._trials += result.status != "skipped"
        # A note that holds for every trial with unseen or replayed calls appears once.
        for note in result.notes:
            if note in UNSEEN.values() or note.startswith(f"{REPLAYED}:"):
                self._said[note] += 1
            elif note.startswith(SIMULATED):
                whose, _, tools = note.partition(": ")
                self._simulated.setdefault(whose, set()).update(tools.split(", "))
                self._said[whose] += 1
        for name in result.replaced:
            self._replaced.setdefault(name, []).append(result.label)
        self._models.update(result.models, result.user_models, result.judge_models)
        judges = {name.removesuffix(" (cached)") for name in result.judge_models}
        self._own_judges.update(judges.intersection(result.models))
        for name, outcome in result.scores.items():
            if not isinstance(outcome, NotApplicable):
                self._inapplicable[name] = None
            elif not outcome.why.startswith(LEFT_OUT):
                self._inapplicable.setdefault(name, outcome.why)

    def notes(self, rates: Rates, asked: Iterable[str] = ()) -> list[str]:
        """A line for each: what was not seen, was replayed or replaced; a rate that limited no model.

        `asked` are the metrics that were asked for of all cases.
        """
        idle = [
            f"{name} was asked for, but applied to no case: {why}"
            for name in asked
            if (why := self._inapplicable.get(name))
        ]
        partial = [
            f"{name!r} judged its own answers{self._where(count)}; models favour their own words, so let "
            f"another one judge"
            for name, count in sorted(self._own_judges.items())
            if name != _SCRIPT
        ]
        replaced = [
            f"a hook replaced what {name!r} found in {number_of(len(labels), 'trial')}: {listed(labels)}"
            for name, labels in self._replaced.items()
        ]
        simulated = [
            f"{whose}: {', '.join(sorted(tools))}{self._where(self._said[whose])}"
            for whose, tools in self._simulated.items()
        ]
        said = [
            f"{note}{self._where(count)}"
            for note, count in sorted(self._said.items())
            if note not in self._simulated
        ]
        # Most likely the name of the model is misspelt.
        unused = [
            f"the rate of {model!r} had no effect: no model of that name answered, only "
            f"{', '.join(sorted(self._models))}"
            for model in rates
            if self._models and model not in self._models
        ]
        return [*said, *simulated, *replaced, *idle, *partial, *unused]

    def _where(self, count: int) -> str:
        """In how many trials a note holds; empty if in all of them."""
        return (
            "" if count == self._trials else f" (in {count} of {number_of(self._trials, 'trial')})"
        )


class CollectedResults(Struct):
    """The results of a run's trials, by position."""

    keeps: bool = True
    """Whether results stay here; else a store or the caller of a stream has them."""
    kept: dict[int, CaseResult] = field(default_factory=dict[int, CaseResult])
    left_out: dict[int, str] = field(default_factory=dict[int, str])
    """Why trials have no result of their own, where results are not kept."""
    common: CommonNotes = field(default_factory=CommonNotes)
    queue: ResultQueue | None = None
    """Takes the results of a stream."""

    def add(self, position: int, result: CaseResult) -> None:
        """One more trial is over."""
        self.common.add(result)
        if self.queue is not None:
            self.queue.put(result)
        if self.keeps:
            self.kept[position] = result
        elif self.queue is None and result.status == "skipped" and result.error is None:
            self.left_out[position] = result.notes[0]
