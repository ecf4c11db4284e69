"""`greenroom agent`: an agent drawn, checked, and its costs estimated, without asking a model."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from greenroom.agents import Flow
from greenroom.agents.contracts import check
from greenroom.agents.costs import Estimate, Traffic, estimate
from greenroom.agents.mermaid import mermaid
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import GATE_MISSED, PASSED, aside, put_out, put_out_data
from greenroom.apps.cli.report_output import open_store
from greenroom.apps.cli.trials import trial_ledger
from greenroom.backends.answered import with_model
from greenroom.backends.function import FunctionBackend
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.errors import BadInput
from greenroom.ledger.covered import coverage
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import started
from greenroom.ledger.redaction import redactor
from greenroom.simulation.outside_trials import CalledApart
from greenroom.store import Store
from greenroom.suite.inputs.references import load_value
from greenroom.suite.inputs.sources import as_model_given


def print_graph(agent: str | None, data: bool, cost: bool, run: str, case: str, store: str) -> None:
    """Print the graph of an agent, or of a trial as it was then."""
    found = to_the_end(lambda: loaded(agent)) if agent else None
    place = open_store(store) if run else None
    trial = None if place is None else trial_ledger(place, place.run(run).id, case)
    snapshot = backend_for(found).snapshot if trial is None else _snapshot(trial, found)
    costs = _costs(found, place, run) if cost else None
    put_out(mermaid(redactor().document(snapshot), data=data, costs=costs, trial=trial))


def _snapshot(trial: Ledger, agent: object) -> Json:
    """The graph that ran; prints a note if the agent has changed since."""
    first = started(trial)
    if first is None or first.agent is None:
        raise BadInput("this trial was not begun here, so its ledger has no graph of the agent.")
    if agent is not None and backend_for(agent).digest != first.digest:
        aside("the agent has changed since this run; it is drawn as it was then")
    return first.agent


def _costs(agent: object, store: Store | None, run: str) -> Estimate:
    """What each node is expected to cost, learnt from the whole run if there is one."""
    flow = agent if isinstance(agent, Flow) else None
    if store is None and flow is None:
        raise BadInput(
            "the cost of another framework's agent is known only from its runs; give --run too."
        )
    if store is None:
        return estimate(flow)
    run_id = store.run(run).id
    kept = [store.ledger(run_id, key) for key, result in store.results(run_id) if result.kept]
    return estimate(flow, Traffic.seen(kept))


def check_agent(agent: str, schema: str, given: str, strict: bool, as_json: bool) -> int:
    """Print every issue; returns 1 if there are errors, or warnings with `--strict`."""
    found = to_the_end(lambda: loaded(agent))
    if isinstance(backend_for(found), FunctionBackend):
        raise BadInput(
            f"{agent} is a plain function: what it reads, writes and costs is known only from its runs. "
            f"Rehearse it with `greenroom eval run`."
        )
    fields = load_value(schema) if schema else None
    try:
        state = json.loads(given) if given else None
    except ValueError as error:
        raise BadInput(f"--given is not JSON: {error}.") from error
    with CalledApart("a contract check", "while the agent was checked"):
        contracts = check(found, schema=fields, given=state)
    if as_json:
        put_out_data(contracts.data())
    else:
        put_out(str(contracts))
    failed = contracts.errors or (strict and contracts.warnings)
    return GATE_MISSED if failed else PASSED


def show_cost(
    agent: str,
    learnt: Sequence[str],
    beside: Sequence[str],
    model: str,
    store: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Print the estimate, next to what the named runs really used."""
    other = as_model_given(model)
    found = to_the_end(lambda: loaded(agent))
    backend, traffic = backend_for(found), Traffic(**given)
    if other is not None:
        backend = with_model(backend, other)
    if learnt:
        ledgers = list(ledgers_of(learnt, store))
        # Say so if the runs are of another agent, or of an earlier version of it.
        begun = [first for ledger in ledgers if (first := started(ledger)) is not None]
        if others := sum(first.digest != backend.digest for first in begun):
            aside(
                f"{others} of {len(ledgers)} trials are of another agent, or of an earlier version of this "
                f"one; nodes with the same ids are assumed to be the same"
            )
        traffic = Traffic.seen(ledgers, **given)
    elif not isinstance(backend, NativeBackend):
        raise BadInput(
            f"{agent} is not a flow of Agent and step: its model calls are known only from its "
            f"runs. Rehearse it, then give --from RUN."
        )
    known = estimate(backend.graph if isinstance(backend, NativeBackend) else found, traffic)
    compared = known.beside(ledgers_of(beside, store)) if beside else None
    if as_json:
        data = known.data()
        if compared is not None:
            data["beside"] = compared.data()
        put_out_data(data)
        return
    put_out(str(known))
    if compared is not None:
        put_out(f"\n{compared}")


def show_coverage(runs: Sequence[str], store: str, as_json: bool) -> None:
    """Print what runs have exercised of their agents."""
    found = coverage(ledgers_of(runs, store))
    if as_json:
        put_out_data(found.data())
    else:
        put_out(str(found))


def ledgers_of(runs: Sequence[str], store: str) -> Iterator[Ledger]:
    """The conversations of all trials of these runs."""
    place = open_store(store)
    # A run that is named twice counts once.
    for name in dict.fromkeys(place.run(name).id for name in runs):
        found = [result.ledger for result in place.report(name) if result.kept is not None]
        if not found:
            raise BadInput(f"run {name!r} has recorded no conversation to learn from.")
        yield from found
