"""One run, one trial, one event, two runs beside each other: what each page shows, as data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic

import msgspec

from greenroom.apps.web.run_index import RunIndex
from greenroom.apps.web.runs_page import agent_of, evalset_of
from greenroom.errors import NotFound
from greenroom.ledger.codec import event_data
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import as_object
from greenroom.ledger.questions import started
from greenroom.reports.page.graph import graph_of
from greenroom.reports.page.head import head_of
from greenroom.reports.page.shapes import (
    AgentDetails,
    EventDetails,
    Head,
    Story,
)
from greenroom.reports.page.story import state_places, story_of
from greenroom.reports.page.timeline import timeline
from greenroom.reports.page.trimming import Trimmer
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.store import Store
from greenroom.store.runs import Key, Run

_RESTS = 10.0
"""The head of a run under way is made anew at most every tenth of the time: a large one takes seconds."""


@dataclass(slots=True)
class _Made:
    head: Head
    position: int
    at: float
    took: float


@dataclass(slots=True)
class RunPages:
    """What is shown of runs; heads are kept until their run changes."""

    store: Store
    trace_url: str = ""
    _heads: dict[str, _Made] = field(default_factory=dict[str, _Made])
    _lock: Lock = field(default_factory=Lock)

    def head(self, index: RunIndex) -> Head:
        """Everything about a run but its cases."""
        run, position = self.store.run(index.run_id), index.update()
        with self._lock:
            made = self._heads.get(run.id)
            if made is None or self._is_old(made, run, position):
                begun = monotonic()
                report = self.store.report(run.id)
                head = head_of(report, index.all(), title=run.plan.name or run.plan.evalset_id)
                made = _Made(head, position, monotonic(), monotonic() - begun)
                self._heads[run.id] = made
                while len(self._heads) > 8:
                    self._heads.pop(next(iter(self._heads)))
        return msgspec.structs.replace(
            made.head,
            run=run.id,
            evalset=evalset_of(run),
            agent=agent_of(run),
            digest=run.plan.digest,
            state=run.status,
            planned=run.total,
            at=made.position,
        )

    def _is_old(self, made: _Made, run: Run, position: int) -> bool:
        if made.position == position:
            return False
        return run.status != "running" or monotonic() - made.at > _RESTS * made.took

    # One trial

    def story(self, run_id: str, case_id: str, trial: int) -> Story:
        """Everything about one trial, under way or done."""
        for result in self.store.results_of(run_id, case_id):
            if result.trial == trial:
                return self._linked(story_of(result))
        return _going(self._under_way(run_id, case_id, trial))

    def _linked(self, story: Story) -> Story:
        """With a link to its trace, where the server was told how such links look."""
        if story.trace is None or story.trace[1] or not self.trace_url:
            return story
        trace_id = story.trace[0]
        return msgspec.structs.replace(
            story, trace=(trace_id, self.trace_url.replace("{trace_id}", trace_id))
        )

    def _under_way(self, run_id: str, case_id: str, trial: int) -> Ledger:
        for one in self.store.under_way(run_id):
            if one.key == Key(case_id, trial):
                return one.ledger
        raise NotFound(f"run {run_id!r} has no trial {trial} of case {case_id!r}.")

    def ledger(self, run_id: str, case_id: str, trial: int) -> Ledger:
        """The ledger of a trial, under way or done."""
        try:
            return self.store.ledger(run_id, Key(case_id, trial))
        except NotFound:
            return self._under_way(run_id, case_id, trial)

    def event(self, run_id: str, case_id: str, trial: int, seq: int) -> EventDetails:
        """One event as it is recorded, and the state after it."""
        ledger = self.ledger(run_id, case_id, trial)
        if not 0 <= seq < len(ledger):
            raise NotFound(f"this trial has events 0 to {len(ledger) - 1}, and no {seq}.")
        state = Ledger(ledger[: seq + 1]).fold()
        return EventDetails(event=event_data(ledger[seq]), state=list(state_places(state)))

    def agent(self, run_id: str) -> AgentDetails:
        """The agent of a recorded run, from the first of its ledgers."""
        run = self.store.run(run_id)
        for _, result in self.store.results(run.id):
            ledger = result.ledger_or_none
            first = None if ledger is None else started(ledger)
            if first is not None and (graph := graph_of(first.agent)) is not None:
                name = as_object(first.agent).get("name") or agent_of(run)
                return AgentDetails(ref=agent_of(run), name=str(name), graph=graph)
        raise NotFound(f"run {run_id!r} has no trial that says how its agent is made.")

    # Two runs

    def compared_head(self, a: str, index: RunIndex) -> Head:
        """The head of run b, with what changed since run a."""
        current, baseline = self._reports(index.run_id, a)
        changes = current.compare(baseline)
        index.changes = {case.case_id: case.verdict for case in changes.cases}
        index.refresh()
        return msgspec.structs.replace(
            head_of(current, index.all(), changes=changes), run=index.run_id, at=index.position
        )

    def _reports(self, *ids: str) -> Sequence[Report]:
        return [self.store.report(one) for one in ids]

    def compared_story(self, a: str, b: str, case_id: str, trials: tuple[int, int]) -> Story:
        """A trial of run b beside one of run a."""
        before = self.store.results_of(self.store.run(a).id, case_id)
        for result in self.store.results_of(b, case_id):
            if result.trial == trials[1]:
                return story_of(result, _first(before, trials[0]), beside_baseline=True)
        raise NotFound(f"run {b!r} has no trial {trials[1]} of case {case_id!r}.")


def _first(results: Sequence[CaseResult], trial: int) -> list[CaseResult]:
    """The trials of the baseline, the one that is asked for first."""
    return sorted(results, key=lambda result: result.trial != trial)


def _going(ledger: Ledger) -> Story:
    first = started(ledger)
    trimmer = Trimmer()
    return Story(
        going=True,
        timeline=timeline(ledger, trimmer),
        graph=None if first is None else graph_of(first.agent, ledger),
        case=None if first is None else trimmer.json(first.case),
    )


def lines_of(index: RunIndex, words: str) -> Iterator[bytes]:
    """How far a search of all conversations is, line by line."""
    for share in index.find(words):
        yield msgspec.json.encode({"done": share}) + b"\n"
