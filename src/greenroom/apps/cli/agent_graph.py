"""`greenroom agent graph`: an agent, or a recorded trial of it, as a Mermaid flowchart."""

from typing import Any

from greenroom.agents import Estimate, Flow, Traffic, estimate
from greenroom.agents.mermaid import mermaid
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import PASSED, aside, put_out, telling
from greenroom.apps.cli.report_output import open_store
from greenroom.backends.registry import backend_for
from greenroom.errors import BadInput, NotFound
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import started
from greenroom.ledger.redaction import redactor
from greenroom.store import Store
from greenroom.store.runs import Key


def print_graph(
    agent: str | None, data: bool, cost: bool, run: str, case: str, store: str, verbose: bool
) -> int:
    """Print the graph of an agent, or of a trial as it was then."""
    with telling(verbose):
        found = to_the_end(lambda: loaded(agent, None, verbose)) if agent else None
        place = open_store(store) if run else None
        trial = None if place is None else _trial(place, place.run(run).id, case)
        snapshot = backend_for(found).snapshot if trial is None else _snapshot(trial, found)
        costs = _costs(found, place, run) if cost else None
        put_out(mermaid(redactor().value(snapshot), data=data, costs=costs, trial=trial))
    return PASSED


def _snapshot(trial: Ledger, agent: Any) -> Json:
    """The graph that was run; a word if the agent is another one now."""
    first = started(trial)
    if first is None or first.agent is None:
        raise BadInput("this trial was not begun here, so its ledger has no graph of the agent.")
    if agent is not None and backend_for(agent).digest != first.digest:
        aside("the agent has changed since this run; it is drawn as it was then")
    return first.agent


def _trial(store: Store, run_id: str, case: str) -> Ledger:
    """The ledger of `case` or `case#2` in a run; without a case, the first that there is."""
    keys = [key for key, result in store.results(run_id) if result.ledger is not None]
    name, _, number = case.rpartition("#")
    wanted = [Key(case, 1)]
    if name and number.isdecimal():
        wanted.append(Key(name, int(number)))
    chosen = [key for key in keys if key in wanted] if case else keys
    if chosen:
        return store.ledger(run_id, chosen[0])
    known = ", ".join(f"{key.case_id}#{key.trial}" for key in keys[:10]) or "none"
    raise NotFound(f"run {run_id!r} has no trial {case!r} with a ledger; it has {known}.")


def _costs(agent: Any, store: Store | None, run: str) -> Estimate:
    """What each node is expected to cost, learnt from the whole run if there is one."""
    flow = agent if isinstance(agent, Flow) else None
    if store is None and flow is None:
        raise BadInput(
            "what an agent of another framework costs is known from its runs only; give --run too."
        )
    if store is None:
        return estimate(flow)
    run_id = store.run(run).id
    kept = [store.ledger(run_id, key) for key, result in store.results(run_id) if result.ledger]
    return estimate(flow, Traffic.seen(kept))
