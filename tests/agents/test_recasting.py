"""The same agent with another model in every part of it."""

from greenroom import Agent, Case, Scripted, loop, rehearse, route, step
from greenroom.agents import compile_flow, map_over, race, timeout
from greenroom.agents.graph import recast
from greenroom.backends.answered import with_model
from greenroom.backends.native import NativeBackend
from greenroom.metrics import contains

NEW = Scripted(then="Hello.", name="new")


def clerk(name: str = "clerk") -> Agent:
    return Agent(name, model=Scripted(then="Hello.", name="old"))


def answered_by(agent) -> dict[str, int]:
    report = rehearse(agent, [Case("one", "Hi", metrics=[contains("Hello")])])
    assert report.passed, str(report)
    return report.models


def test_every_agent_of_a_flow_gets_the_model_and_the_original_keeps_its_own():
    @step
    def pick(input):
        return input

    chosen = route(lambda output: "billing", billing=clerk(), otherwise=pick)
    flow = pick >> (clerk("one") | clerk("two")) >> chosen >> loop(clerk(), max_rounds=2)
    assert answered_by(recast(flow, NEW)) == {"new": 5}
    assert answered_by(flow) == {"old": 5}


def test_every_agent_of_a_fork_or_behind_a_guard_gets_the_model():
    @step
    def broken():
        raise OSError("down")

    @step
    def listed():
        return ["a", "b"]

    searched = race(clerk("one"), step(lambda: None, name="never") >> broken)
    flow = searched >> broken // clerk("two") >> timeout(clerk("three"), 30)
    flow = flow >> listed >> map_over(clerk("four"), at_once=1)
    assert answered_by(recast(flow, NEW)) == {"new": 5}
    assert answered_by(flow) == {"old": 5}
    places = [node.id for node in compile_flow(flow).nodes()]
    assert [node.id for node in compile_flow(recast(flow, NEW)).nodes()] == places
    assert repr(recast(flow, NEW)) == repr(flow)


def test_a_backend_with_another_model_has_another_digest():
    before = NativeBackend(clerk())
    after = before.with_model(NEW)
    assert after.digest != before.digest
    assert answered_by(after) == {"new": 1}


def test_a_backend_that_has_the_model_is_not_made_again_for_every_trial():
    after = with_model(NativeBackend(clerk()), NEW)
    assert with_model(after, NEW) is after
    assert with_model(after, Scripted(then="Hello.", name="other")) is not after
