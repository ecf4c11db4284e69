"""A recorded session, restored at the beginning of a case that continues it."""

from time import time

from msgspec import structs

from greenroom.cases.case import Case
from greenroom.errors import BadCase, BadLedger
from greenroom.ledger.codec import event_from
from greenroom.ledger.events import Event, Forked, ModelReplied, RunStarted
from greenroom.ledger.ledger import Ledger
from greenroom.simulation.trial_context import TrialContext


def past_of(case: Case) -> Ledger:
    """The recorded session with which a case begins."""
    try:
        past = Ledger(map(event_from, case.history))
    except BadLedger as error:
        raise BadCase(f"case {case.id!r}: `history` is not a session: {error}") from error
    if not isinstance(past.first, RunStarted):
        raise BadCase(
            f"case {case.id!r}: `history` does not begin with run_started. Make such a case with "
            f"Case.from_ledger(ledger, turn=...)."
        )
    return past


def restore(trial: TrialContext, past: Ledger) -> None:
    """Write the recorded session into the ledger; the models' replies in it are marked as replayed and cost nothing."""
    first, now, redact = past.first, time(), trial.world.redact
    assert isinstance(first, RunStarted)
    for event in past[1:]:
        # The time between then and now is not part of the trial.
        again = _replayed(event)
        written = trial.ledger.append(again if redact is None else redact(again), now)
        if trial.world.on_event is not None:
            trial.world.on_event(written)
    digest = trial.backend.digest
    changed = () if digest == first.digest else ("agent",)
    mark = Forked(from_run=first.run_id, from_seq=len(past), changed=changed, digest=digest)
    trial.world.record(mark)
    trial.ledger.loaded_count = len(trial.ledger)


def _replayed(event: Event) -> Event:
    if isinstance(event, ModelReplied) and event.is_live:
        return structs.replace(event, seq=-1, source="replayed")
    return structs.replace(event, seq=-1)
