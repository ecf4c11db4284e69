"""Names of agents in metrics about hand-overs that no agent of the team has, found before the first case runs."""

from collections.abc import Iterable, Iterator

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.cases.parts import MetricLike
from greenroom.cases.problems import Problem, at
from greenroom.errors import BadInput
from greenroom.ledger.choices import near
from greenroom.ledger.snapshots import as_facts, names_all, names_in
from greenroom.simulation.mock_names import brings_agents
from greenroom.simulation.trial_context import target_of
from greenroom.suite.checks.built_in import built_in

_ALIKE = 0.8


def agent_problems(case: Case, runs: Backend, allowed: Iterable[object] = ()) -> Iterator[Problem]:
    """The misspelt agents in the metrics of a case, each at its place in the case."""
    for index, metric in enumerate(case.metrics):
        says = f"case {case.id!r} has a metric that looks for a hand-over"
        yield from misspelt_agents(metric, case, runs, allowed, says, at("metrics", index))


def run_problems(
    metrics: Iterable[MetricLike],
    agents: Iterable[tuple[Case, Backend]],
    allowed: Iterable[object] = (),
) -> Iterator[Problem]:
    """The misspelt agents in the metrics of a run: those that are wrong for every case."""
    pairs, says = list(agents), "a metric of the run looks for a hand-over"
    for metric in metrics:
        found = [list(misspelt_agents(metric, *pair, allowed, says, "")) for pair in pairs]
        if found and all(found):
            yield from found[0]


def misspelt_agents(
    metric: MetricLike,
    case: Case,
    runs: Backend,
    allowed: Iterable[object],
    says: str,
    where: str,
) -> Iterator[Problem]:
    """The names in a metric that no agent or node has, where all of them are known.

    One that resembles no other is wrong if the metric would pass because of it; else the trial fails as usual.
    """
    inner = built_in(metric, ("handed_over",))
    asked = {} if inner is None else inner.agents_named()
    if not asked:
        return
    try:
        agent = target_of(case, getattr(runs, "sample", runs))
    except BadInput:
        return  # said where its tools are looked at
    facts = as_facts(agent.snapshot)
    if not names_all(facts) or brings_agents(
        case, (*case.allow_tools, *allowed), agent.tools or ()
    ):
        return
    known = names_in(facts)
    for name, passes_without in asked.items():
        meant = near(name, known, alike=_ALIKE)
        if name not in known and (meant or passes_without):
            hint = f"Did you mean {meant[0]!r}? " if meant else ""
            yield Problem(
                where,
                f"{says} with {name!r}, but the agent has no agent or node of that name",
                f"{hint}It has {sorted(known)}.",
            )
