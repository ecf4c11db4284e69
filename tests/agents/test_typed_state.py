"""Typed and untyped nodes on one state: steps, deciders, tools, instructions."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    StateSchema,
    Turn,
    call,
    loop,
    rehearse,
    route,
    simulate,
    step,
    with_state_change,
)
from greenroom.agents import (
    Flow,
    Temp,
    UserScoped,
    check,
    compile_flow,
    default,
    merge,
    put,
    rename,
    tool,
)
from greenroom.agents.schema import fields_of
from greenroom.errors import BadAgent, BadQuery
from greenroom.ledger import response, responses, state
from greenroom.ledger.changes import append, delete, replace
from greenroom.ledger.events import ModelReplied, NodeEnded, NodeFailed, ToolCalled, ToolFailed
from greenroom.ledger.messages import ToolCall
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.results import CaseResult


class Verdict(BaseModel):
    intent: str
    confidence: float


class Billing(StateSchema):
    intent: str
    confidence: float = 1.0
    ticket: str | None = None
    tier: Annotated[str, UserScoped] = "basic"
    rounds: int = 0
    notes: Annotated[list[str], Temp] = []  # noqa: RUF012 - a default, copied for each reader


def run(flow: Flow, **options: Any) -> CaseResult:
    return rehearse(flow, [Case("c", says="hi", **options)]).results[0]


def rehearsed(flow: Flow, **options: Any) -> Ledger:
    result = run(flow, **options)
    assert result.ended == "completed", result.error
    assert result.ledger is not None
    return result.ledger


class Listening:
    """A model that keeps the instructions it was given."""

    name = "listening"

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.heard.append(request.instructions)
        return ModelReply(text="done")


@step
def triage(state: Billing) -> str:
    if state.confidence < 0.5:
        state.ticket = "T-1"
    state.notes.append("seen")
    return "triaged"


@step
def untyped(state: Any) -> str:
    state.session["confidence"] = 0.3
    return "guessed"


def test_typed_and_untyped_steps_share_one_state() -> None:
    @step
    def look(state: Any, input: Any) -> str:
        assert state.temp["notes"] == ["seen"]
        return f"{input} {state.session['ticket']}"

    ledger = rehearsed(untyped >> triage >> look)
    assert ledger.fold()["session"] == {"confidence": 0.3, "ticket": "T-1"}
    assert ledger.of(NodeEnded)[-1].output == "triaged T-1"


def test_a_missing_key_fails_the_node_with_its_name() -> None:
    @step
    def read(state: Billing) -> str:
        return state.intent

    result = run(untyped >> read)
    assert result.ledger is not None
    (failed,) = result.ledger.of(NodeFailed)
    assert failed.error_type == "StateKeyError"
    assert "'session' holds confidence" in failed.error


def test_a_wrong_write_fails_the_step_and_changes_nothing() -> None:
    wrong: Any = 7

    @step
    def write(state: Billing) -> None:
        state.ticket = "T-1"
        state.intent = wrong

    @step
    def extend(state: Billing) -> None:
        state.notes.append(wrong)

    for body in (write, extend):
        result = run(body)
        assert result.ledger is not None
        (failed,) = result.ledger.of(NodeFailed)
        assert failed.error_type == "TypeError"
        assert "but was given" in failed.error
        assert result.ledger.fold().get("session", {}) == {}


class Item(BaseModel):
    n: int


class Shelf(StateSchema):
    n: int = 0
    items: list[Item] = []  # noqa: RUF012 - a default, copied for each reader
    best: Item | None = None
    words: list[str] = []  # noqa: RUF012 - a default, copied for each reader


SHELF: Any = Shelf


def test_an_attribute_of_a_kept_object_must_have_its_type_too(
    recwarn: pytest.WarningsRecorder,
) -> None:
    @step
    def nested(state: Shelf) -> str:
        state.items.append(Item(n=1))
        state.items[0].n = "one"  # pyright: ignore[reportAttributeAccessIssue]
        return "x"

    result = run(nested)
    assert result.error is not None
    assert "Shelf.items is list[" in result.error.message
    assert result.ledger is not None
    assert state(result.ledger) == {}
    assert not recwarn.list


@pytest.mark.parametrize(
    "wrong",
    [
        {SHELF.n: "one"},
        {SHELF.n: {"a": 1}},
        {SHELF.items: [{"n": "one"}]},
        {SHELF.items: append({"n": "one"})},
        {SHELF.best: replace({"n": "one"})},
        {SHELF.words: append(1)},
    ],
)
def test_changes_by_field_must_have_its_type(wrong: Any) -> None:
    with pytest.raises(BadAgent, match=r"put\(\.\.\.\): Shelf\.\w+ is .*, but was given"):
        put(wrong)
    with pytest.raises(BadAgent, match=r"default\(\.\.\.\): Shelf\.\w+ is .*, but was given"):
        default(wrong)
    with pytest.raises(TypeError, match=r"Shelf\.\w+ is .*, but was given"):
        with_state_change("ok", wrong)


def test_changes_by_field_that_have_its_type_are_made() -> None:
    right: Any = {SHELF.n: 1, SHELF.items: append(Item(n=1)), SHELF.best: {"n": 2}}
    assert with_state_change("ok", right).changes
    assert with_state_change("ok", {SHELF.n: delete()}).changes
    ledger = rehearsed(put({SHELF.words: append("a"), SHELF.best: {"n": 2}}))
    assert state(ledger) == {"session": {"words": ["a"], "best": {"n": 2}}}


@pytest.mark.parametrize(
    "wrong",
    [
        put({SHELF.n: lambda: "one"}),
        put(x="one") >> rename({"x": SHELF.n}),
        put(x="one", y=1) >> merge("x", "y", into=Shelf.n),
    ],
)
def test_a_computed_value_must_have_the_type_of_its_field(wrong: Flow) -> None:
    result = run(wrong)
    assert result.error is not None
    assert "Shelf.n is int, but was given" in result.error.message


def test_a_constant_that_is_put_is_checked_against_the_schema_before_the_run() -> None:
    found = check(put(n="one") >> put(words=append(1)) >> put(n=lambda: "x"), schema=Shelf)
    assert [(i.kind, i.place) for i in found if i.kind == "TypeMismatch"] == [
        ("TypeMismatch", "session.n"),
        ("TypeMismatch", "session.words"),
    ]


def test_a_mock_that_changes_a_field_to_another_type_is_broken() -> None:
    @tool
    def look() -> str:
        """Look."""
        raise AssertionError

    def wrong() -> Any:
        return with_state_change("ok", {SHELF.n: "one"})

    agent = Agent("a", model=Scripted(call("look"), "x"), tools=[look])
    result = run(agent, mocks={"look": wrong})
    assert result.error is not None
    assert "raised TypeError: Shelf.n is int, but was given 'one'" in result.error.message


def test_fields_stand_for_places_in_routes_and_loops() -> None:
    @step
    def more(state: Billing) -> str:
        state.rounds += 1
        state.intent = "refund"
        return "more"

    @step
    def refund(state: Billing) -> str:
        return f"refund after {state.rounds}"

    other = step(lambda: "other", name="other")
    flow = loop(more, until={Billing.rounds: {"$gte": 3}}) >> route(
        Billing.intent, refund=refund, otherwise=other
    )
    assert rehearsed(flow).of(NodeEnded)[-1].output == "refund after 3"
    by_text = loop(more, until={"session": {"rounds": {"$gte": 3}}}) >> route(
        "session.intent", refund=refund, otherwise=other
    )
    assert compile_flow(flow).snapshot == compile_flow(by_text).snapshot


def test_a_route_by_a_bare_key_or_by_a_default_finds_its_way() -> None:
    basic, gold = step(lambda: "basic", name="basic"), step(lambda: "gold", name="gold")
    by_default = route(Billing.tier, basic=basic, gold=gold)
    assert rehearsed(by_default).of(NodeEnded)[-1].output == "basic"
    known = {"user": {"tier": "gold"}, "session": {"kind": "gold"}}
    assert rehearsed(by_default, state=known).of(NodeEnded)[-1].output == "gold"
    by_key = route("kind", basic=basic, gold=gold)
    assert rehearsed(by_key, state=known).of(NodeEnded)[-1].output == "gold"


def test_a_loop_goes_on_until_something_true_stands_at_a_place() -> None:
    class Work(StateSchema):
        done: bool

    @step
    def work(state: Any) -> int:
        state.session["n"] = state.session.get("n", 0) + 1
        if state.session["n"] == 3:
            state.session["done"] = True
        return state.session["n"]

    for place in (Work.done, "done", "session.done"):
        assert rehearsed(loop(work, until=place)).of(NodeEnded)[-1].output == 3


def test_deciders_may_have_a_typed_view() -> None:
    def often_enough(state: Billing) -> bool:
        return state.rounds >= 2

    def way(state: Billing) -> str:
        return state.tier

    @step
    def more(state: Billing) -> int:
        state.rounds += 1
        return state.rounds

    basic = step(lambda state: f"basic {state.session['rounds']}", name="basic")
    flow = loop(more, until=often_enough) >> route(way, basic=basic)
    assert rehearsed(flow).of(NodeEnded)[-1].output == "basic 2"


@pytest.mark.parametrize("given", [7, ["session.x"], None])
def test_what_cannot_decide_is_refused(given: Any) -> None:
    with pytest.raises(BadAgent):
        route(given, a=triage)


def test_a_query_that_speaks_twice_of_a_place_is_refused() -> None:
    with pytest.raises(BadQuery, match=r"Billing\.rounds is at session\.rounds"):
        loop(triage, until={Billing.rounds: 1, "session": {"rounds": 2}})


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    def unknown(state: "Nowhere") -> None:  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
        pass

    with pytest.raises(BadAgent, match="at module level"):
        step(unknown)


def test_the_shape_of_a_schema_is_in_the_snapshot_of_those_who_name_it() -> None:
    def facts(flow: Flow) -> Any:
        return compile_flow(flow).snapshot

    assert set(facts(triage)["schema"]) == {
        "session.intent",
        "session.confidence",
        "session.ticket",
        "user.tier",
        "session.rounds",
        "temp.notes",
    }
    assert facts(triage)["schema"]["session.ticket"] == {
        "type": {"type": ["string", "null"]},
        "default": None,
    }
    reads = Agent("a", model=Scripted("x"), reads=Billing.intent)
    assert facts(reads)["schema"] == {"session.intent": {"type": {"type": "string"}}}
    by_schema = Agent("a", model=Scripted("x"), reads="intent", schema=Billing)
    assert len(facts(by_schema)["schema"]) == 6
    assert "schema" not in facts(untyped)


def test_an_answer_must_fit_the_field_it_is_written_to() -> None:
    flow = Agent("a", model=Scripted("0.9"), writes=Billing.confidence)
    result = run(flow)
    assert result.ledger is not None
    (failed,) = result.ledger.of(NodeFailed)
    assert "Billing.confidence is float, but was given '0.9'" in failed.error
    assert result.ledger.fold().get("session", {}) == {}
    well = Agent("a", model=Scripted("0.9"), output=float, writes=Billing.confidence)
    assert rehearsed(well).fold()["session"] == {"confidence": 0.9}


def test_several_fields_are_written_by_their_names_at_once() -> None:
    flow = Agent(
        "a",
        model=Scripted('{"intent": "refund", "confidence": 0.9}'),
        output=Verdict,
        writes=[Billing.intent, Billing.confidence],
    )
    ledger = rehearsed(flow)
    assert ledger.fold()["session"] == {"intent": "refund", "confidence": 0.9}
    assert [len(event.changes) for event in ledger.of(NodeEnded)] == [2]


def test_instructions_are_filled_from_declared_reads_and_from_nothing_else() -> None:
    model = Listening()
    agent = Agent(
        "a",
        model=model,
        reads=["intent", Billing.tier, "user.address.city", Billing.confidence],
        instructions='Do {intent} for {tier}/{user.tier} in {city}: {confidence} {secret} {"a": {}} {0}',
    )
    state = {
        "session": {"intent": "{tier}", "secret": "x", "confidence": 0.5},
        "user": {"address": {"city": "Ulm"}},
    }
    rehearsed(agent, state=state)
    assert model.heard == ['Do {tier} for basic/basic in Ulm: 0.5 {secret} {"a": {}} {0}']


def test_instructions_of_an_agent_that_declares_nothing_stay_as_they_are() -> None:
    model = Listening()
    rehearsed(Agent("a", model=model, instructions="{intent}"), state={"session": {"intent": "x"}})
    assert model.heard == ["{intent}"]


def test_instructions_with_nothing_to_fill_in_fail_the_node() -> None:
    model = Listening()
    agent = Agent("a", model=model, reads="intent", instructions="Do {intent}.")
    result = run(agent, state={"session": {"intend": "x"}})
    assert result.ledger is not None
    (failed,) = result.ledger.of(NodeFailed)
    assert failed.error_type == "StateKeyError"
    assert "Did you mean 'intend'?" in failed.error
    assert model.heard == []


def test_a_name_for_two_places_is_refused() -> None:
    with pytest.raises(BadAgent, match=r"\{tier\}, which may be any of session\.tier, user\.tier"):
        Agent("a", model="openai:x", reads=["tier", "user.tier"], instructions="{tier}")
    Agent("a", model="openai:x", reads=["tier", "user.tier"], instructions="{session.tier}")


def test_in_a_branch_instructions_show_the_branch_s_own_state() -> None:
    models = Listening(), Listening()
    branches = [
        step(lambda n=n: f"intent {n}", name=f"write{n}", writes="intent")
        >> Agent(f"a{n}", model=model, reads="intent", instructions="{intent}")
        for n, model in enumerate(models)
    ]
    rehearsed(branches[0] | branches[1])
    assert [model.heard for model in models] == [["intent 0"], ["intent 1"]]


class Classifying(Listening):
    """Calls its tool once, and then is done."""

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.heard.append(request.instructions)
        is_new = all(message.role != "tool" for message in request.messages)
        asked = (ToolCall("classify", {}, "1"),)
        return ModelReply(calls=asked) if is_new else ModelReply(text="done")


@tool(writes=Billing.intent)
def classify(ctx: Any) -> str:
    Billing.bind(ctx).intent = "refund"
    return "ok"


async def test_a_resumed_run_asks_with_the_same_instructions() -> None:
    def desk(model: Listening) -> Flow:
        options: dict[str, Any] = {"reads": Billing.intent, "instructions": "Now: {intent}"}
        return Agent("a", model=model, tools=[classify], **options)

    case = Case("c", says="hi", state={"session": {"intent": "unknown"}})
    model = Classifying()
    whole = await simulate(case, desk(model), allow_tools=[classify])
    assert model.heard == ["Now: unknown", "Now: refund"]
    for k in range(2, len(whole) - 1):
        asked = len([event for event in whole[:k] if isinstance(event, ModelReplied)])
        again = Classifying()
        if isinstance(whole[k - 1], ToolCalled):
            continue  # a tool that ran for real and was cut is in doubt
        await simulate(case, desk(again), ledger=Ledger(whole[:k]), allow_tools=[classify])
        assert again.heard == model.heard[asked:], k


@tool(writes=Billing.ticket)
def open_ticket(about: str, state: Billing) -> str:
    """Open a ticket."""
    state.ticket = f"T-{about}"
    return state.ticket


@tool
def annotate(note: Any, state: Billing) -> str:
    state.notes.append(note)
    return "ok"


def test_a_tool_may_have_a_typed_view_that_no_model_sees() -> None:
    assert set(open_ticket.parameters["properties"]) == {"about"}
    assert open_ticket.argument_names == ("about",)
    model = Scripted(call("open_ticket", about="7"), "Done.")
    agent = Agent("a", model=model, tools=[open_ticket])
    ledger = rehearsed(agent, allow_tools=[open_ticket])
    assert ledger.fold()["session"] == {"ticket": "T-7"}


def test_a_step_that_calls_a_tool_with_a_view_gives_it_no_state() -> None:
    @step
    def direct() -> str:
        return open_ticket("8")

    ledger = rehearsed(direct, allow_tools=[open_ticket])
    assert ledger.fold()["session"] == {"ticket": "T-8"}


def test_a_tool_that_writes_wrongly_fails_and_its_model_hears_why() -> None:
    model = Scripted(call("annotate", note=7), "Sorry.")
    ledger = rehearsed(Agent("a", model=model, tools=[annotate]), allow_tools=[annotate])
    (failed,) = ledger.of(ToolFailed)
    assert "Billing.notes is list[str], but was given [7]" in failed.error
    assert ledger.fold().get("temp", {}) == {}


class Mixed(StateSchema):
    number: int
    text: Annotated[str, UserScoped]
    words: list[str] = []  # noqa: RUF012 - a default, copied for each reader
    order: Annotated[Verdict, Temp]


FIELDS = ("number", "text", "words", "order")
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "append", "delete", "untyped"]),
        st.sampled_from(FIELDS),
        st.sampled_from([1, "x", None, ["y"], Verdict(intent="a", confidence=1), float("nan")]),
    ),
    min_size=1,
    max_size=4,
)


def typed_step(number: int, deeds: Any) -> Flow:
    def run(state: Mixed, ctx: Any) -> str:
        for deed, name, value in deeds:
            match deed:
                case "read":
                    getattr(state, name)
                case "write":
                    setattr(state, name, value)
                case "append":
                    state.words.append(value)
                case "delete":
                    delattr(state, name)
                case _:
                    ctx.state[fields_of(Mixed)[name].scope][name] = ["anything"]
        return "done"

    return step(run, name=f"s{number}")


@given(st.lists(DEEDS, min_size=2, max_size=3))
def test_typed_steps_fail_by_no_other_errors_than_their_own(steps: Any) -> None:
    flow: Any = typed_step(0, steps[0])
    for number, deeds in enumerate(steps[1:], 1):
        flow = flow >> typed_step(number, deeds)
    result = run(flow)
    assert result.ledger is not None
    for failed in result.ledger.of(NodeFailed):
        assert failed.error_type in ("StateKeyError", "TypeError"), failed.error
    assert result.ended == "completed" or result.ledger.of(NodeFailed)


def test_a_schema_that_is_none_is_refused() -> None:
    wrong: Any = {"intent": str}
    with pytest.raises(BadAgent, match="give a StateSchema"):
        Agent("a", model=Scripted("x"), schema=wrong)


def test_functions_and_mocks_see_the_state_by_a_schema() -> None:
    @tool
    def classify_text(text: str) -> str:
        """Classify."""
        raise AssertionError("a tool body ran in a rehearsal")

    def mock(text: str, ctx: Any) -> str:
        Billing.bind(ctx).intent = "refund"
        return text

    def desk(message: str, ctx: Any) -> str:
        view = Billing.bind(ctx)
        view.tier = "gold"
        classify_text(message)
        return f"{view.intent} for {view.tier}"

    (result,) = rehearse(desk, [Case("c", says="hi", mocks={"classify_text": mock})]).results
    assert result.ended == "completed", result.error
    assert result.ledger is not None
    assert response(result.ledger) == "refund for gold"
    assert result.ledger.fold() == {"session": {"intent": "refund"}, "user": {"tier": "gold"}}


def test_what_is_temporary_is_gone_in_the_next_turn() -> None:
    @step
    def look(state: Billing) -> str:
        seen = len(state.notes)
        state.notes.append("seen")
        state.rounds += 1
        return f"{seen} notes"

    turns = [Turn("one"), Turn("two")]
    (result,) = rehearse(look, [Case("c", turns=turns)]).results
    assert result.ledger is not None
    assert responses(result.ledger) == ["0 notes", "0 notes"]
    assert result.ledger.fold() == {"session": {"rounds": 2}}
