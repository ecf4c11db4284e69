"""One run, one trial, one event, two runs alongside each other: what each page shows, as data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic

import msgspec

from greenroom.apps.web.run_index import RunIndex
from greenroom.apps.web.runs_page import agent_of, evalset_of
from greenroom.errors import BadLedger, NotFound
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
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.story import state_places, story_of
from greenroom.reports.page.timeline import timeline
from greenroom.results.result import CaseResult
from greenroom.results.trials import Parting, parting
from greenroom.store import Store
from greenroom.store.runs import Key, Run

_RESTS = 10.0
"""The head of a run in progress is made again at most every tenth of the time: a large one takes seconds."""
_MOST_HEADS = 8


@dataclass(slots=True)
class _Made:
    head: Head
    of: object
    """What the head was made from: as long as that is unchanged, the head is too."""
    at: float
    took: float


@dataclass(slots=True)
class RunPages:
    """The pages of runs, as data; heads are kept until their run changes."""

    store: Store
    trace_url: str = ""
    _heads: dict[str, _Made] = field(default_factory=dict[str, _Made])
    _lock: Lock = field(default_factory=Lock)

    def head(self, index: RunIndex) -> Head:
        """Everything about a run except its cases."""
        run, changed_at = self.store.run(index.run_id), index.update()

        def make() -> Head:
            report, counts = index.counted()
            title = run.plan.name or run.plan.evalset_id
            return msgspec.structs.replace(
                head_of(report, counts, title=title), at=index.changed_at
            )

        return msgspec.structs.replace(
            self._kept(run.id, run, (run, changed_at), make),
            run=run.id,
            evalset=evalset_of(run),
            agent=agent_of(run),
            digest=run.plan.digest,
            model=run.plan.model,
            state=run.status,
            planned=run.total,
        )

    def _kept(self, name: str, run: Run, of: object, make: Callable[[], Head]) -> Head:
        """The head that was made of the same, or a new one; that of a run in progress may be a little old."""
        with self._lock:
            made = self._heads.pop(name, None)
            is_fresh = made is not None and (
                made.of == of
                or (run.status == "running" and monotonic() - made.at <= _RESTS * made.took)
            )
            if made is None or not is_fresh:
                begun = monotonic()
                head = make()
                made = _Made(head, of, monotonic(), monotonic() - begun)
            self._heads[name] = made
            while len(self._heads) > _MOST_HEADS:
                self._heads.pop(next(iter(self._heads)))
        return made.head

    # One trial

    def story(self, run_id: str, case_id: str, trial: int) -> Story:
        """Everything about one trial, in progress or done."""
        trials = self.store.results_of(run_id, case_id)
        for result in trials:
            if result.trial == trial:
                return self._linked(story_of(result, parted=_parted(trials)))
        return _going(self._under_way(run_id, case_id, trial))

    def _linked(self, story: Story) -> Story:
        """The story with a link to its trace, if the server was given a template for such links."""
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
        """The ledger of a trial, in progress or done."""
        try:
            return self.store.ledger(run_id, Key(case_id, trial))
        except NotFound:
            return self._under_way(run_id, case_id, trial)

    def event(self, run_id: str, case_id: str, trial: int, seq: int) -> EventDetails:
        """One event as it is recorded, and the state after it."""
        ledger = self.ledger(run_id, case_id, trial)
        if not 0 <= seq < len(ledger):
            raise NotFound(f"this trial has events 0 to {len(ledger) - 1}, but not {seq}.")
        state = Ledger(ledger[: seq + 1]).fold()
        return EventDetails(event=event_data(ledger[seq]), state=list(state_places(state)))

    def agent(self, run_id: str) -> AgentDetails:
        """The agent of a recorded run, and the path that the first of its trials took."""
        run = self.store.run(run_id)
        for key, result in self.store.results(run.id):
            ledger = result.ledger_or_none
            first = None if ledger is None else started(ledger)
            if first is not None and (graph := graph_of(first.agent, ledger)) is not None:
                name = as_object(first.agent).get("name") or agent_of(run)
                way = f"The path shown is that of {key.case_id}, trial {key.trial}."
                return AgentDetails(ref=agent_of(run), name=str(name), graph=graph, why=way)
        raise NotFound(f"run {run_id!r} has no trial that says how its agent is made.")

    # Two runs

    def compared_head(self, a: str, index: RunIndex) -> Head:
        """The head of run b, with what changed since run a; the rows of b are marked with it."""
        before, run = self.store.run(a), self.store.run(index.run_id)
        changed_at = index.update()

        def make() -> Head:
            report, counts = index.counted()
            changes = report.compare(self.store.report(before.id))
            verdicts = {case.case_id: case.verdict for case in changes.cases}
            counts = replace(counts, changes=index.mark(verdicts))
            head = head_of(report, counts, changes=changes)
            return msgspec.structs.replace(head, run=run.id, at=index.changed_at)

        name = f"{run.id} {before.id}"
        if not index.is_marked:  # its rows were read again since the head was made
            with self._lock:
                self._heads.pop(name, None)
        return self._kept(name, run, (before, run, changed_at), make)

    def compared_story(
        self, a: str, b: str, case_id: str, trial: int, chosen: int | None = None
    ) -> Story:
        """A trial of run b next to one of run a: the chosen one, or the most informative one."""
        before = self.store.results_of(self.store.run(a).id, case_id)
        if chosen is not None and chosen not in [one.trial for one in before]:
            raise NotFound(f"run {a!r} has no trial {chosen} of case {case_id!r}.")
        for result in self.store.results_of(b, case_id):
            if result.trial == trial:
                return story_of(result, before, beside_baseline=True, chosen=chosen)
        raise NotFound(f"run {b!r} has no trial {trial} of case {case_id!r}.")


def _parted(trials: Sequence[CaseResult]) -> Parting | None:
    try:
        return parting(trials)
    except BadLedger:
        return None  # another trial has the broken ledger; the opened one may be complete


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
    """The progress of a search of all conversations, as lines of JSON."""
    for share in index.find(words):
        yield msgspec.json.encode({"done": share}) + b"\n"
