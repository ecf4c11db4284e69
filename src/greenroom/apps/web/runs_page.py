"""The list of runs and the trend of a set, as data."""

from collections.abc import Sequence

from greenroom.reports.page.shapes import Rate, RunLine, Runs, TrendPoint
from greenroom.results import Summary
from greenroom.results.intervals import of_trials, percent
from greenroom.store import Run, Store

_FEW = 50
_MOST = 500


def list_runs(
    store: Store,
    *,
    evalset: str = "",
    agent: str = "",
    before: str = "",
    limit: int = _FEW,
    mine: Sequence[str] = (),
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
        runs=[_line(run, run.id in mine) for run in some],
        sets=sorted({evalset_of(run) for run in every} - {""}),
        agents=sorted({agent_of(run) for run in every} - {""}),
        next=some[-1].id if some and first + len(some) < len(wanted) else "",
        at=store.latest_position()[1] if every else None,
    )


def evalset_of(run: Run) -> str:
    """What the set of a run is called: runs of one set are compared with each other."""
    return run.plan.evalset_id or run.plan.name


def agent_of(run: Run) -> str:
    """What the agent of a run is called: as it was named in the terminal, or as it calls itself."""
    return run.plan.reference or run.plan.agent


def _line(run: Run, is_mine: bool) -> RunLine:
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
        rate=rate_of(run),
        cost=run.cost,
        notes=list(run.notes),
        mine=is_mine,
    )


def rate_of(run: Run) -> Rate | None:
    """The share of trials that passed, of those that could be judged; None without any.

    With several trials a case there is no interval: trials of one case are not independent, and the store
    keeps sums only.
    """
    counts = Summary.of(run.done, run.counts)
    share = counts.pass_rate
    if share is None:
        return None
    interval = None if run.plan.trials > 1 else of_trials(counts.passed, counts.evaluated)
    if interval is None:
        return Rate(share=share, text=percent(share))
    return Rate(share=share, text=str(interval), low=interval.low, high=interval.high)


def trend(store: Store, evalset: str, limit: int = 200) -> list[TrendPoint]:
    """The finished runs of a set that have a rate, the oldest first."""
    finished = [
        run for run in store.runs() if run.status == "finished" and evalset_of(run) == evalset
    ]
    found: list[TrendPoint] = []
    for run in finished[:limit]:
        if (rate := rate_of(run)) is not None:
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
