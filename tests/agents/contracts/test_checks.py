"""Types, scopes, dead state, budgets, races, names, and checks of one's own."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from greenroom import Agent, Scripted, StateSchema, loop, route, step, tool
from greenroom.agents import (
    Contracts,
    Flow,
    Graph,
    Issue,
    Temp,
    UserScoped,
    check,
    compile_flow,
    data_edges,
    race,
    register_check,
)
from greenroom.agents.contracts import Edge, forget_check
from greenroom.agents.contracts.nearest import edits, nearest_place
from greenroom.agents.contracts.state_types import fits
from greenroom.errors import BadAgent, BadInput, BadPlugin


class Desk(StateSchema):
    intent: Literal["refund", "question"]
    confidence: float
    ticket: str | None = None
    tier: Annotated[str, UserScoped]
    scratch: Annotated[list[str], Temp]


class Verdict(BaseModel):
    intent: str
    confidence: float


class Vague(BaseModel):
    confidence: str


def agent(name: str = "agent", **options: Any) -> Agent:
    return Agent(name, model=Scripted("x"), **options)


def of_kind(kind: str, *given: Any, **options: Any) -> list[Issue]:
    return [issue for issue in check(*given, **options) if issue.kind == kind]


def told(kind: str, *given: Any, **options: Any) -> list[str]:
    return [f"{one.severity} {one.place} {one.says}" for one in of_kind(kind, *given, **options)]


# Types


def test_an_output_must_fit_the_field_that_it_is_written_to() -> None:
    (issue,) = of_kind("TypeMismatch", agent(writes="confidence"), schema=Desk)
    assert issue.severity == "error"
    assert issue.node == "agent"
    assert issue.says == "writes str to session.confidence, but Desk.confidence is float."


def test_a_structured_output_is_compared_part_by_part() -> None:
    fine = agent(output=Verdict, writes=[Desk.intent, Desk.confidence])
    assert not of_kind("TypeMismatch", fine)
    wrong = agent(output=Vague, writes=[Desk.intent, Desk.confidence])
    assert [issue.place for issue in of_kind("TypeMismatch", wrong)] == [
        "session.intent",
        "session.confidence",
    ]


def test_a_step_is_held_to_its_return_annotation_if_it_has_one() -> None:
    @step(writes=Desk.confidence)
    def text(input: Any) -> str:
        return "much"

    @step(writes=Desk.confidence)
    def number(input: Any) -> int:
        return 1

    @step(writes=Desk.confidence)
    def untold(input: Any):
        return "much"

    assert [len(of_kind("TypeMismatch", one)) for one in (text, number, untold)] == [1, 0, 0]


def test_two_schemas_must_agree_on_a_place() -> None:
    class Other(StateSchema):
        confidence: str

    flow = agent("a", reads=Desk.confidence) >> agent("b", reads=Other.confidence)
    (issue,) = of_kind("TypeMismatch", flow)
    assert issue.says == (
        "Desk.confidence says that session.confidence is float, but Other.confidence says str."
    )


def test_the_starting_state_must_fit_the_schema() -> None:
    given = {"session": {"confidence": "high"}}
    (issue,) = of_kind("TypeMismatch", agent(), schema=Desk, given=given)
    assert "begins with a wrong value at session.confidence" in issue.says
    assert not of_kind("TypeMismatch", agent(), given=given)


def test_a_route_goes_by_what_its_field_can_be() -> None:
    flow = route(Desk.intent, refund=agent("a"), refunds=agent("b"))
    assert told("TypeMismatch", flow) == [
        "error session.intent has no branch for question, which Desk.intent may be.",
        "warning session.intent never goes to 'refunds': Desk.intent is question or refund.",
    ]
    whole = route(Desk.intent, refund=agent("a"), otherwise=agent("b"))
    assert not of_kind("TypeMismatch", whole)


def test_a_place_that_is_not_in_the_schema_is_named_with_the_nearest_one() -> None:
    (issue,) = of_kind("SchemaViolation", agent(writes="confidense"), schema=Desk)
    assert (issue.severity, issue.place) == ("warning", "session.confidense")
    assert issue.fix == "Did you mean session.confidence?"
    assert not of_kind("SchemaViolation", agent(writes="confidense"))


@pytest.mark.parametrize(
    "given, wanted, answer",
    [
        (str, str, True),
        (int, float, True),
        (float, int, False),
        (str, float, False),
        (str, Any, True),
        (Any, str, None),
        (str, str | None, True),
        (str | None, str, False),
        (None, str | None, True),
        (Literal["a"], str, True),
        (Literal["a"], Literal["a", "b"], True),
        (Literal["a", "c"], Literal["a", "b"], False),
        (str, Literal["a", "b"], None),
        (int, Literal["a", "b"], False),
        (list[str], list[int], False),
        (list[str], list[str], True),
        (list[str], list, None),
        (tuple[str, str], list, None),
        (Verdict, dict, None),
        (Verdict, str, False),
        (Annotated[str, "x"], str, True),
        (bytes, str, None),
    ],
)
def test_whether_a_type_fits_another(given: Any, wanted: Any, answer: bool | None) -> None:
    assert fits(given, wanted) is answer


# Scopes


def test_a_key_belongs_to_the_scope_where_its_schema_keeps_it() -> None:
    flow = agent("a", writes="session.tier") >> agent("b", reads="session.tier")
    assert told("ScopeMismatch", flow, schema=Desk) == [
        "error session.tier writes session.tier, but Desk.tier is kept at user.tier.",
        "error session.tier reads session.tier, but Desk.tier is kept at user.tier.",
    ]


def test_a_scope_that_looks_like_a_slip_is_named() -> None:
    flow = agent("a", writes="sesion.intent") >> agent("b", reads="sesion.intent")
    assert {issue.fix for issue in of_kind("ScopeMismatch", flow)} == {
        "Did you mean session.intent?"
    }
    assert not of_kind("ScopeMismatch", agent("a", writes="patient.name"))


def test_what_is_temporary_is_gone_in_the_next_turn() -> None:
    writer = agent("w", writes="temp.note")
    reader = agent("r", reads="temp.note")
    assert not check(writer >> reader)
    assert of_kind("ReadBeforeWrite", reader >> writer)[0].fix.startswith("Let a node write it")
    kept = {"temp": {"note": 1}}
    assert [issue.severity for issue in of_kind("MaybeUnwritten", reader, given=kept)] == [
        "warning"
    ]
    alone = loop(reader, awaits_input=True)  # one turn, for as long as the conversation lasts
    assert not check(alone, given=kept)


def test_a_default_counts_where_a_node_reads_by_the_field_that_has_it() -> None:
    assert not check(agent(reads=Desk.ticket)).errors
    assert not check(agent(reads="ticket", schema=Desk)).errors
    assert not check(route(Desk.ticket, a=agent("a"))).errors
    assert check(agent(reads=Desk.confidence)).errors
    # The schema of the whole gives no default to one who reads by a text.
    assert check(agent(reads="ticket"), schema=Desk).errors

    @step(reads="ticket")
    def typed(state: Desk) -> None:
        _ = state.ticket

    assert not check(typed).errors


def test_a_step_that_sees_the_state_by_a_schema_writes_no_more_than_the_schema_has() -> None:
    @step
    def typed(state: Desk) -> None:
        state.confidence = 0.5

    assert [i.kind for i in check(typed >> agent(reads="confidence"))] == ["MaybeUnwritten"]
    assert [i.kind for i in check(typed >> agent(reads="other"))] == ["ReadBeforeWrite"]


def test_a_query_about_a_scope_of_ones_own_needs_something_there() -> None:
    own = loop(agent(), until={"patient": {"told": True}}, max_rounds=3)
    assert check(own).errors
    assert not check(own, given={"patient": {"told": False}})
    maybe = route(lambda: "a", a=agent("a", writes="patient.told"), b=agent("b"))
    flow = loop(maybe, until={"patient": {"told": True}}, max_rounds=3)
    assert [i.kind for i in check(flow)] == ["MaybeUnwritten"]
    flow = loop(
        route(lambda: "a", a=agent("a", writes="told"), b=agent("b")),
        until={"session": {"told": 1}},
        max_rounds=3,
    )
    assert not check(flow)


# Dead state, budgets, races, names


def test_what_no_node_reads_is_dead_unless_it_is_the_outcome() -> None:
    first, last = agent("first", writes="draft"), agent("last", writes="answer")
    (issue,) = of_kind("DeadState", first >> last)
    assert (issue.severity, issue.node, issue.place) == ("note", "seq.0/first", "session.draft")
    assert not of_kind("DeadState", first >> agent("last", reads="draft"))
    assert not of_kind("DeadState", agent("a", writes="user.name") >> last)
    assert not of_kind("DeadState", agent("a", writes="temp.name") >> last)

    @step
    def anything(state: Any) -> None: ...

    assert not of_kind("DeadState", first >> anything >> last)


def test_branches_that_write_one_place_are_named() -> None:
    flow = agent("a", writes="answer") | agent("b", writes="answer") | agent("c", writes="other")
    (issue,) = of_kind("ParallelWrites", flow)
    assert issue.says.startswith("par.0/a and par.1/b both write session.answer")


def test_a_loop_without_a_limit_of_its_own_is_named() -> None:
    assert [i.severity for i in of_kind("NoLimit", loop(agent(), until=lambda: True))] == [
        "warning"
    ]
    assert not of_kind("NoLimit", loop(agent(), until=lambda: True, max_rounds=3))
    assert not of_kind("NoLimit", loop(agent(), max_rounds=3))


def test_racing_tools_that_act_are_named() -> None:
    @tool
    def pay() -> None: ...

    @tool(read_only=True)
    def look() -> None: ...

    flow = race(agent("a", tools=[pay, look]), agent("b", tools=[look]))
    (issue,) = of_kind("RacingTools", flow)
    assert issue.node == "par.0/a"
    assert "with pay:" in issue.says
    assert not of_kind("RacingTools", agent("a", tools=[pay]) | agent("b", tools=[look]))


def test_placeholders_that_are_not_declared_are_named() -> None:
    one = agent(reads="intent", instructions="Do {intent}, not {intents}. {JSON} {{x}} {a b} {}")
    given = {"session": {"intent": "x"}}
    assert [(i.severity, i.fix) for i in of_kind("UndeclaredPlaceholder", one, given=given)] == [
        ("warning", "Did you mean {intent}?"),
        ("note", "Declare it with reads='JSON', or leave it if that is intended."),
    ]


def test_names_that_two_things_have_are_named() -> None:
    @tool(name="find")
    def by_text(text: str) -> str:
        return text

    @tool(name="find")
    def by_number(number: int) -> str:
        return str(number)

    one, other = agent("clerk", tools=[by_text]), agent("clerk", tools=[by_number])
    assert [issue.node for issue in of_kind("SameName", one >> other)] == ["seq.1/clerk"] * 2
    assert not of_kind("SameName", one >> one)
    assert not of_kind("SameName", one >> agent("other", tools=[by_text]))


# The nearest name


@pytest.mark.parametrize(
    "one, other, count", [("", "", 0), ("", "ab", 2), ("abc", "acb", 1), ("kitten", "sitting", 3)]
)
def test_edits_are_letters_put_in_taken_out_changed_or_swapped(
    one: str, other: str, count: int
) -> None:
    assert edits(one, other) == edits(other, one) == count


def test_the_nearest_place_has_the_fewest_edits_and_may_be_in_another_scope() -> None:
    known = frozenset(["session.intent", "session.intend", "user.tier", "session.x"])
    assert nearest_place("session.intnet", known) == "session.intent"
    assert nearest_place("session.tier", known) == "user.tier"
    assert nearest_place("session.order", known) == ""


# Edges


def test_edges_lead_from_who_may_have_written_to_who_reads() -> None:
    a, b = agent("a", writes="x"), agent("b", writes="x")
    reader = agent("r", reads="x")
    graph = compile_flow(
        loop(route(lambda: "p", p=a, q=b) >> reader >> agent("d", writes="y"), max_rounds=2)
    )
    place, base = "session.x", "loop#/seq."
    assert data_edges(graph) == [
        Edge(f"{base}0/route.p/a", f"{base}1/r", place),
        Edge(f"{base}0/route.q/b", f"{base}1/r", place),
    ]
    assert data_edges(compile_flow(reader >> a)) == [Edge("seq.1/a", "seq.0/r", place, later=True)]
    # What is written over does not get there.
    assert data_edges(compile_flow(a >> b >> reader)) == [Edge("seq.1/b", "seq.2/r", place)]


# What is given, and checks of one's own


def test_issues_come_errors_first_and_can_be_counted_and_written_down() -> None:
    found = check(agent("a", instructions="{x}") >> agent("b", reads="y"))
    assert isinstance(found, Contracts)
    assert [issue.severity for issue in found] == ["error", "note"]
    assert len(found) == 2
    assert str(found).splitlines()[-1] == "1 error, 1 note"
    data = found.data()
    assert list(data) == ["version", "errors", "warnings", "notes", "issues"]
    assert (data["version"], data["errors"], data["warnings"], data["notes"]) == (1, 1, 0, 1)
    assert data["issues"][0] == {
        "kind": "ReadBeforeWrite",
        "severity": "error",
        "node": "seq.1/b",
        "place": "session.y",
        "says": "reads session.y, but no node before it leaves a value there.",
        "fix": "Let a node write it, or begin with a value there.",
    }


@pytest.mark.parametrize("given", [3, {"session": 3}, "session"])
def test_a_state_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(BadInput, match="is not a state"):
        check(agent(), given=given)


def test_only_our_own_agents_and_schemas_can_be_checked() -> None:
    with pytest.raises(BadAgent, match="cannot be checked"):
        check(object())
    with pytest.raises(BadInput, match="is not a schema"):
        check(agent(), schema=dict)


def test_a_registered_check_is_run_and_replaces_one_of_its_name() -> None:
    def noisy(graph: Graph, schema: Any, given: Any) -> Iterator[Issue]:
        yield Issue("Noise", "note", graph.root.id, "", "is here.")

    broken: Flow = agent(reads="x")
    try:
        register_check("noise", noisy)
        assert [issue.kind for issue in check(broken)] == ["ReadBeforeWrite", "Noise"]
        register_check("data_flow", noisy)
        assert [issue.kind for issue in check(broken)] == ["Noise"]
    finally:
        forget_check("noise")
        forget_check("data_flow")
    assert [issue.kind for issue in check(broken)] == ["ReadBeforeWrite"]


def test_a_check_that_gives_something_else_is_a_bad_plugin() -> None:
    register_check("odd", lambda *_: ["an issue"])  # pyright: ignore[reportArgumentType]
    try:
        with pytest.raises(BadPlugin, match="the check 'odd' gave 'an issue'"):
            check(agent())
    finally:
        forget_check("odd")
