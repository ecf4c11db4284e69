"""`greenroom agent cost`: what an agent will cost, without asking a model."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from greenroom.agents.costs import Estimate, Traffic, estimate
from greenroom.apps.cli import report_output
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import PASSED, aside, loading, put_out, put_out_json, telling
from greenroom.backends.answered import with_model
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.errors import BadInput
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import started
from greenroom.suite.sources import as_model_given


def show_cost(
    agent: str,
    learnt: Sequence[str],
    beside: Sequence[str],
    model: str,
    store: str,
    as_json: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Print the estimate, and next to it what other runs took if they are named."""
    with telling(verbose):
        with loading(model, verbose):
            other = as_model_given(model)
        found = to_the_end(lambda: loaded(agent, verbose))
        backend, traffic = backend_for(found), Traffic(**given)
        if other is not None:
            backend = with_model(backend, other)
        if learnt:
            ledgers = list(ledgers_of(learnt, store))
            _note_others(backend.digest, ledgers)
            traffic = Traffic.seen(ledgers, **given)
        elif not isinstance(backend, NativeBackend):
            raise BadInput(
                f"{agent} is not a flow of Agent and step: what it asks models is known only from its "
                f"runs. Rehearse it, then give --from RUN."
            )
        known = estimate(backend.graph if isinstance(backend, NativeBackend) else found, traffic)
        _show(known, ledgers_of(beside, store) if beside else None, as_json)
    return PASSED


def _show(known: Estimate, others: Iterator[Ledger] | None, as_json: bool) -> None:
    compared = None if others is None else known.beside(others)
    if as_json:
        data = known.data()
        if compared is not None:
            data["beside"] = compared.data()
        put_out_json(json.dumps(data, indent=2))
        return
    put_out(str(known))
    if compared is not None:
        put_out(f"\n{compared}")


def ledgers_of(runs: Sequence[str], store: str) -> Iterator[Ledger]:
    """The conversations of all trials of these runs."""
    place = report_output.open_store(store)
    for name in runs:
        found = [result.ledger for result in place.report(name) if result.kept is not None]
        if not found:
            raise BadInput(f"run {name!r} has recorded no conversation to learn from.")
        yield from found


def _note_others(digest: str, ledgers: Sequence[Ledger]) -> None:
    """Say so if the runs are of another agent, or of an earlier version of it."""
    first = [begun for ledger in ledgers if (begun := started(ledger)) is not None]
    others = sum(begun.digest != digest for begun in first)
    if others:
        aside(
            f"{others} of {len(ledgers)} runs are of another agent, or of this one before it was "
            f"changed; nodes with the same ids are assumed to be the same"
        )
