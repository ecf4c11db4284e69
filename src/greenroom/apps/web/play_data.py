"""A play as the page shows it."""

from greenroom.agents import check
from greenroom.agents.costs import estimate
from greenroom.agents.costs.tables import estimate_table
from greenroom.agents.data_links import data_links
from greenroom.agents.flow import Flow
from greenroom.agents.mermaid import mermaid
from greenroom.backends.registry import backend_for
from greenroom.cases.data import case_data
from greenroom.ledger.events import RunResumed
from greenroom.ledger.plain import Json, as_object, is_object, plain
from greenroom.ledger.questions import cost
from greenroom.reports.page.graph import graph_of
from greenroom.reports.page.shapes import AgentDetails, Part, Play, Waiting
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.story import state_places
from greenroom.reports.page.timeline import timeline
from greenroom.simulation.rehearsal import Rehearsal, Rest
from greenroom.suite.mock_suggestions import suggested_mock


def play_data(play: Rehearsal, rest: Rest, agent: object) -> Play:
    """A play for the page: what has happened, what the agent waits for, and which tools need a mock."""
    tools = backend_for(agent).tools or {}
    ledger = play.ledger
    # The pauses between two moves are not shown.
    pauses = {event.seq for event in ledger.of(RunResumed)}
    lacking = {name: suggested_mock(tools[name]) if name in tools else {} for name in rest.refused}
    return Play(
        id="",
        agent=0,
        state="ended" if rest.ended == "finished" else "broken" if rest.ended else "resting",
        timeline=[row for row in timeline(ledger, Trimmer()) if row.get("seq") not in pauses],
        values=list(state_places(ledger.fold())),
        waits=[
            Waiting(id=wait.id, tool=wait.tool, prompt=wait.prompt, args=plain(wait.args))
            for wait in rest.waits
        ],
        mocks=as_object(case_data(play.case).get("mocks") or {}),
        tools=list(tools),
        asking=[name for name, facts in tools.items() if facts.yields],
        missing=dict[str, Json](lacking),
        error=rest.error,
        cost=cost(ledger) if len(ledger) else None,
        events=len(ledger),
    )


def agent_data(agent: object) -> AgentDetails:
    """An agent for the page: its graph, its contract issues, and which node reads what another wrote."""
    backend = backend_for(agent)
    facts = as_object(backend.snapshot) if is_object(backend.snapshot) else {}
    name = str(facts.get("name") or "")
    graph = graph_of(backend.snapshot) or Part(kind="agent", name=name)
    if not isinstance(agent, Flow):
        why = f"Contracts are checked only for Greenroom's own agents; this one is run by {backend.name}."
        return AgentDetails(ref="", name=name, graph=graph, why=why)
    issues: list[dict[str, Json]] = [
        {"code": one.kind, "text": one.says, "place": one.node, "hint": one.fix}
        for one in check(agent)
    ]
    return AgentDetails(
        ref="",
        name=name,
        graph=graph,
        mermaid=mermaid(backend.snapshot),
        issues=issues,
        links=[(link.writer, link.reader, link.place) for link in data_links(facts)],
        estimate=estimate_table(estimate(agent)),
    )
