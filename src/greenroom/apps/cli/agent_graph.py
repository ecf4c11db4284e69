"""`greenroom agent graph`: an agent, or a recorded trial of it, as a Mermaid flowchart."""

from typing import Any

from greenroom.agents import Estimate, Flow, Traffic, estimate
from greenroom.agents.mermaid import mermaid
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import PASSED, aside, put_out, telling
from greenroom.apps.cli.report_output import open_store
from greenroom.apps.cli.trials import trial_ledger
from greenroom.backends.registry import backend_for
from greenroom.errors import BadInput
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import started
from greenroom.ledger.redaction import redactor
from greenroom.store import Store


def print_graph(
    agent: str | None, data: bool, cost: bool, run: str, case: str, store: str, verbose: bool
) -> int:
    """Print the graph of an agent, or of a trial as it was then."""
    with telling(verbose):
        found = to_the_end(lambda: loaded(agent, verbose)) if agent else None
        place = open_store(store) if run else None
        trial = None if place is None else trial_ledger(place, place.run(run).id, case)
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
    kept = [store.ledger(run_id, key) for key, result in store.results(run_id) if result.kept]
    return estimate(flow, Traffic.seen(kept))
