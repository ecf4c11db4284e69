"""Whether a trial that failed would fail again: nothing in it was left to chance.

Where there is doubt it is left to chance; then running the case again settles it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from greenroom.agents.agent import Agent
from greenroom.backends.native import NativeBackend
from greenroom.cases.case import Case
from greenroom.cases.data import case_data, metric_data
from greenroom.cases.parts import Metric
from greenroom.cases.scores import Score
from greenroom.cases.users import Lines
from greenroom.ledger.events import RunStarted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.metrics import as_metric
from greenroom.metrics.expectations import expectations
from greenroom.metrics.scores import needs_guard
from greenroom.models.chooser import Chooser
from greenroom.models.scripted import SCRIPT
from greenroom.results.result import CaseResult
from greenroom.suite.settings import Settings

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

_FIXED_SOURCES = ("mock", "replayed")
_FIXED_NODES = ("agent", "sequence")
"""Nodes that run none of the author's code. Steps, routes and loops may use random numbers; branches may race."""
_FIXED_METRICS = tuple(
    f"greenroom.metrics.{room}" for room in ("response", "likeness", "structured", "vocabulary")
)
"""Metrics that only look at text. Times, costs and the author's code may differ the next time."""


def would_fail_again(
    result: CaseResult, agent: object, case: Case, ledger: Ledger, settings: Settings
) -> bool:
    """Whether this trial, which failed, did so for a reason that is the same each time it runs."""
    if not isinstance(agent, NativeBackend) or case.agent is not None:
        return False
    return (
        case.bridge is None
        and not case.allow_tools
        and (case.user is None or isinstance(case.user, Lines))
        and not _has_code({n: part for n, part in case_data(case).items() if n != "metrics"})
        and not isinstance(settings.model_for(case), Chooser)
        and not _is_changed_by(settings.middleware)
        and all(_runs_no_code(node.flow) for node in agent.graph.nodes())
        and _went_by_the_script(ledger)
        and _fell_short_for_good(result, case, settings.measuring.metrics)
    )


def _has_code(data: Json) -> bool:
    """Whether a part of the author's data is a function, which may use random numbers."""
    if is_object(data):
        return "live" in data or "$live" in data or any(map(_has_code, data.values()))
    return is_array(data) and any(map(_has_code, data))


def _is_changed_by(middleware: "MiddlewareStack | None") -> bool:
    """Whether middleware may change what happens."""
    if middleware is None:
        return False
    from greenroom.world.middleware.protocol import ACTING  # most runs have none

    return not middleware.listeners.keys().isdisjoint(ACTING)


def _runs_no_code(flow: object) -> bool:
    """Whether nothing of the author's decides what an agent is asked, which model answers, or what is accepted."""
    if not isinstance(flow, Agent):
        return True  # its kind says whether it decides anything
    return (
        not isinstance(flow.model, Chooser)
        and flow.output is None
        and flow.schema is None
        and all(type(rule).__module__.startswith("greenroom.") for rule in flow.context)
        and all(isinstance(place, str) for place in (*flow.reads, *flow.writes))
    )


def _went_by_the_script(ledger: Ledger) -> bool:
    """Whether every model was scripted or replayed, every tool mocked, and no code in between."""
    first = ledger.first
    if not isinstance(first, RunStarted) or first.opaque or not _is_plain(first.agent):
        return False
    indexes = ledger.indexes.values()
    replies = [reply for index in indexes for reply in index.replied]
    results = [found for index in indexes for found in index.results.values()]
    return all(r.prices == SCRIPT or r.source in _FIXED_SOURCES for r in replies) and all(
        found.source in _FIXED_SOURCES for found in results
    )


def _is_plain(graph: Json) -> bool:
    """Whether the agent's graph holds agents only, one after another."""
    if not is_object(graph) or graph.get("kind") not in _FIXED_NODES:
        return False
    parts = graph.get("parts", {})
    return is_object(parts) and all(map(_is_plain, parts.values()))


def _fell_short_for_good(result: CaseResult, case: Case, metrics: Iterable[Metric]) -> bool:
    """Whether one of the metrics that did not pass looks at text only."""
    known = {metric.name: metric for metric in (*metrics, *map(as_metric, case.metrics))}
    missed = [n for n, o in result.scores.items() if isinstance(o, Score) and not o.passed]
    own_kind = [known[n] for n in missed if n in known]
    if any(
        type(m).__module__ in _FIXED_METRICS and not _has_code(metric_data(m)) for m in own_kind
    ):
        return True
    own = [name for name in missed if name not in known and name.startswith("expected_")]
    return bool(own) and not any(needs_guard(one, case) for one in expectations(case).values())
