"""Earlier attempts at trials that run again: what they cost, and what of them still counts."""

from collections.abc import Collection, Mapping
from contextlib import suppress

from msgspec import structs

from greenroom.errors import BadLedger, NotFound
from greenroom.ledger.events import ModelCalled
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import ended
from greenroom.ledger.redaction import is_redacted
from greenroom.results.result import CaseResult
from greenroom.store.ledgers import RunLedgers
from greenroom.store.runs import Key
from greenroom.store.store import Store
from greenroom.suite.budget import cost_so_far
from greenroom.suite.trial_state import TrialState


class EarlierAttempts:
    """The results in the store of the trials that run again, by their keys.

    `remade` are the metrics of the run that are not what they were: what they found is not kept.
    """

    def __init__(
        self, store: Store, run_id: str, again: Mapping[Key, str], remade: Collection[str]
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._ledgers = RunLedgers(store, run_id)
        self._again = again
        self._remade = remade

    def carry(self, key: Key, digest: str, state: TrialState) -> None:
        """Give a trial that runs again what an earlier attempt cost; if only metrics broke, also what it did.

        A conversation that reached its end is paid for and may have acted, so it is not held again.
        """
        before = self._result(key)
        if before is None:
            return
        ledger = self._whole_ledger(before) if self._again[key] == digest else None
        if ledger is None or not _is_same(ledger, state.ledger):
            state.earlier_costs = _together(before)
            return
        state.earlier_costs = before.earlier_costs
        state.scores = {n: o for n, o in before.measured.items() if self._counts(n, before)}
        if state.ledger is None:
            judging = self._store.ledger(self._run_id, key, "judging")
            state.ledger, state.judging = ledger, _to_ask_again(judging)
            state.paid = cost_so_far(before)
        state.notes.append("only what could not be measured was measured again")

    def counted(self, key: Key, ledger: Ledger) -> float:
        """What of the cost of an interrupted trial is counted already, with the attempt that it repeats."""
        before = self._result(key)
        whole = None if before is None else self._whole_ledger(before)
        return cost_so_far(before) if before and whole and _is_same(whole, ledger) else 0.0

    def _result(self, key: Key) -> CaseResult | None:
        if key not in self._again:
            return None
        found = self._store.results_of(self._run_id, key.case_id, self._ledgers)
        return next((result for result in found if result.trial == key.trial), None)

    def _whole_ledger(self, before: CaseResult) -> Ledger | None:
        """The ledger of an attempt in which only metrics broke; None if it cannot be measured again."""
        if before.broke or before.error is None or before.ended is None:
            return None
        with suppress(BadLedger, NotFound):
            ledger = before.ledger_or_none
            if ledger is not None and ended(ledger) is not None and not is_redacted(list(ledger)):
                return ledger
        return None

    def _counts(self, name: str, before: CaseResult) -> bool:
        # A hook's word is not what the metric found.
        return name not in self._remade and name not in before.replaced


def _is_same(whole: Ledger, now: Ledger | None) -> bool:
    """Whether an interrupted trial, if there is one, was that attempt being measured again."""
    if now is None:
        return True
    return ended(now) is not None and len(now) > 0 and now[0].at == whole[0].at


def _together(before: CaseResult) -> Mapping[str, float | None]:
    """What an attempt and those before it cost, by role."""
    found: dict[str, float | None] = {}
    prices = zip(("agent", "user", "judge"), before.prices, strict=True)
    for role, price in prices:
        earlier = before.earlier_costs.get(role, 0.0)
        now = 0.0 if price is None and before.ended is None else price
        total = None if now is None or earlier is None else now + earlier
        if total != 0.0:
            found[role] = total
    return found


def _to_ask_again(judging: Ledger) -> Ledger:
    """What judges were asked, without the digests by which an answer would be found again.

    Its cost still counts; an answer that could not be used must not come again.
    """
    return Ledger(
        [structs.replace(e, digest="") if isinstance(e, ModelCalled) else e for e in judging]
    )
