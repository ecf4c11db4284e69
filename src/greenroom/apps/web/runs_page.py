"""The list of runs and the trend of a set, as data."""

from collections.abc import Sequence

from greenroom.reports.page.head import rate_data
from greenroom.reports.page.shapes import Rate, RunLine, Runs, TrendPoint
from greenroom.results import Summary
from greenroom.results.statistics.intervals import of_cases, of_trials
from greenroom.store import Run, Store

_FEW = 50
_MOST = 500
_MOST_POINTS = 200


class Rates:
    """The pass rates of runs with their intervals; those of runs that have not changed are kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, tuple[Run, Rate | None]] = {}

    def of(self, run: Run) -> Rate | None:
        """The pass rate of what could be judged, as on the run's page; None if nothing could be."""
        known, rate = self._kept.get(run.id, (None, None))
        if known != run:
            rate = self._rate(run)
            self._kept[run.id] = run, rate
        return rate

    def _rate(self, run: Run) -> Rate | None:
        share = self._store.pass_rate(run)
        if share is None:
            return None
        if run.plan.trials == 1:
            counts = Summary.of(run.done, run.counts)
            return rate_data(share, of_trials(counts.passed, counts.evaluated))
        return rate_data(share, of_cases(self._store.tallies(run)))


def list_runs(
    store: Store,
    *,
    evalset: str = "",
    agent: str = "",
    before: str = "",
    limit: int = _FEW,
    mine: Sequence[str] = (),
    rates: Rates,
) -> Runs:
    """The latest runs of a set and an agent, begun before a given one; `mine` were started by this server."""
    every = store.runs()
    wanted = [
        run
        for run in every
        if (not evalset or evalset_of(run) == evalset) and (not agent or agent_of(run) == agent)
    ]
    ids = [run.id for run in wanted]
    first = ids.index(before) + 1 if before in ids else 0
    some = wanted[first : first + min(max(limit, 1), _MOST)]
    return Runs(
        runs=[_line(run, rates.of(run), run.id in mine) for run in some],
        sets=sorted({evalset_of(run) for run in every} - {""}),
        agents=sorted({agent_of(run) for run in every} - {""}),
        next=some[-1].id if some and first + len(some) < len(wanted) else "",
        at=store.latest_position()[1] if every else None,
    )


def evalset_of(run: Run) -> str:
    """The name of a run's set; runs of one set are compared with each other."""
    return run.plan.evalset_id or run.plan.name


def agent_of(run: Run) -> str:
    """The name of a run's agent: as given in the terminal, or the agent's own."""
    return run.plan.reference or run.plan.agent


def _line(run: Run, rate: Rate | None, is_mine: bool) -> RunLine:
    plan = run.plan
    return RunLine(
        id=run.id,
        name=plan.name,
        evalset=evalset_of(run),
        agent=agent_of(run),
        state=run.status,
        begun=run.begun,
        digest=plan.digest,
        set_digest=plan.set_digest,
        seconds=run.seconds,
        cases=plan.cases,
        trials=run.done,
        planned=run.total,
        counts=dict(run.counts),
        rate=rate,
        cost=run.cost,
        notes=list(run.notes),
        mine=is_mine,
        by=plan.by,
        commit=plan.commit,
        against=plan.against or "",
    )


def trend(store: Store, rates: Rates, evalset: str) -> list[TrendPoint]:
    """The finished runs of a set that have a rate, the oldest first."""
    finished = [
        run for run in store.runs() if run.status == "finished" and evalset_of(run) == evalset
    ]
    found: list[TrendPoint] = []
    for run in finished[:_MOST_POINTS]:
        if (rate := rates.of(run)) is not None:
            found.append(
                TrendPoint(
                    run=run.id,
                    begun=run.begun,
                    rate=rate.share,
                    low=rate.low,
                    high=rate.high,
                    cost=run.cost,
                    seconds=run.seconds,
                    digest=run.plan.digest,
                    set_digest=run.plan.set_digest,
                )
            )
    return found[::-1]
