"""The estimate of an evaluation: its trials, model calls, tokens and dollars, without running any of it."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Unpack

from msgspec import Struct

from greenroom.agents.costs.money import total
from greenroom.agents.costs.tables import aligned
from greenroom.cases.case import Case
from greenroom.results.report import Report
from greenroom.results.words import number_of
from greenroom.suite.needs import ROLES, Earlier, Need, Role, needs_of
from greenroom.suite.options import Options
from greenroom.suite.plan import Cases, Prepared, assemble
from greenroom.suite.trial_state import Trial

_NAMES: Mapping[Role, str] = {"agent": "agent", "user": "users", "judge": "judges"}


class Forecast(Struct, frozen=True, kw_only=True):
    """An estimate of what a run would need. What is not known is named, never zero."""

    agent: str
    cases: int
    trials: int
    """How many trials would run; for a run that decides this itself, the most."""
    fewest: int
    """How many would run at least."""
    roles: Mapping[Role, Need]
    """What the agent, its users and the judges would ask models, over all these trials."""
    learnt: tuple[str, ...] = ()
    """The earlier runs that the estimate is based on."""
    trials_seen: int = 0
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> Need:
        """What agent, users and judges would ask models in total."""
        return sum_of(self.roles.values())

    @property
    def usd(self) -> float | None:
        """What the run would cost; None if a part of it is unknown."""
        return self.whole.cost.usd

    def data(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "agent": self.agent,
            "cases": self.cases,
            "trials": self.trials,
            "fewest_trials": self.fewest,
            "roles": {_NAMES[role]: need.data() for role, need in self.roles.items()},
            "together": self.whole.data(),
            "learnt_from": list(self.learnt),
            "trials_seen": self.trials_seen,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        trials = f"{self.fewest} to {self.trials} trials"
        if self.fewest == self.trials:
            trials = number_of(self.trials, "trial")
        lines = [f"{trials} of {number_of(self.cases, 'case')}; nothing was run"]
        rows = [["", "calls", "tokens in", "tokens out", "cost"]]
        rows += [[_NAMES[role], *need.cells()] for role, need in self.roles.items()]
        lines += aligned([*rows, ["together", *self.whole.cells()]], 1)
        if self.whole.cost.unknown:
            lines.append(f"not known: {', '.join(self.whole.cost.unknown)}")
        if self.learnt:
            seen = number_of(self.trials_seen, "trial")
            lines.append(f"learnt from {seen} of {', '.join(self.learnt)}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def sum_of(needs: Iterable[Need]) -> Need:
    """The sum of these needs; a part that is unknown in one is unknown in the sum."""
    known = list(needs)
    read, written = [need.tokens_in for need in known], [need.tokens_out for need in known]
    return Need(
        calls=sum(need.calls for need in known),
        is_least=any(need.is_least for need in known),
        tokens_in=None if None in read else sum(one or 0.0 for one in read),
        tokens_out=None if None in written else sum(one or 0.0 for one in written),
        cost=total(need.cost for need in known),
    )


async def forecast(
    agent: Any, cases: Cases, *, earlier: Sequence[Report] = (), **options: Unpack[Options]
) -> Forecast:
    """Estimate what `evaluate(agent, cases, ...)` with these options would need; nothing is run, asked or written.

    The estimate is based on `earlier` reports, or on the latest run in the store of the same set and agent.
    A case that they do not have counts as the mean of those they have. Without any earlier run, only the
    certain minimum is known.
    """
    ready = await assemble(agent, cases, options)
    due, fewest, notes = _due(ready)
    known = Earlier.of(earlier, ready)
    counts: dict[str, int] = {}
    for trial in due:
        counts[trial.case.id] = counts.get(trial.case.id, 0) + 1
    by_id: Mapping[str, Case] = {case.id: case for case in ready.evalset}
    parts: dict[Role, list[Need]] = {role: [] for role in ROLES}
    for case_id, count in counts.items():
        for role, need in needs_of(by_id[case_id], ready, known).items():
            parts[role].append(need.times(count))
    return Forecast(
        agent=ready.plan.agent,
        cases=len(counts),
        trials=len(due),
        fewest=fewest,
        roles={role: sum_of(needs) for role, needs in parts.items()},
        learnt=known.names,
        trials_seen=len(known.results),
        notes=(*notes, *known.notes, *_open_ends(ready)),
    )


def _due(ready: Prepared) -> tuple[list[Trial], int, list[str]]:
    """The trials that would run, the fewest that would, and notes on both."""
    pairs = product(ready.evalset.cases, range(1, ready.evalset.trials + 1))
    trials = [Trial(position, case, number) for position, (case, number) in enumerate(pairs)]
    first = trials if ready.adaptive is None else ready.adaptive.due()
    if ready.options["resume"] is False:
        return trials, len(first), []
    from greenroom.store.store import as_store  # SQLite is loaded only where it is used
    from greenroom.suite.storage.opened_runs import finished_trials

    store = as_store(ready.options["store"])
    assert store is not None, "an evaluation without a store cannot be resumed"
    run, is_done = finished_trials(store, ready.plan, ready.evalset, ready.options)
    due = [trial for trial in trials if not is_done(trial)]
    done = f"run {run.id} is resumed: {len(trials) - len(due)} of {len(trials)} trials are done"
    return due, sum(not is_done(trial) for trial in first), [done]


def _open_ends(ready: Prepared) -> list[str]:
    """Why the run may take less or more than this."""
    found: list[str] = []
    if ready.adaptive is not None:
        found.append("the run ends as soon as it is clear whether the minimum is reached")
    if ready.settings.fail_fast or ready.settings.on_error == "stop":
        found.append("the run ends at the first case that does not pass")
    if ready.suspects is not None:
        found.append(
            f"not counted: cases that fail though they passed in the baseline run up to "
            f"{ready.suspects.most} times more"
        )
    return found
