"""A run written down as it goes: where each take begins, and when its result is safe."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.errors import GreenroomError, StoreFailed
from greenroom.ledger.events import ModelReplied
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.redaction import Redactor, clean_ids, redactor
from greenroom.results.result import CaseResult, skipped
from greenroom.store.cut_trials import CutTrial
from greenroom.store.failpoints import failpoint
from greenroom.store.journal import Entry, Journal, Settled
from greenroom.store.ledgers import StoredLedger, row_of
from greenroom.store.redaction import Cleaner
from greenroom.store.runs import Key, Plan, Run
from greenroom.store.store import Store
from greenroom.store.writer import Writer
from greenroom.suite.earlier import (
    is_new,
    names_of,
    out_of_date,
    places_of,
    refuse_changes,
    refuse_other_trials,
    under_way,
    without_retries,
)
from greenroom.suite.identity import case_digest
from greenroom.suite.options import Options
from greenroom.suite.recorder import Done
from greenroom.suite.resume import may_act, taken_up
from greenroom.suite.trial_state import Trial, TrialState

_AHEAD = 64
_AHEAD_BYTES = 4_000_000
"""How many finished trials, and bytes of them, may wait for the disk before the run waits for it."""


class StoredRun:
    """A run in the store, written by this process and no other."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        run: Run,
        journal: Journal,
        cases: "Cases",
        known: Mapping[Key, str],
        left: dict[Key, CutTrial],
        notes: Sequence[str] = (),
        allowed: Collection[Any] = (),
    ) -> None:
        self.run_id = run.id
        self.failure = ""
        self._on_failure: Callable[[], None] = lambda: None
        journal.fail = self._fail
        self._run = run
        self._store = store
        self._ledgers = store.ledgers(run.id)
        self._writer = writer
        self._journal = journal
        self._cases = cases
        self._known = known
        self._left = left
        self._damaged: dict[int, CutTrial] = {}
        self._allowed = allowed
        self._nameless = ("a part of the journal", journal.nameless[0]) if journal.nameless else ()
        self._entries: dict[int, tuple[Entry, Key, str]] = {}
        self._notes = list(notes)
        self._waiting = 0
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    def listen(self, on_failure: Callable[[], None]) -> None:
        """Call `on_failure`, in any thread, once something cannot be written down."""
        self._on_failure = on_failure

    def _fail(self, why: str) -> None:
        """Remember the first reason, and stop the run."""
        if not self.failure:
            self.failure = why
            self._on_failure()

    def is_done(self, play: Trial) -> bool:
        """Whether the store has this trial, of the case as it is now."""
        return bool(self._known) and self._was_done(self._cases.key(play))

    def _was_done(self, key: Key) -> bool:
        digest = self._known.get(key)
        return digest is not None and digest == self._cases.digests.get(key.case_id)

    def take(self, play: Trial, agent: Backend | None) -> TrialState:
        """Begin a trial in the journal, with what an earlier process had written there."""
        key = self._cases.key(play)
        digest = self._cases.digests[key.case_id]
        take, left = TrialState(play), self._left.pop(key, None)
        if left is None and self._nameless:
            take.doubt = self._doubt_of_nameless(play.case)
        elif left is not None and left.damage:
            take.doubt = _damaged(f"its part of the journal {left.path}", left.damage)
            self._damaged[play.position] = left
        elif left is not None:
            note = taken_up(take, left, agent) if left.digest == digest else ""
            if note:
                self._notes.append(f"case {key.case_id!r}: {note}")
            take.paid = _cost(take.ledger, take.judging)
        try:
            entry = self._journal.entry()
        except StoreFailed as error:
            self._fail(str(error))
            return take
        self._entries[play.position] = entry, key, digest
        entry.begin(key, digest)
        if left is not None and left.damage:
            is_written = False  # it stays where it is until its doubt is on record
        elif left is not None and take.doubt:
            # Whoever resumes after another cut must find the same reason for doubt.
            is_written = entry.take_up(left.ledger, left.judging)
        else:
            is_written = take.ledger is None or entry.take_up(take.ledger, take.judging)
        if left is not None and is_written:
            left.discard()
        take.on_event, take.on_judging = entry.agent, entry.judge
        take.before_live = partial(_settle, entry)
        take.on_restart = partial(_begin_again, entry, key, digest)
        return take

    def _doubt_of_nameless(self, case: Case) -> str:
        """Why a case of which no beginning is known may have begun all the same."""
        return _damaged(*self._nameless) if may_act(case, self._allowed) else ""

    def keep(self, take: TrialState, result: CaseResult, done: Done) -> Awaitable[None] | None:
        """Hand a result to the writer; wait only when it is far behind."""
        failpoint("trial.measured")
        position = take.play.position
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
                # What it came to is no result: it is found again when the run goes on.
                self._fail(str(failure))
                why = f"not finished: {self.failure}"
                done(replace(skipped(take.play.case, why), trial=result.trial))
            else:
                if (damaged := self._damaged.pop(position, None)) is not None:
                    damaged.discard()
                self._journal.release(entry)
                done(self._shelved(result, key, len(ledger)))

        self._waiting += 1
        self._waiting_bytes += size
        self._writer.add(
            self.run_id, lambda: row_of(result, key, position, digest, ledger, judging), safe
        )
        return self._until_there_is_room() if self._is_far_ahead else None

    async def _until_there_is_room(self) -> None:
        # Whoever is woken looks again: another may have filled the room that there was.
        while self._is_far_ahead:
            self._room.clear()
            await self._room.wait()

    @property
    def _is_far_ahead(self) -> bool:
        return self._waiting >= _AHEAD or self._waiting_bytes >= _AHEAD_BYTES

    def _shelved(self, result: CaseResult, key: Key, size: int) -> CaseResult:
        """The result without its ledger, which is in the store now."""
        if not isinstance(result.kept, Ledger):
            return result
        shelf = StoredLedger(self._ledgers, key, size)
        return replace(result, kept=shelf, blamed=result.blame)

    async def flush(self) -> None:
        """Wait for the writer, and for whom it tells."""
        try:
            await self._writer.do(lambda _: None)
        except StoreFailed as error:
            self._fail(str(error))

    def freeze(self) -> None:
        """What was written so far is where the run will go on."""
        self._journal.freeze()

    @property
    def spent(self) -> tuple[float, float]:
        """What the run has cost so far, and its dearest trial."""
        if not self._run.begun_before:
            return 0.0, 0.0
        spent, dearest = self._store.spent(self.run_id)
        under_way = sum(_cost(left.ledger, left.judging) for left in self._left.values())
        return spent + under_way, dearest

    def earlier(self) -> Iterable[tuple[Key, CaseResult]]:
        """The results that the store had when this process began."""
        if not self._known:
            return ()
        found = self._store.results(self.run_id)
        return (self._cases.own(key, result) for key, result in found if self._was_done(key))

    async def close(self, *, finished: bool, notes: Sequence[str], seconds: float) -> list[str]:
        """Wait until all is written, and say in the store how the run ended."""
        status = "finished" if finished else "interrupted"
        whole = self._run.seconds + seconds
        told = self._cases.redactor.value([*notes, *self._notes])
        is_written = False
        try:
            await self._writer.do(
                lambda connection: self._store.close(self.run_id, status, told, whole, connection)
            )
            is_written = not self.failure
        except StoreFailed as error:
            self.failure = self.failure or str(error)
        finally:
            # Also when somebody cannot wait: the thread ends by itself, and the lock is let go.
            self._writer.stop()
            self._journal.close(remove=finished and is_written)
        await self._writer.close()
        if self.failure:
            self._notes.append(f"not everything could be written down: {self.failure}")
        return self._notes


async def begun(store: Store, plan: Plan, evalset: EvalSet) -> StoredRun:
    """Begin a run in the store."""
    hand = redactor()
    cases, plan, writer = Cases(evalset, hand), _kept(plan, hand), Writer(store, Cleaner(redactor))
    try:
        run = await writer.do(lambda connection: store.begin(plan, connection))
        return StoredRun(store, writer, run, store.journal(run.id), cases, {}, {})
    except BaseException:
        await writer.close()
        raise


async def resumed(
    store: Store, plan: Plan, evalset: EvalSet, wanted: str, options: Options
) -> StoredRun:
    """Go on with a run of the store, the latest unfinished one if none is named."""
    hand = redactor()
    plan = _kept(plan, hand)
    retry = options.get("retry_errors", False)
    before = store.run(wanted) if wanted else store.latest_open(plan, errors=retry)
    writer, journal = Writer(store, Cleaner(redactor), replacing=True), None
    try:
        journal = store.journal(before.id)
        done = store.keys(before.id)  # no other process adds to them from here on
        whole = cache(partial(store.keys, before.id, broken=False))
        left = under_way(
            journal, done, lambda one: one.key not in whole() and is_new(one, store, before)
        )
        known = whole() if retry else without_retries(done, left)
        cases = Cases(evalset, hand, names_of(done, left))
        refuse_other_trials(before, plan, done)
        if not options.get("accept_changes", False):
            refuse_changes(before, plan, done, cases.digests)
        places = places_of(done, plan, cases.digests)
        run = await writer.do(lambda connection: store.resume(before, plan, places, connection))
        failpoint("resume.read")
        told = out_of_date(done, cases.digests)
        allowed = options.get("allow_tools", ())
        return StoredRun(store, writer, run, journal, cases, known, left, told, allowed)
    except BaseException:
        if journal is not None:
            journal.close(remove=False)
        await writer.close()
        raise


class Cases:
    """The cases of a run as the store knows them: by ids without secrets, and digests.

    `names` are those under which the store has cases already, by their digests: what counted as a
    secret then may be none now.
    """

    def __init__(
        self, evalset: EvalSet, redactor: Redactor, names: Mapping[str, str] | None = None
    ) -> None:
        self.redactor = redactor
        self.digests: dict[str, str] = {}
        self._kept: dict[str, str] = {}
        self._own: dict[str, str] = {}
        clean = clean_ids(evalset.ids, redactor)
        for case in evalset:
            digest = case_digest(case)
            kept = (names or {}).get(digest) or clean[case.id]
            if kept in self._own:  # somebody's own id looks like this one without its secret
                kept = f"{kept} #{digest}"
            self._kept[case.id], self._own[kept], self.digests[kept] = kept, case.id, digest

    def key(self, play: Trial) -> Key:
        """Under what the store has a trial."""
        return Key(self._kept[play.case.id], play.trial)

    def own(self, key: Key, result: CaseResult) -> tuple[Key, CaseResult]:
        """A trial of the store by the id that its case has here."""
        case_id = self._own[key.case_id]
        if case_id == key.case_id:
            return key, result
        return Key(case_id, key.trial), replace(result, case_id=case_id)


def _damaged(what: str, why: str) -> str:
    return (
        f"{what} is damaged ({why}), so nobody knows whether a real tool acted before the cut. Look "
        f"at the real system, then start a new run."
    )


def _settle(entry: Entry, _: str, tell: Settled) -> None:
    """Whichever call it is that waits: all that was recorded goes to the disk."""
    entry.settle(tell)


def _begin_again(entry: Entry, key: Key, digest: str, ledger: Ledger, judging: Ledger) -> None:
    """Write a trial down anew, up to where it is taken up."""
    # After what is there: only the last beginning in a file counts, and it is whole or not there.
    entry.forget()
    entry.begin(key, digest)
    entry.take_up(ledger, judging)


def _kept(plan: Plan, hand: Redactor) -> Plan:
    """The plan as it may be written down; digests tell nothing."""
    clean = clean_ids((plan.name, plan.evalset_id, plan.agent, *plan.metrics), hand)
    return replace(
        plan,
        name=clean[plan.name],
        evalset_id=clean[plan.evalset_id],
        agent=clean[plan.agent],
        metrics={clean[name]: digest for name, digest in plan.metrics.items()},
    )


def _cost(*ledgers: Ledger | None) -> float:
    """What the models asked in these ledgers cost in USD, as far as prices are known."""
    replies = (e for ledger in ledgers if ledger for e in ledger.of(ModelReplied, voice=None))
    return sum(reply.cost or 0.0 for reply in replies)
