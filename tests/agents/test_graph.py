"""The graph an expression compiles to: same agent, same digest; another agent, another digest."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel, create_model

import warm_python
from greenroom import Agent, Scripted, loop, route, step, tool
from greenroom.agents import Flow, Scene, compile_flow, history, persona
from greenroom.ledger import Message


def refund(order: int) -> str:
    """Pay back."""
    return ""


def refund_by_text(order: str) -> str:
    """Pay back."""
    return ""


def first(input: Any) -> Any:
    return input


def second(input: Any) -> Any:
    return input


def done(state: Any) -> bool:
    return bool(state.session.get("done"))


def not_done(state: Any) -> bool:
    return not state.session.get("done")


def rule(scene: Scene) -> Sequence[Message]:
    return []


class Answer(BaseModel):
    text: str


def clerk(**options: Any) -> Agent:
    given: dict[str, Any] = {
        "name": "clerk",
        "model": Scripted("Hello."),
        "instructions": "Help.",
        "tools": [tool(refund)],
        "output": Answer,
        **options,
    }
    return Agent(given.pop("name"), **given)


def digest(flow: Flow) -> str:
    return compile_flow(flow).digest


WIDER = create_model("Answer", __module__=Answer.__module__, text=(str, ...), tone=(str, ...))


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "cashier"},
        {"model": Scripted("Hello.", name="other-model")},
        {"instructions": "Help more."},
        {"tools": []},
        {"tools": [tool(name="repay")(refund)]},
        {"tools": [tool(name="refund")(refund_by_text)]},
        {"tools": [tool(description="Pay it all back.")(refund)]},
        {"tools": [tool(yields=True)(refund)]},
        {"output": None},
        {"output": dict},
        {"output": WIDER},
        {"context": []},
        {"context": [history(last=3)]},
        {"context": [persona("Be kind."), history()]},
        {"context": [rule]},
        {"max_steps": 3},
        {"retries": 1},
        {"writes": "answer"},
    ],
)
def test_another_agent_has_another_digest(changed: dict[str, Any]) -> None:
    assert digest(clerk(**changed)) != digest(clerk())


def test_the_same_agent_built_again_has_the_same_digest() -> None:
    assert digest(clerk()) == digest(clerk())


@pytest.mark.parametrize("changed", [{"description": "for people"}])
def test_what_does_not_change_what_an_agent_does_does_not_change_its_digest(changed: Any) -> None:
    assert digest(clerk(**changed)) == digest(clerk())


a, b = step(first), step(second)

FLOWS: list[Flow] = [
    a,
    b,
    step(first, name="second"),
    step(first, retries=1),
    step(first, writes="x"),
    a >> b,
    b >> a,
    a | b,
    b | a,
    a >> (a | b),
    loop(a, until=done),
    loop(a, until=not_done),
    loop(a, until={"session": {"done": True}}),
    loop(a, until={"session": {"done": 1}}),
    loop(a, awaits_input=True),
    loop(a, max_rounds=5),
    loop(a, until=done, max_rounds=5),
    route("session.kind", a=a, b=b),
    route("session.sort", a=a, b=b),
    route("session.kind", a=b, b=a),
    route("session.kind", a=a, otherwise=b),
    route(done, a=a, b=b),
]


def test_flows_that_differ_in_anything_have_digests_that_differ() -> None:
    assert len({digest(flow) for flow in FLOWS}) == len(FLOWS)


def test_the_order_in_which_a_routes_branches_are_written_does_not_matter() -> None:
    assert digest(route("session.kind", a=a, b=b)) == digest(route("session.kind", b=b, a=a))


def test_nodes_are_named_by_their_place() -> None:
    graph = compile_flow(a >> (b | loop(clerk(), until=done)) >> route(first, x=a))
    assert [node.id for node in graph.nodes()] == [
        "seq",
        "seq.0/first",
        "seq.1/par",
        "seq.1/par.0/second",
        "seq.1/par.1/loop",
        "seq.1/par.1/loop#/clerk",
        "seq.2/route",
        "seq.2/route.x/first",
    ]


def test_a_graph_knows_the_tools_of_all_its_agents_and_whether_it_awaits_input() -> None:
    one = clerk(tools=[tool(name="one")(refund)])
    two = clerk(tools=[tool(name="two")(refund)])
    graph = compile_flow(a >> (one | loop(two, awaits_input=True)))
    assert sorted(graph.tools) == ["one", "two"]
    assert graph.awaits_input
    assert not compile_flow(loop(two, until=done)).awaits_input


SCRIPT = """
from typing import Annotated, Literal
from pydantic import AfterValidator, BaseModel
from greenroom import Agent, Scripted, loop, tool
from greenroom.agents import compile_flow

class Line(BaseModel):
    sku: Literal["a", "b"]

@tool
def order(lines: list[Line], speed: Literal["slow", "fast"] = "slow") -> str:
    "Order."
    return ""

Text = Annotated[str, AfterValidator(lambda text: text)]
agent = Agent("a", model=Scripted("x"), tools=[order], output=Text)
print(compile_flow(loop(agent, until={"session": {"done": True}})).digest)
"""


def test_an_agent_has_the_same_digest_in_another_process() -> None:
    runs = [
        warm_python.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1] != ""


def test_an_agent_has_the_digest_and_the_places_that_earlier_versions_gave_it() -> None:
    # Ledgers that exist are resumed by them.
    one = Agent(
        "clerk",
        model=Scripted("Hello."),
        instructions="Help.",
        tools=[tool(refund)],
        writes="answer",
    )
    other = Agent("other", model=Scripted("Bye."), retries=2)
    looped = loop(other, until={"session": {"done": True}}, max_rounds=3)
    graph = compile_flow((one | other) >> route("session.kind", billing=one, otherwise=looped))
    assert graph.digest == "4c8772583d47020d"
    assert [node.id for node in graph.nodes()] == [
        "seq",
        "seq.0/par",
        "seq.0/par.0/clerk",
        "seq.0/par.1/other",
        "seq.1/route",
        "seq.1/route.billing/clerk",
        "seq.1/route.otherwise/loop",
        "seq.1/route.otherwise/loop#/other",
    ]
