"""Every kind of flow has its rule of visits."""

import pytest

from greenroom import Scripted, loop, route, step
from greenroom.agents import Agent, Step, approved, compile_flow, map_over, race, timeout
from greenroom.agents.costs.visits import VISITS, least_calls
from greenroom.agents.flow import Flow
from greenroom.backends.native.kinds import KINDS


def test_every_kind_that_can_be_run_has_a_rule_of_visits() -> None:
    assert VISITS.keys() == {Agent, *KINDS}
    assert all(issubclass(kind, Flow) for kind in VISITS)


def an(name: str) -> Agent:
    return Agent(name, model=Scripted(name="m"))


def nothing() -> Step:
    return step(lambda: None, name="nothing")


@pytest.mark.parametrize(
    "flow, least",
    [
        (an("a"), 1),
        (nothing(), 0),
        (an("a") >> an("b"), 2),
        (an("a") | an("b"), 2),
        (race(an("a") >> an("b"), an("c")), 1),
        (timeout(an("a"), 5), 1),
        (loop(an("a"), max_rounds=3), 3),
        (loop(an("a"), until={"done": True}), 1),
        (loop(an("a"), awaits_input=True), 1),
        (map_over(an("a")), 0),
        ((an("a") >> an("b")) // an("c"), 1),
        (Agent("a", model=Scripted(name="m"), handoffs=[an("b")]), 1),
        (approved(an("a"), "Sure?"), 0),
        (approved(an("a"), "Sure?", otherwise=an("b")), 1),
        (route("session.k", a=an("a") >> an("b"), b=an("c")), 1),
        (route("session.k", a=an("a"), b=nothing()), 0),
    ],
)
def test_a_visit_asks_models_at_least_so_often(flow: Flow, least: int) -> None:
    assert least_calls(compile_flow(flow).root) == least
