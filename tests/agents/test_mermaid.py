"""Agents drawn as Mermaid flowcharts, from snapshots of our own and of strangers."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import (
    Agent,
    Case,
    Ledger,
    Lines,
    Scripted,
    UserAgents,
    call,
    loop,
    route,
    simulate,
    step,
    tool,
)
from greenroom.agents import (
    Traffic,
    approved,
    compile_flow,
    estimate,
    map_over,
    race,
    tap,
    timeout,
)
from greenroom.agents.contracts.dataflow import data_edges
from greenroom.agents.data_links import DataLink, data_links
from greenroom.agents.mermaid import mermaid
from greenroom.ledger import Usage
from greenroom.models import ModelReply, Price, candidate, choose

SHAPES = [
    ("([", "])"),
    ("[[", "]]"),
    ("[/", "\\]"),
    ("[\\", "\\]"),
    ("[", "]"),
    (">", "]"),
    ("(", ")"),
    ("{{", "}}"),
    ("{", "}"),
]
# No quote, and < and > only in our own line break: a label cannot end early, nor hold markup.
LABEL = '"(?:[^"<>]|<br/>)*"'
BOX = "|".join(re.escape(opened) + LABEL + re.escape(closed) for opened, closed in SHAPES)
ARROW = rf"(?:-->|==>|-\.->)(?:\|{LABEL}\|)?|-\.-"
LINE = re.compile(
    rf"    (?:n\d+(?:{BOX})|n\d+ (?:{ARROW}) n\d+"
    r"|classDef visited stroke-width:3px|class n\d+(?:,n\d+)* visited)"
)


def drawn(flow, **options) -> str:
    return mermaid(compile_flow(flow).snapshot, **options)


def arrows(chart: str, kind: str) -> set[tuple[str, str]]:
    """The arrows of a kind, between the first words of their boxes."""
    boxes = dict(re.findall(r'^ +(n\d+)[^ "]*"([^"]*?)(?:<br/>[^"]*)?"', chart, re.MULTILINE))
    names = {name: label.split(" · ")[0] for name, label in boxes.items()}
    found = re.findall(rf"^ +(n\d+) {re.escape(kind)}(?:\|[^|]*\|)? (n\d+)$", chart, re.MULTILINE)
    return {(names[a], names[b]) for a, b in found}


async def played(flow, *lines: str, says: str = "Hi") -> Ledger:
    user = Lines(*lines) if lines else None
    return await simulate(Case("one", says=says, user=user), flow)


def box(chart: str, name: str) -> str:
    found = re.search(rf'"({re.escape(name)}[^"]*)"', chart)
    assert found, chart
    return re.sub(r"[\d.]+ m?s\b", "0 s", found[1])


def clerk(name: str = "clerk", *answers: Any, **options: Any) -> Agent:
    return Agent(name, model=Scripted(*(answers or ("Hi",)), then="Hi"), **options)


def test_a_sequence_is_drawn_from_start_to_end():
    @step
    def tidy(input):
        return input

    assert drawn(tidy >> Agent("clerk", model=Scripted("Hi"))) == (
        "flowchart TD\n"
        '    n0(["start"])\n'
        '    n1[["tidy"]]\n'
        '    n2["clerk · scripted"]\n'
        "    n1 --> n2\n"
        '    n3(["end"])\n'
        "    n0 --> n1\n"
        "    n2 --> n3\n"
    )


def test_a_loop_that_waits_says_who_it_waits_for():
    shown = drawn(loop(Agent("clerk", model=Scripted("Hi")), awaits_input=True))
    assert '-->|"the user answers"| n1' in shown
    assert '-->|"done"|' in shown


def test_a_tree_of_a_framework_is_drawn_with_its_tools():
    shown = mermaid(
        {
            "framework": "google-adk",
            "name": "root",
            "kind": "LlmAgent",
            "model": "gemini-2.5-flash",
            "tools": [[{"name": "refund"}], "search"],
            "sub_agents": [{"name": "billing", "kind": "LlmAgent", "sub_agents": []}],
        }
    )
    for label in ('["root · gemini-2.5-flash"]', '("refund")', '("search")', '["billing"]'):
        assert label in shown


def test_each_kind_has_a_shape_of_its_own():
    def leaf(name: str, **facts: Any) -> dict[str, Any]:
        return {"id": name, "kind": "agent", "name": name, **facts}

    a, b = leaf("a"), leaf("b")
    parts = {
        "0": {"id": "race", "kind": "race", "parts": {"0": a, "1": b}},
        "1": {"id": "try", "kind": "fallback", "parts": {"0": a, "1": b}},
        "2": {"id": "map", "kind": "map_over", "over": "session.drafts", "parts": {"body": a}},
        "3": {"id": "in", "kind": "timeout", "seconds": 20.0, "parts": {"body": a}},
        "4": {
            "id": "ok",
            "kind": "approved",
            "question": "Pay: {input}?",
            "parts": {"body": a, "otherwise": b},
        },
        "5": {"id": "tap", "kind": "step", "name": "watch", "passes": True},
        "6": {
            "id": "desk",
            "kind": "team",
            "name": "desk",
            "parts": {
                "desk": leaf("desk", handoffs=["billing"]),
                "billing": leaf("billing", handoffs=["desk"]),
            },
        },
    }
    snapshot: Any = {"id": "seq", "kind": "sequence", "parts": parts}
    assert mermaid(snapshot) == SHAPES_DRAWN


SHAPES_DRAWN = """\
flowchart TD
    n0(["start"])
    n1{{"race"}}
    n2["a"]
    n3["b"]
    n4{{"the first answer"}}
    n1 --> n2
    n2 --> n4
    n1 --> n3
    n3 --> n4
    n5[/"try"\\]
    n6["a"]
    n5 -->|"first"| n6
    n7["b"]
    n5 -->|"if that fails"| n7
    n4 --> n5
    n8{{"each of session.drafts"}}
    n9["a"]
    n10{{"the list"}}
    n8 --> n9
    n9 --> n10
    n8 -->|"none"| n10
    n6 --> n8
    n7 --> n8
    n11>"within 20 s"]
    n12["a"]
    n11 --> n12
    n10 --> n11
    n13{"Pay: {input}?"}
    n14["a"]
    n13 -->|"yes"| n14
    n15["b"]
    n13 -->|"no"| n15
    n12 --> n13
    n16[\\"watch"\\]
    n14 --> n16
    n15 --> n16
    n17["desk"]
    n18["billing"]
    n17 -->|"hands over"| n18
    n18 -->|"hands over"| n17
    n16 --> n17
    n19(["end"])
    n0 --> n1
    n17 --> n19
    n18 --> n19
"""


@tool
def look(order: int) -> str:
    """Look an order up."""
    raise AssertionError("a tool body ran in a rehearsal")


async def test_the_way_of_a_trial_is_thick_and_every_node_says_what_became_of_it():
    def kind(input: Any) -> str:
        return "refund" if "refund" in input else "otherwise"

    paid = ModelReply("Done", usage=Usage(10, 10), cost=0.0125, prices="test")
    refund = Agent("refund", model=Scripted(call("look", order=7), paid), tools=[look])
    flow = clerk("first", "a refund") >> route(kind, refund=refund, otherwise=clerk("other"))
    ledger = await simulate(Case("one", says="Hi", mocks={"look": "it is here"}), flow)
    chart = drawn(flow, trial=ledger)
    assert arrows(chart, "==>") == {
        ("start", "first"),
        ("first", "route on kind"),
        ("route on kind", "refund"),
        ("refund", "end"),
    }
    assert arrows(chart, "-->") == {("route on kind", "other"), ("other", "end")}
    assert box(chart, "first") == "first · scripted<br/>1 visit · 0 s · $0.00"
    assert box(chart, "refund") == "refund · scripted<br/>1 visit · 0 s · $0.0125"
    assert box(chart, "look") == "look<br/>1 call"
    assert box(chart, "other") == "other · scripted"
    assert "class n1,n2,n3 visited" in chart


async def test_a_way_that_stopped_half_way_is_drawn_as_far_as_it_went():
    @step
    def broken(input):
        raise RuntimeError("no")

    flow = clerk("first") >> broken >> clerk("never")
    chart = drawn(flow, trial=await played(flow))
    assert arrows(chart, "==>") == {("start", "first"), ("first", "broken")}
    assert box(chart, "broken") == "broken<br/>1 visit · 1 failed · 0 s"


async def test_the_way_through_races_tries_maps_clocks_and_approvals():
    @step
    def broken(input):
        raise RuntimeError("no")

    @step
    def three(input):
        return [1, 2, 3]

    flow = (
        race(clerk("quick"), Agent("slow", model=Scripted("late", latency=9)))
        >> (broken // clerk("second") // clerk("third"))
        >> three
        >> map_over(clerk("each"))
        >> timeout(clerk("timed"), 20)
        >> tap(lambda state: None, name="watch")
        >> approved(clerk("pay"), "Pay?", otherwise=clerk("refuse"))
    )
    user = UserAgents(tools={"approve_pay": False})
    ledger = await simulate(Case("one", says="Hi", user=user), flow)
    chart = drawn(flow, trial=ledger)
    approval = "approve_pay"
    assert arrows(chart, "-->") == {
        ("slow", "the first answer"),
        ("try", "third"),
        ("broken", "three"),
        ("third", "three"),
        ("each item", "the list"),
        (approval, "pay"),
        ("pay", "end"),
    }
    assert box(chart, "slow") == "slow · scripted<br/>1 visit · 1 not finished · 0 s"
    assert box(chart, "each ·") == "each · scripted<br/>3 visits · 0 s · $0.00"


async def test_rounds_of_a_loop_and_branches_are_drawn_as_they_were_gone():
    flow = loop((clerk("a") | clerk("b")) >> clerk("c"), max_rounds=2)
    chart = drawn(flow, trial=await played(flow))
    assert not arrows(chart, "-->")
    assert box(chart, "c") == "c · scripted<br/>2 visits · 0 s · $0.00"
    once = loop(clerk("a"), max_rounds=1)
    assert arrows(drawn(once, trial=await played(once)), "-->") == {("loop, at most 1 rounds", "a")}


async def test_the_time_a_user_takes_is_no_time_of_the_node():
    @tool(yields=True)
    def ask(question: str) -> str:
        """Ask the user."""
        raise AssertionError

    asks = Agent("asks", model=Scripted(call("ask", question="Sure?"), "Done"), tools=[ask])
    from greenroom.ledger import Answered

    user = UserAgents(tools={"ask": "yes"})
    ledger = await simulate(Case("one", says="Hi", user=user), asks)
    late = [
        event.at + 50 if event.seq >= ledger.of(Answered)[0].seq else event.at for event in ledger
    ]
    from msgspec import structs

    slow = Ledger([structs.replace(e, at=at) for e, at in zip(ledger, late, strict=True)])
    shown = re.search(r"1 visit · ([\d.]+) ms", drawn(asks, trial=slow))
    assert shown
    assert float(shown[1]) < 5000


async def test_a_price_that_is_not_known_is_not_free():
    agent = clerk("clerk", ModelReply("Hi", usage=Usage(1, 1)))
    assert "cost unknown" in drawn(agent, trial=await played(agent))


def test_an_estimate_stands_at_each_node():
    brain = choose(candidate(Scripted("Hi", name="paid"), price=Price.per_million(1, 1)))
    flow = Agent("clerk", model=brain) >> clerk("free")
    guess = estimate(flow, Traffic(tokens_in=900, tokens_out=100))
    chart = drawn(flow, costs=guess)
    assert re.search(r"free · scripted<br/>≈ \$0\.00", chart)
    assert "<br/>≈ $0.001" in chart


def test_data_goes_dotted_from_those_who_write_to_those_who_read():
    @step(writes="draft")
    def write(input):
        return input

    judge = clerk("judge", reads="draft", writes="user.verdict")
    flow = write >> judge >> route("user.verdict", good=clerk("a", reads="draft"), otherwise=write)
    chart = drawn(flow, data=True)
    assert '-.->|"draft"|' in chart
    assert arrows(chart, "-.->") == {
        ("write", "judge"),
        ("write", "a"),
        ("judge", "route on user.verdict"),
    }


LINKS: list[tuple[Any, set[tuple[str, str, bool]]]] = [
    (clerk("w", writes="x") >> clerk("r", reads="x"), {("seq.0/w", "seq.1/r", False)}),
    (clerk("r", reads="x") >> clerk("w", writes="x"), {("seq.1/w", "seq.0/r", True)}),
    (
        clerk("w", writes="x") >> clerk("v", writes="x") >> clerk("r", reads="x"),
        {("seq.1/v", "seq.2/r", False)},
    ),
    (
        (clerk("w", writes="x") | clerk("v", writes="y")) >> clerk("r", reads=["x", "y"]),
        {("seq.0/par.0/w", "seq.1/r", False), ("seq.0/par.1/v", "seq.1/r", False)},
    ),
    (
        clerk("w", writes="x")
        >> route("session.k", a=clerk("v", writes="x"), otherwise=clerk("u"))
        >> clerk("r", reads="x"),
        {("seq.0/w", "seq.2/r", False), ("seq.1/route.a/v", "seq.2/r", False)},
    ),
    (
        loop(clerk("r", reads="x") >> clerk("w", writes="x"), max_rounds=2),
        {("loop#/seq.1/w", "loop#/seq.0/r", False)},
    ),
    (
        loop(clerk("w", writes="n"), until={"session": {"n": {"$gte": 3}}}),
        {("loop#/w", "loop", True)},
    ),
]


@pytest.mark.parametrize("flow, links", LINKS)
def test_who_reads_what_whom_wrote_follows_the_flow(flow, links):
    snapshot: Any = compile_flow(flow).snapshot
    found = {(one.writer, one.reader, one.later) for one in data_links(snapshot)}
    assert found == links
    # The contracts see the same, from the graph itself.
    edges = {(one.writer, one.reader) for one in data_edges(compile_flow(flow))}
    assert edges == {(writer, reader) for writer, reader, _ in links}


def test_tools_read_and_write_for_their_agent():
    snapshot = {
        "id": "seq",
        "kind": "sequence",
        "parts": {
            "0": {"id": "a", "kind": "agent", "tools": [{"name": "t", "writes": ["user.tier"]}]},
            "1": {"id": "b", "kind": "agent", "tools": [{"name": "u", "reads": ["user.tier"]}]},
        },
    }
    assert data_links(snapshot) == [DataLink("a", "b", "user.tier")]


async def test_a_function_s_trial_shows_what_it_visited():
    def greeter(message: str) -> str:
        return f"You said {message}"

    from greenroom.backends.registry import backend_for

    backend = backend_for(greeter)
    ledger = await simulate(Case("one", says="Hi"), greeter)
    chart = mermaid(backend.snapshot, trial=ledger)
    assert not arrows(chart, "-->")
    assert "1 visit" in chart


NAMES = st.text() | st.sampled_from(['"]; evil', "<script>", "a\nb --> c", "#quot;", "`x`"])
KINDS = (
    "agent",
    "step",
    "sequence",
    "parallel",
    "loop",
    "route",
    "race",
    "fallback",
    "map_over",
    "timeout",
    "approved",
)
SNAPSHOTS = st.recursive(
    st.none() | st.integers() | NAMES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {"kind": st.sampled_from([*KINDS])},
            optional={
                "name": NAMES,
                "model": NAMES,
                "tools": st.lists(inner, max_size=2),
                "parts": st.dictionaries(NAMES, inner, max_size=3)
                | st.fixed_dictionaries({"body": inner}),
                "on": NAMES,
                "until": NAMES,
                "id": NAMES,
                "over": NAMES,
                "question": NAMES,
                "seconds": NAMES | st.floats(),
                "reads": NAMES | st.lists(NAMES, max_size=2),
                "writes": NAMES | st.lists(NAMES, max_size=2),
            },
        )
    ),
    max_leaves=8,
)


@given(SNAPSHOTS)
def test_no_name_can_break_out_of_its_label(snapshot):
    chart = mermaid(snapshot, data=True, trial=Ledger())
    first, *lines = chart.removesuffix("\n").split("\n")
    assert first == "flowchart TD"
    assert [line for line in lines if not LINE.fullmatch(line)] == []


def test_what_is_temporary_is_not_drawn_into_the_next_turn() -> None:
    def reader_and_writer(place: str) -> Any:
        reader = Agent("reader", model=Scripted("x"), reads=place)
        return compile_flow(reader >> Agent("writer", model=Scripted("x"), writes=place)).snapshot

    assert data_links(reader_and_writer("temp.note")) == []
    assert [link.later for link in data_links(reader_and_writer("session.note"))] == [True]
