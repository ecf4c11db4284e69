"""Agents are put together by expressions that read like their source and never change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Scripted, loop, route, step, tool
from greenroom.agents import Flow, compile_flow, history, persona
from greenroom.errors import BadAgent

MODEL = Scripted("Hello.")


def triage() -> str:
    return "billing"


def is_done(state: Any) -> bool:
    return bool(state.session.get("done"))


a, b, c = (Agent(name, model=MODEL) for name in "abc")
s = step(triage)


@pytest.mark.parametrize(
    "flow, text",
    [
        (a, "Agent('a')"),
        (s, "triage"),
        (a >> b, "Agent('a') >> Agent('b')"),
        (a >> b >> c, "Agent('a') >> Agent('b') >> Agent('c')"),
        (a >> (b >> c), "Agent('a') >> Agent('b') >> Agent('c')"),
        (a | b | c, "Agent('a') | Agent('b') | Agent('c')"),
        ((a | b) >> c, "(Agent('a') | Agent('b')) >> Agent('c')"),
        (a >> triage, "Agent('a') >> triage"),
        (triage >> a, "triage >> Agent('a')"),
        (triage | a, "triage | Agent('a')"),
        (loop(a, until=is_done), "loop(Agent('a'), until=is_done)"),
        (loop(a, s, awaits_input=True), "loop(Agent('a') >> triage, awaits_input=True)"),
        (
            loop(a, until={"session": {"done": True}}, max_rounds=3),
            "loop(Agent('a'), until={'session': {'done': True}}, max_rounds=3)",
        ),
        (
            route("session.kind", billing=a, otherwise=b | c),
            "route('session.kind', billing=Agent('a'), otherwise=Agent('b') | Agent('c'))",
        ),
        (route(triage, billing=a), "route(triage, billing=Agent('a'))"),
    ],
)
def test_an_expression_reads_like_its_source(flow: Flow, text: str) -> None:
    assert repr(flow) == text


LEAVES = st.sampled_from(["Agent('a')", "Agent('b')", "triage"])


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) >> ({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) | ({p[1]})"),
        inner.map(lambda p: f"loop({p}, until=is_done)"),
        inner.map(lambda p: f"loop({p}, awaits_input=True, max_rounds=7)"),
        st.tuples(inner, inner).map(lambda p: f"route('session.k', x={p[0]}, y={p[1]})"),
        inner.map(lambda p: f"route(triage, billing={p})"),
    )


NAMES: dict[str, Any] = {
    "Agent": lambda name: {"a": a, "b": b}[name],
    "triage": s,
    "is_done": is_done,
    "loop": loop,
    "route": lambda on, **flows: route(triage if on is s else on, **flows),
}


def built(source: str) -> Flow:
    return eval(source, NAMES)  # noqa: S307 - the source is ours


@given(st.recursive(LEAVES, nested, max_leaves=6))
def test_what_an_expression_shows_builds_the_same_agent(source: str) -> None:
    flow = built(source)
    again = built(repr(flow))
    assert repr(again) == repr(flow)
    assert compile_flow(again).digest == compile_flow(flow).digest


def test_context_rules_and_tools_read_like_their_source() -> None:
    @tool
    def refund(order: int) -> str:
        """Pay back."""
        return ""

    assert [repr(rule) for rule in (persona("Be kind."), history(), history(last=2))] == [
        "persona('Be kind.')",
        "history()",
        "history(last=2)",
    ]
    assert repr(refund) == "refund"


@pytest.mark.parametrize(
    "flow, name",
    [
        (a, "name"),
        (a, "tools"),
        (s, "fn"),
        (a >> b, "parts"),
        (a | b, "parts"),
        (loop(a, until=is_done), "body"),
        (route(triage, billing=a), "branches"),
        (tool(triage), "fn"),
        (compile_flow(a), "root"),
    ],
)
def test_an_expression_cannot_be_changed(flow: Any, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(flow, name, None)


def test_the_branches_of_a_route_cannot_be_changed() -> None:
    branches: Any = route(triage, billing=a).branches
    with pytest.raises(TypeError):
        branches["more"] = b


def test_an_agent_keeps_what_it_was_given_whatever_happens_to_the_lists() -> None:
    @tool
    def refund(order: int) -> str:
        """Pay back."""
        return ""

    tools: list[Any] = [refund]
    context: list[Any] = [history()]
    agent = Agent("clerk", model=MODEL, tools=tools, context=context)
    tools.clear()
    context.clear()
    assert (len(agent.tools), len(agent.context)) == (1, 1)


def test_putting_flows_together_leaves_them_as_they_were() -> None:
    pair = a >> b
    assert repr(pair >> c) != repr(pair)
    assert repr(pair) == "Agent('a') >> Agent('b')"


@pytest.mark.parametrize(
    "name", ["", "two words", "7up", "a/b", "a.b", "a#1", "a~2", "a@1", 7, "é"]
)
def test_a_name_that_cannot_stand_in_a_path_is_refused(name: Any) -> None:
    with pytest.raises(BadAgent, match=f"an agent is named {name!r}; use letters"):
        Agent(name, model=MODEL)


@pytest.mark.parametrize("name", ["seq", "par", "loop", "route"])
def test_a_name_that_paths_use_themselves_is_refused(name: str) -> None:
    with pytest.raises(BadAgent, match="a reserved word in paths"):
        Agent(name, model=MODEL)
    with pytest.raises(BadAgent, match="a reserved word in paths"):
        step(triage, name=name)
    with pytest.raises(BadAgent, match="a reserved word in paths"):
        route(triage, **{name: a})


@pytest.mark.parametrize("name", ["two words", "a/b", "a@b", "7up"])
def test_a_tool_whose_name_no_model_could_say_is_refused(name: str) -> None:
    with pytest.raises(BadAgent, match="a tool is named"):
        tool(name=name)(triage)


def test_a_lambda_needs_a_name_to_be_a_tool() -> None:
    with pytest.raises(BadAgent, match="'<lambda>'"):
        tool(lambda city: city)


def test_a_tool_may_be_called_like_a_word_of_flow() -> None:
    assert tool(name="route")(triage).name == "route"


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: Agent("a", model=None), "cannot respond"),  # pyright: ignore[reportArgumentType]
        (lambda: Agent("a", model=MODEL, tools=[tool(triage), tool(triage)]), "two tools named"),
        (lambda: a >> 5, "5 cannot be part of a flow"),
        (lambda: a | "b", "'b' cannot be part of a flow"),
        (lambda: step(lambda order: order), "asks for 'order', but can only be given"),
        (lambda: step(lambda *parts: parts), "asks for 'parts'"),
        (lambda: loop(until=is_done), "nothing to repeat"),
        (lambda: loop(a), "would never end"),
        (lambda: loop(a, until=lambda order: order), "asks for 'order'"),
        (lambda: route(triage), "has no branches"),
        (lambda: tool(tool(triage)), "is a tool already"),
        (lambda: tool(5), "needs a function"),  # pyright: ignore[reportCallIssue, reportArgumentType]
        (lambda: Scripted(5), "cannot be 5"),  # pyright: ignore[reportArgumentType]
        (lambda: Scripted([]), "cannot be"),
        (lambda: Scripted(["a", 5]), "cannot be"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_an_expression_that_cannot_work_is_refused_where_it_is_written(
    make: Any, told: str
) -> None:
    with pytest.raises(BadAgent, match=told):
        make()


async def never() -> bool:
    return False


def test_a_decision_that_would_have_to_be_awaited_is_refused() -> None:
    with pytest.raises(BadAgent, match="'never' is async"):
        loop(a, until=never)
    with pytest.raises(BadAgent, match="'never' is async"):
        route(never, billing=a)
