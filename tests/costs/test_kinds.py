"""Every kind of flow has its rule of visits."""

from greenroom.agents import Agent
from greenroom.agents.costs.visits import VISITS
from greenroom.agents.flow import Flow
from greenroom.backends.native.kinds import KINDS


def test_every_kind_that_can_be_run_has_a_rule_of_visits() -> None:
    assert VISITS.keys() == {Agent, *KINDS}
    assert all(issubclass(kind, Flow) for kind in VISITS)
