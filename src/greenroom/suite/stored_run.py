"""A run in the store, recorded as it goes: where each trial begins, and when its result is safe."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from greenroom.cases.evalset import EvalSet
from greenroom.errors import GreenroomError, StoreFailed
from greenroom.ledger.events import ModelReplied
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.redaction import Redactor, clean_ids, redactor
from greenroom.results.result import CaseResult, skipped
from greenroom.store.cut_trials import CutTrial
from greenroom.store.failpoints import failpoint
from greenroom.store.journal import Entry, Journal, Settled
from greenroom.store.ledgers import RunLedgers, StoredLedger, row_of
from greenroom.store.redaction import Cleaner
from greenroom.store.runs import Key, Plan, Run
from greenroom.store.store import Store
from greenroom.store.writer import Writer
from greenroom.suite.identity import case_identity, set_digest
from greenroom.suite.options import Values
from greenroom.suite.recorder import Done, Recorder
from greenroom.suite.resume import (
    changed_cases,
    check_plan,
    cut_trials,
    is_retry,
    may_act,
    positions,
)
from greenroom.suite.trial import FindBackend, Trial, TrialState

_AHEAD = 64
_AHEAD_BYTES = 4_000_000
"""How many finished trials, and bytes of them, may wait for the disk before the run waits for it."""


async def begin_run(store: Store, plan: Plan, evalset: EvalSet) -> "StoredRun":
    """Begin a run in the store."""
    clean = redactor()
    cases = Cases(evalset, clean)
    plan = replace(_without_secrets(plan, clean), set_digest=cases.set_digest)
    writer = Writer(store, Cleaner(redactor))
    try:
        run = await writer.do(lambda connection: store.begin(plan, connection))
        return StoredRun(store, writer, run, store.journal(run.id), cases, {}, {})
    except BaseException:
        await writer.close()
        raise


async def resume_run(
    store: Store, plan: Plan, evalset: EvalSet, run_id: str, options: Values
) -> "StoredRun":
    """Resume a run of the store, the latest unfinished one without an id."""
    clean = redactor()
    plan = _without_secrets(plan, clean)
    retry: bool = options["retry_errors"]
    before = store.run(run_id) if run_id else store.latest_open(plan, errors=retry)
    writer, journal = Writer(store, Cleaner(redactor)), None
    try:
        await writer.do(lambda _: None)  # an earlier format is left behind before the run is locked
        journal = store.journal(before.id)
        done = store.keys(before.id)  # no other process adds to them from here on
        without_errors = cache(partial(store.keys, before.id, broken=False))
        cut = cut_trials(
            journal,
            done,
            lambda trial: trial.key not in without_errors() and is_retry(trial, store, before),
        )
        if retry:
            known = without_errors()
        else:
            # A trial that was being run again when the process was cut is not finished.
            known = {k: d for k, d in done.items() if k not in cut or cut[k].digest != d}
        ids = {trial.digest: key.case_id for key, trial in cut.items()}
        cases = Cases(evalset, clean, ids | {digest: key.case_id for key, digest in done.items()})
        plan = replace(plan, set_digest=cases.set_digest)
        accept: bool = options["accept_changes"]
        check_plan(before, plan, done, cases.digests, accept_changes=accept)
        places = positions(done, plan, cases.digests)
        run = await writer.do(lambda connection: store.resume(before, plan, places, connection))
        failpoint("resume.read")
        notes = changed_cases(done.items(), cases.digests)
        allowed: Collection[Any] = options["allow_tools"]
        return StoredRun(store, writer, run, journal, cases, known, cut, notes, allowed)
    except BaseException:
        if journal is not None:
            journal.close(remove=False)
        await writer.close()
        raise


def finished_trials(
    store: Store, plan: Plan, evalset: EvalSet, options: Values
) -> tuple[Run, Callable[[Trial], bool]]:
    """The run that would be resumed, and which trials it would not run again; nothing is changed.

    A trial that was cut off counts as one that has not run.
    """
    clean = redactor()
    plan = _without_secrets(plan, clean)
    resume, retry = options["resume"], bool(options["retry_errors"])
    run = store.latest_open(plan, errors=retry) if resume is True else store.run(resume)
    done = store.keys(run.id)
    known = store.keys(run.id, broken=False) if retry else done
    cases = Cases(evalset, clean, {digest: key.case_id for key, digest in done.items()})
    accept: bool = options["accept_changes"]
    plan = replace(plan, set_digest=cases.set_digest)
    check_plan(run, plan, done, cases.digests, accept_changes=accept)

    def is_done(trial: Trial) -> bool:
        key = cases.key(trial)
        return key in known and known[key] == cases.digests.get(key.case_id)

    return run, is_done


class StoredRun(Recorder):
    """A run in the store, recorded by this process and no other."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        run: Run,
        journal: Journal,
        cases: "Cases",
        known: Mapping[Key, str],
        cut: dict[Key, CutTrial],
        notes: Sequence[str] = (),
        allowed: Collection[Any] = (),
    ) -> None:
        self.run_id = run.id
        self.failure = ""
        self._on_failure: Callable[[], None] = lambda: None
        journal.fail = self._fail
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
        self._entries: dict[int, tuple[Entry, Key, str]] = {}
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
        try:
            entry = self._journal.entry()
        except StoreFailed as error:
            self._fail(str(error))
            return state
        self._entries[trial.position] = entry, key, digest
        entry.begin(key, digest)
        if cut is not None and cut.damage:
            is_written = False  # it stays where it is until its doubt is on record
        elif cut is not None and state.doubt:
            # A run that resumes after another cut must find the same reason for doubt.
            is_written = entry.restore(cut.ledger, cut.judging)
        else:
            is_written = state.ledger is None or entry.restore(state.ledger, state.judging)
        if cut is not None and is_written:
            cut.discard()

        def settle(_: str, tell: Settled) -> None:
            # Whichever call it is that waits: all that was recorded goes to the disk.
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
            # Of a damaged part it is not even known which case it belongs to.
            if self._journal.nameless and may_act(trial.case, self._allowed):
                state.doubt = _damaged("a part of the journal", self._journal.nameless[0])
        elif cut.damage:
            state.doubt = _damaged(f"its part of the journal {cut.path}", cut.damage)
            self._damaged[trial.position] = cut
        else:
            note = state.resume(cut, backend()) if cut.digest == digest else ""
            if note:
                self._notes.append(f"case {cut.key.case_id!r}: {note}")
            state.paid = _cost(state.ledger, state.judging)
        return state

    async def keep(self, state: TrialState, result: CaseResult, done: Done) -> None:
        """Hand a result to the writer; wait only when it is far behind."""
        failpoint("trial.measured")
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
                # Without a record it is no result; the trial runs again when the run is resumed.
                self._fail(str(failure))
                why = f"not finished: {self.failure}"
                done(replace(skipped(state.trial.case, why), trial=result.trial))
                return
            if (damaged := self._damaged.pop(position, None)) is not None:
                damaged.discard()
            self._journal.release(entry)
            if isinstance(result.kept, Ledger):  # it is in the store now
                stored = StoredLedger(self._ledgers, key, len(ledger))
                done(replace(result, kept=stored, blamed=result.blame))
            else:
                done(result)

        self._waiting += 1
        self._waiting_bytes += size
        self._writer.add(
            self._run, lambda: row_of(result, key, position, digest, ledger, judging), safe
        )
        while self._is_far_ahead:  # looked at again: another may have filled the room there was
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
        """What was recorded so far is where the run will resume."""
        self._journal.freeze()

    @property
    def spent(self) -> tuple[float, float]:
        """What the run has cost so far, and its most expensive trial."""
        if not self._run.begun_before:
            return 0.0, 0.0
        spent, highest = self._store.spent(self.run_id)
        under_way = sum(_cost(cut.ledger, cut.judging) for cut in self._cut.values())
        return spent + under_way, highest

    def earlier(self) -> Iterable[tuple[Key, CaseResult]]:
        """The results that the store had when this process began."""
        if not self._known:
            return ()
        found = self._store.results(self.run_id)
        return (self._cases.own(key, result) for key, result in found if self._was_done(key))

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
            # Also if the caller cannot wait: the thread ends by itself, and the lock is released.
            self._writer.stop()
            self._journal.close(remove=finished and is_written)
        await self._writer.close()
        if self.failure:
            self._notes.append(f"not everything could be recorded: {self.failure}")
        return self._notes


class Cases:
    """The cases of a run as the store knows them: by ids without secrets, and digests.

    `names` are the ids under which the store has cases already, by their digests: what counted as a
    secret then may be none now.
    """

    def __init__(
        self, evalset: EvalSet, redactor: Redactor, names: Mapping[str, str] | None = None
    ) -> None:
        self.redactor = redactor
        self.digests: dict[str, str] = {}
        self._stored: dict[str, str] = {}
        self._own: dict[str, str] = {}
        clean = clean_ids(evalset.ids, redactor)
        identities = [case_identity(case) for case in evalset]
        self.set_digest = set_digest(identities)
        for case, (digest, _) in zip(evalset, identities, strict=True):
            stored = (names or {}).get(digest) or clean[case.id]
            if stored in self._own:  # the id of another case looks like this one without its secret
                stored = f"{stored} #{digest}"
            self._stored[case.id], self._own[stored] = stored, case.id
            self.digests[stored] = digest

    def key(self, trial: Trial) -> Key:
        """The key of a trial in the store."""
        return Key(self._stored[trial.case.id], trial.number)

    def own(self, key: Key, result: CaseResult) -> tuple[Key, CaseResult]:
        """A trial of the store by the id that its case has here."""
        case_id = self._own[key.case_id]
        if case_id == key.case_id:
            return key, result
        return Key(case_id, key.trial), replace(result, case_id=case_id)


def _damaged(what: str, why: str) -> str:
    return (
        f"{what} is damaged ({why}), so it is unknown whether a real tool acted before the cut. Look "
        f"at the real system, then start a new run."
    )


def _without_secrets(plan: Plan, redactor: Redactor) -> Plan:
    """The plan as it may be stored; digests reveal nothing."""
    clean = clean_ids((plan.name, plan.evalset_id, plan.agent, *plan.metrics), redactor)
    return replace(
        plan,
        name=clean[plan.name],
        evalset_id=clean[plan.evalset_id],
        agent=clean[plan.agent],
        reference=redactor.value(plan.reference),
        metrics={clean[name]: digest for name, digest in plan.metrics.items()},
    )


def _cost(*ledgers: Ledger | None) -> float:
    """What the models asked in these ledgers cost in USD, as far as prices are known."""
    replies = (e for ledger in ledgers if ledger for e in ledger.of(ModelReplied, voice=None))
    return sum(reply.cost or 0.0 for reply in replies if reply.source != "replayed")
