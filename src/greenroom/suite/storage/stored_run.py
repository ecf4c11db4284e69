"""A run in the store, recorded as it goes: where each trial begins, and when its result is saved."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from greenroom.cases.evalset import EvalSet
from greenroom.errors import GreenroomError, StoreFailed
from greenroom.ledger.events import ModelReplied
from greenroom.ledger.ledger import Ledger
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import skipped
from greenroom.store.columns import to_column
from greenroom.store.cut_trials import CutTrial
from greenroom.store.entry import RunJournal, Settled, TrialEntry
from greenroom.store.failpoints import failpoint
from greenroom.store.ledgers import RunLedgers, StoredLedger, row_of
from greenroom.store.runs import Key, Run
from greenroom.store.store import Store
from greenroom.store.writer import Writer
from greenroom.suite.storage.attempts import EarlierAttempts
from greenroom.suite.storage.recorder import Done, Recorder
from greenroom.suite.storage.resume import (
    may_act,
    reason_for_doubt,
)
from greenroom.suite.storage.run_results import RunResults
from greenroom.suite.storage.stored_cases import Cases
from greenroom.suite.trial_state import FindBackend, Trial, TrialState

_AHEAD = 64
_AHEAD_BYTES = 4_000_000
"""How many finished trials, and how many bytes of them, may wait for the disk before the run waits too."""
_LAST = 2**63 - 1


class StoredRun(Recorder):
    """A run in the store, recorded by this process and no other."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        run: Run,
        journal: RunJournal[Any],
        cases: Cases,
        known: Mapping[Key, str],
        cut: dict[Key, CutTrial],
        notes: Sequence[str] = (),
        allowed: Collection[object] = (),
        attempts: EarlierAttempts | None = None,
    ) -> None:
        self.run_id = run.id
        self.failure = ""
        self._on_failure: Callable[[], None] = lambda: None
        journal.fail, journal.attempt = self._fail, run.attempt
        self._run = run
        self._store = store
        self._ledgers = RunLedgers(store, run.id)
        self._writer = writer
        self._journal = journal
        self._cases = cases
        self._known = known
        self._cut = cut
        self._damaged: dict[int, CutTrial] = {}
        self._allowed = allowed
        self._attempts = attempts
        self._entries: dict[int, tuple[TrialEntry, Key, str]] = {}
        self._notes = list(notes)
        self._waiting = 0
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    def listen(self, on_failure: Callable[[], None]) -> None:
        """Call `on_failure`, in any thread, once something cannot be recorded."""
        self._on_failure = on_failure

    def _fail(self, why: str) -> None:
        """Remember the first reason, and stop the run."""
        if not self.failure:
            self.failure = why
            self._on_failure()

    def is_done(self, trial: Trial) -> bool:
        """Whether the store has this trial, of the case as it is now."""
        return bool(self._known) and self._was_done(self._cases.key(trial))

    def _was_done(self, key: Key) -> bool:
        digest = self._known.get(key)
        return digest is not None and digest == self._cases.digests.get(key.case_id)

    def begin(self, trial: Trial, backend: FindBackend) -> TrialState:
        """Begin a trial in the journal, with what an earlier process had recorded there."""
        key = self._cases.key(trial)
        digest = self._cases.digests[key.case_id]
        cut = self._cut.pop(key, None)
        state = self._state(trial, cut, backend, digest)
        if self._attempts is not None and not state.doubt:
            self._attempts.carry(key, digest, state)
        state.run_id = self.run_id
        try:
            entry = self._journal.entry()
        except StoreFailed as error:
            self._fail(str(error))
            return state
        self._entries[trial.position] = entry, key, digest
        entry.begin(key, digest)
        if cut is not None and (cut.damage or (cut.lacks_secrets and state.doubt)):
            is_written = False  # it stays where it is until its doubt is on record
        elif cut is not None and state.doubt:
            # A run that resumes after another interruption must find the same reason for doubt.
            is_written = entry.restore(cut.ledger, cut.judging)
        else:
            is_written = state.ledger is None or entry.restore(state.ledger, state.judging)
        if cut is not None and is_written:
            cut.discard()

        def settle(_: str, tell: Settled) -> None:
            # Whichever call waits, everything recorded so far is written to disk.
            entry.settle(tell)

        def restart(ledger: Ledger, judging: Ledger) -> None:
            # After what is there: only the last beginning in a file counts, whole or not at all.
            entry.forget()
            entry.begin(key, digest)
            entry.restore(ledger, judging)

        state.on_event, state.on_judging = entry.agent, entry.judge
        state.before_live, state.on_restart = settle, restart
        return state

    def _state(
        self, trial: Trial, cut: CutTrial | None, backend: FindBackend, digest: str
    ) -> TrialState:
        """Where a trial begins, and whether a real tool may have acted before."""
        state = TrialState(trial)
        if cut is None:
            # It is not even known which case a damaged part belongs to.
            if self._journal.nameless and may_act(trial.case, self._allowed):
                state.doubt = _damaged("a part of the journal", self._journal.nameless[0])
        elif cut.damage:
            state.doubt = _damaged(f"its part of the journal {cut.where}", cut.damage)
            self._damaged[trial.position] = cut
        elif cut.lacks_secrets:
            self._notes.append(
                f"case {cut.key.case_id!r}: run from its beginning, because its record held secrets, which "
                f"are not kept"
            )
            state.doubt = reason_for_doubt(trial.case, cut.ledger, 0)
            state.paid = _cost(cut.ledger, cut.judging)
            if state.doubt:
                self._damaged[trial.position] = cut
        else:
            note = state.resume(cut, backend()) if cut.digest == digest else ""
            if note:
                self._notes.append(f"case {cut.key.case_id!r}: {note}")
            state.paid = _cost(state.ledger, state.judging)
        return state

    async def keep(self, state: TrialState, result: CaseResult, done: Done) -> None:
        """Pass a result to the writer; wait only when it is far behind."""
        failpoint("trial.measured")
        if state.earlier_costs:
            result = replace(result, earlier_costs=state.earlier_costs)
        position = state.trial.position
        entry, key, digest = self._entries.pop(position)
        ledger, judging = entry.ledger, entry.judging
        entry.forget()
        size = len(ledger) + len(judging)

        def safe(failure: GreenroomError | None) -> None:
            self._waiting -= 1
            self._waiting_bytes -= size
            if not self._is_far_ahead:
                self._room.set()
            if failure is not None:
                # A result that is not recorded does not count; the trial runs again when the run is resumed.
                self._fail(str(failure))
                why = f"not finished: {self.failure}"
                done(replace(skipped(state.trial.case, why), trial=result.trial))
                return
            if (damaged := self._damaged.pop(position, None)) is not None:
                damaged.discard()
            self._journal.release(entry)
            if isinstance(result.kept, Ledger):  # it is in the store now
                stored = StoredLedger(self._ledgers, to_column(key.case_id), key.trial, len(ledger))
                done(replace(result, kept=stored, blamed=result.blame))
            else:
                done(result)

        self._waiting += 1
        self._waiting_bytes += size
        self._writer.add(
            self._run, lambda: row_of(result, key, position, digest, ledger, judging), safe
        )
        while self._is_far_ahead:  # checked again: another trial may have taken the free place
            self._room.clear()
            await self._room.wait()

    @property
    def _is_far_ahead(self) -> bool:
        return self._waiting >= _AHEAD or self._waiting_bytes >= _AHEAD_BYTES

    async def flush(self) -> None:
        """Wait for the writer, and for its callbacks."""
        try:
            await self._writer.do(lambda _: None)
        except StoreFailed as error:
            self._fail(str(error))

    def freeze(self) -> None:
        """Stop recording events: the run will resume from what is recorded so far."""
        self._journal.freeze()

    @property
    def spent(self) -> tuple[float, float]:
        """What the run has cost so far, and its most expensive trial."""
        if not self._run.begun_before:
            return 0.0, 0.0
        spent, highest = self._store.spent(self.run_id)
        under_way = sum(_cost(cut.ledger, cut.judging) for cut in self._cut.values())
        if self._attempts is not None:
            under_way -= sum(self._attempts.counted(k, c.ledger) for k, c in self._cut.items())
        return spent + under_way, highest

    def earlier(self) -> Iterable[tuple[Key, CaseResult]]:
        """The results that the store had when this process began."""
        if not self._known:
            return ()
        found = self._store.results(self.run_id)
        return (self._cases.own(key, result) for key, result in found if self._was_done(key))

    def results(self, evalset: EvalSet, left_out: Mapping[int, str]) -> Sequence[CaseResult]:
        """The results that the store has now, read as they are asked for, and those of trials left out."""
        # A store that failed is not asked: the run ends with its own message, and the command to resume.
        latest = _LAST if self.failure else self._store.latest_position()[1]
        return RunResults(self._store, self.run_id, latest, self._cases, evalset, left_out)

    def shared_report(self) -> Report | None:
        """The totals so far of all processes that share the run."""
        return self._store.report(self.run_id) if self._run.shard else None

    async def close(self, *, finished: bool, notes: Sequence[str], seconds: float) -> list[str]:
        """Wait until all is recorded, and say in the store how the run ended."""
        status = "finished" if finished else "interrupted"
        total = self._run.seconds + seconds
        clean = self._cases.redactor.value([*notes, *self._notes])
        is_written = False
        try:
            await self._writer.do(
                lambda connection: self._store.close(self._run, status, clean, total, connection)
            )
            is_written = not self.failure
        except StoreFailed as error:
            self.failure = self.failure or str(error)
        finally:
            # Even if the caller cannot wait: the thread ends by itself, and the lock is released.
            self._writer.stop()
            self._journal.close(remove=finished and is_written)
        await self._writer.close()
        if self.failure:
            self._notes.append(f"not everything could be recorded: {self.failure}")
        return self._notes


def _damaged(what: str, why: str) -> str:
    return (
        f"{what} is damaged ({why}), so it is unknown whether a real tool acted before the interruption. Look "
        f"at the real system, then start a new run."
    )


def _cost(*ledgers: Ledger | None) -> float:
    """What the models asked in these ledgers cost in USD, as far as prices are known."""
    replies = (e for ledger in ledgers if ledger for e in ledger.of(ModelReplied, voice=None))
    return sum(reply.paid or 0.0 for reply in replies)
