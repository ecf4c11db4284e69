"""A flow compiled to google-adk does what it does natively; what has no form there is refused at once."""

from typing import Annotated, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from pydantic import BaseModel

from attached_files import BIG_PNG
from backends.adk.both_ways import check, compiled
from greenroom import (
    Agent,
    Case,
    Scripted,
    StateSchema,
    attach,
    call,
    loop,
    rehearse,
    route,
    step,
    tool,
)
from greenroom.agents import (
    approved,
    by,
    drop,
    fallback,
    history,
    map_over,
    put,
    race,
    resource,
    tap,
    timeout,
)
from greenroom.backends.adk import to_adk
from greenroom.errors import BadAgent, CannotCompile
from greenroom.models import ModelRequest


@tool
def refund(order: int, ctx: Any) -> str:
    """Refund an order."""
    ctx.state.session["refunded"] = order
    return f"order {order} refunded"


@tool(yields=True)
def ask_user(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


class Verdict(BaseModel):
    kind: str
    sure: float


class Desk(StateSchema):
    kind: str
    sure: float = 0.0


def said(name: str, *answers: Any) -> Agent:
    return Agent(name, model=Scripted(*answers, then=f"{name} again"))


async def test_an_agent_with_a_tool_asks_calls_and_answers_the_same_over_two_turns() -> None:
    clerk = Agent(
        "clerk",
        model=Scripted(call("refund", order=7), "Done.", "You're welcome."),
        instructions="Be kind. {braces} stay.",
        tools=[refund],
        writes="answer",
    )
    heard = await check(clerk, ["Refund order 7", "Thanks"])
    assert heard.answers == ["Done.", "You're welcome."]
    assert heard.state == {"session": {"refunded": 7, "answer": "You're welcome."}}
    assert len(heard.questions["@2/clerk"][0][2]) == 5  # it remembers the first turn, call included


async def test_typed_state_is_read_written_and_routed_on_the_same() -> None:
    triage = Agent(
        "triage",
        model=Scripted({"kind": "bill", "sure": 0.9}),
        output=Verdict,
        writes=[Desk.kind, Desk.sure],
    )
    billing = Agent(
        "billing",
        model=Scripted(lambda request: f"I was told: {request.instructions}"),
        instructions="A {kind} question.",
        reads=[Desk.kind],
    )
    flow = triage >> route(Desk.kind, bill=billing, otherwise=said("other"))
    heard = await check(flow)
    assert heard.answers == ["I was told: A bill question."]


async def test_a_structured_answer_that_does_not_fit_is_corrected_the_same() -> None:
    agent = Agent("judge", model=Scripted("no json", {"kind": "x", "sure": 1}), output=Verdict)
    heard = await check(agent)
    assert heard.answers == [{"kind": "x", "sure": 1.0}]
    assert len(heard.questions["@1/judge"]) == 2


async def test_an_empty_answer_fails_the_same() -> None:
    heard = await check(said("mute", ""))
    assert heard.answers == [("failed", "AgentFailed")]


async def test_an_agent_that_goes_round_in_circles_fails_the_same() -> None:
    agent = Agent("busy", model=Scripted(then=call("refund", order=1)), tools=[refund], max_steps=3)
    heard = await check(agent)
    assert heard.answers == [("failed", "LoopLimit")]


async def test_branches_see_nothing_of_each_other_and_merge_in_order() -> None:
    @step
    def left(state: Any) -> str:
        state.session["by"] = "left"
        return "l"

    @step
    def right(state: Any) -> str:
        seen = state.session.get("by", "nothing")
        state.session["by"] = "right"
        return f"right saw {seen}"

    heard = await check(left | right, state={"session": {"by": "nobody"}})
    assert heard.answers == [{"left": "l", "right": "right saw nobody"}]
    assert heard.state["session"]["by"] == "right"


async def test_a_branch_that_waits_for_the_user_keeps_its_own_state() -> None:
    @step
    def mark(state: Any, input: Any) -> Any:
        state.session["marked"] = True
        return input

    asking = Agent(
        "asking", model=Scripted(call("ask_user", question="Which?"), "ok"), tools=[ask_user]
    )

    @step
    def seen(state: Any) -> bool:
        return state.session.get("marked", False)

    heard = await check((mark >> asking >> seen) | said("other", "hm"))
    assert heard.answers[0]["seq"] is True


async def test_a_loop_runs_as_many_rounds_and_stops_by_the_state() -> None:
    @step
    def count(state: Any) -> int:
        state.session["n"] = state.session.get("n", 0) + 1
        return state.session["n"]

    heard = await check(loop(count, until={"session": {"n": {"$gte": 3}}}))
    assert heard.answers == [3]
    heard = await check(loop(said("writer", "one", "two"), max_rounds=2))
    assert heard.answers == ["two"]


async def test_a_loop_that_awaits_input_waits_for_the_next_message() -> None:
    talker = Agent("talker", model=Scripted("Hello", "Bye"))
    flow = loop(talker, until=lambda output: output == "Bye", awaits_input=True)
    heard = await check(flow, answer=lambda tool, args: "go on")
    assert heard.answers == ["Bye"]


async def test_a_failed_part_is_followed_by_the_next_even_after_a_wait() -> None:
    broken = Agent("broken", model=Scripted(ConnectionError("down"), then="up"))
    asking = Agent(
        "asking", model=Scripted(call("ask_user", question="Which?"), "ok"), tools=[ask_user]
    )
    heard = await check(fallback(broken, asking))
    assert heard.answers == ["ok"]
    assert len(heard.questions["@1/try.0/broken"]) == 1


async def test_what_takes_too_long_fails_and_the_next_takes_over() -> None:
    slow = Agent("slow", model=Scripted("late", latency=5))
    heard = await check(timeout(slow, 0.1) // said("quick", "in time"))
    assert heard.answers == ["in time"]


async def test_the_winner_of_a_race_is_the_outcome_and_the_loser_leaves_nothing() -> None:
    @step
    async def slow(state: Any) -> str:
        import asyncio

        state.session["slow"] = True
        await asyncio.sleep(3)
        return "slow"

    @step
    def quick(state: Any) -> str:
        state.session["quick"] = True
        return "quick"

    heard = await check(race(slow, quick))
    assert heard.answers == ["quick"]
    assert heard.state == {"session": {"quick": True}}


async def test_a_map_gives_a_list_in_its_order() -> None:
    shout = Agent("shout", model=Scripted(then=lambda request: request.last.upper()))

    @step
    def words(input: str) -> list[str]:
        return input.split()

    heard = await check(words >> map_over(shout, at_once=2), ["a b c"])
    assert heard.answers == [["A", "B", "C"]]
    heard = await check(map_over(shout, "session.words"), state={"session": {"words": ["x"]}})
    assert heard.answers == [["X"]]


@pytest.mark.parametrize("yes", [True, False, {"approved": False, "reason": "too much"}])
async def test_only_a_yes_leads_to_what_an_approval_guards(yes: Any) -> None:
    @step
    def pay(state: Any) -> str:
        state.session["paid"] = True
        return "paid"

    @step
    def refuse(input: Any) -> Any:
        return input

    asked: list[Any] = []

    def answer(tool: str, args: dict[str, Any]) -> Any:
        asked.append((tool, args["question"]))
        return yes

    flow = approved(pay, "Pay for {input}?", otherwise=refuse)
    heard = await check(flow, ["7"], answer)
    assert asked == [("approve_pay", "Pay for 7?")] * 2
    assert heard.state == ({"session": {"paid": True}} if yes is True else {})


async def test_a_team_hands_over_and_remembers_who_has_the_conversation() -> None:
    billing = Agent("billing", model=Scripted("Your bill is 7.", "Still 7."), description="Bills.")
    clerk = Agent("clerk", model=Scripted(call("transfer_to_billing")), handoffs=[billing])
    heard = await check(clerk, ["my bill?", "really?"])
    assert heard.answers == ["Your bill is 7.", "Still 7."]


async def test_a_tap_looks_on_and_transforms_change_the_state() -> None:
    seen: list[Any] = []

    def look(input: Any) -> None:
        seen.append(input)

    flow = put(a=1, b=2) >> tap(look) >> drop("a") >> said("x", "y")
    heard = await check(flow)
    assert seen == ["begin"] * 2
    assert heard.state == {"session": {"b": 2}}


async def test_scopes_keep_their_names_and_temporary_state_ends_with_the_turn() -> None:
    @step
    def fill(state: Any) -> Any:
        before = state.temp.get("t")
        state.user["tier"], state.temp["t"], state.shelf["notes"] = "gold", 1, [1]
        return [before, state.temp["t"], state.user["tier"]]

    heard = await check(fill, ["one", "two"])
    assert heard.answers == [[None, 1, "gold"]] * 2
    assert heard.state == {"user": {"tier": "gold"}, "shelf": {"notes": [1]}}


async def test_names_that_google_adk_does_not_take_are_changed_there_only() -> None:
    twin = said("front-desk", "one", "two")
    heard = await check(twin >> said("user", "hi") >> said("front-desk", "three"))
    assert heard.answers == ["three"]


async def test_agents_are_llm_agents_in_a_workflow_whose_edges_can_be_seen() -> None:
    from google.adk.workflow import Workflow

    app = to_adk(said("a", "1") >> route("kind", b=said("b", "2"), otherwise=said("c", "3")))
    assert isinstance(app, App)
    assert isinstance(app.root_agent, Workflow)
    root: Any = app.root_agent
    sequence = next(node for node in root.graph.nodes if node.name == "sequence")
    names = [node.name for node in sequence.graph.nodes]
    assert names == ["__START__", "a", "route"]
    agents = [node for node in sequence.graph.nodes if isinstance(node, LlmAgent)]
    assert [agent.name for agent in agents] == ["a"]
    assert {edge.route for edge in sequence.graph.nodes[2].graph.edges} == {None, "b", "otherwise"}


class Told(BasePlugin):
    """Notes what it is told, and changes what the model is asked."""

    def __init__(self, *, mock: str = "") -> None:
        super().__init__(name="told")
        self.seen: list[str] = []
        self.asked: list[Any] = []
        self.mock = mock

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        self.seen.append("model")
        self.asked = [part.text for one in llm_request.contents for part in one.parts]
        if self.mock:
            part = types.Part(text=self.mock)
            return LlmResponse(content=types.Content(role="model", parts=[part]))
        return None

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
        self.seen.append(tool.name)
        return {"result": "mocked"} if self.mock == "" else None


async def test_plugins_are_heard_before_the_flow_and_may_answer_in_place_of_tools_and_models() -> (
    None
):
    def again(request: ModelRequest) -> str:
        return f"the tool said {request.last}"

    clerk = Agent("clerk", model=Scripted(call("refund", order=7), again), tools=[refund])
    for plugin, words in [(Told(), "the tool said mocked"), (Told(mock="hi"), "hi")]:
        service = InMemorySessionService()
        runner = Runner(app=to_adk(clerk, name="desk", plugins=[plugin]), session_service=service)
        session = await service.create_session(app_name="desk", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="refund")])
        events = [
            event
            async for event in runner.run_async(
                user_id="u", session_id=session.id, new_message=message
            )
        ]
        assert events[-1].output == words
        assert plugin.seen[0] == "model"
        assert plugin.asked[0] == "refund"
        kept = await service.get_session(app_name="desk", user_id="u", session_id=session.id)
        assert kept is not None
        assert "refunded" not in kept.state


async def heard_from(flow: Any, says: list[str], *plugins: BasePlugin) -> list[list[types.Part]]:
    """What the user sees of each turn."""
    service = InMemorySessionService()
    runner = Runner(app=to_adk(flow, name="desk", plugins=plugins), session_service=service)
    session = await service.create_session(app_name="desk", user_id="u")
    found: list[list[types.Part]] = []
    for text in says:
        message = types.Content(role="user", parts=[types.Part(text=text)])
        running = runner.run_async(user_id="u", session_id=session.id, new_message=message)
        contents = [event.content async for event in running if event.content]
        found.append([part for content in contents for part in content.parts or []])
    return found


async def test_the_same_answer_is_given_in_every_turn() -> None:
    @step
    def greet(input: str) -> str:
        return "hello"

    turns = await heard_from(greet, ["a", "b"])
    assert [[part.text for part in turn] for turn in turns] == [["hello"], ["hello"]]


async def test_a_file_that_a_step_gives_is_in_the_answer() -> None:
    @step
    def draw(input: str) -> Any:
        return attach(BIG_PNG, name="cup.png")

    [turn] = await heard_from(draw, ["a cup"])
    assert [part.inline_data.data for part in turn if part.inline_data] == [BIG_PNG]


class Hushing(BasePlugin):
    """Puts other words in place of whatever a model replied, calls of tools too."""

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="hush")]))


@pytest.mark.parametrize("reply", ["a secret", call("refund", order=7)])
async def test_what_a_plugin_makes_of_a_reply_is_all_that_the_flow_and_the_user_hear(
    reply: Any,
) -> None:
    asked: list[str] = []

    def second(request: ModelRequest) -> str:
        asked.extend(message.text for message in request.messages)
        return "another secret"

    @step
    def pass_on(input: str) -> str:
        return f"heard: {input}"

    clerk = Agent("clerk", model=Scripted(reply, second), tools=[refund])
    turns = await heard_from(clerk >> pass_on, ["a", "b"], Hushing(name="hushing"))
    assert [[part.text for part in turn] for turn in turns] == [["hush", "heard: hush"]] * 2
    assert asked == ["a", "hush", "b"]


async def test_all_that_has_no_form_is_listed_at_once() -> None:
    @step
    async def listen(chunks: Any) -> str:
        return "".join([piece async for piece in chunks])

    @tool
    def query(sql: str, db: Annotated[Any, resource]) -> str:
        """Query."""
        return sql

    asking = Agent("asking", model=Scripted("a"), tools=[ask_user])
    summing = Agent(
        "summing",
        model=Scripted("a"),
        tools=[query],
        context=[history(last=2, summarise=Scripted("s"))],
    )
    flow = said("a", "b") >> by("word") >> listen >> race(asking, said("c", "d")) >> summing
    with pytest.raises(CannotCompile) as caught:
        to_adk(flow)
    assert isinstance(caught.value, BadAgent)
    assert [place for place, _ in caught.value.parts] == [
        "seq",
        "seq.1/listen",
        "seq.2/par",
        "seq.3/summing",
        "seq.3/summing",
    ]
    assert str(caught.value).startswith("5 parts have no equivalent in google-adk:\n- seq: ")


async def test_a_long_line_of_agents_is_compiled_and_runs() -> None:
    agents = [said(f"a{n}", "x") for n in range(30)]
    flow = agents[0] >> agents[1]
    for agent in agents[2:]:
        flow = flow >> agent
    heard = await compiled(flow, ["go"], lambda tool, args: None)
    assert heard.answers == ["x"]
    assert len(heard.questions) == 30


@pytest.mark.parametrize(
    "around",
    [lambda agent: agent, lambda agent: agent // said("b", "x"), lambda agent: timeout(agent, 9)],
    ids=["agent", "fallback", "timeout"],
)
def test_a_compiled_app_is_not_rehearsed_in_place_of_its_flow(around: Any) -> None:
    ran: list[str] = []

    @tool
    def act() -> str:
        """Act."""
        ran.append("really")
        return "done"

    agent = Agent("clerk", model=Scripted(call("act"), "ok"), tools=[act])
    with pytest.raises(BadAgent, match="Rehearse the flow itself"):
        rehearse(to_adk(around(agent)), Case("one", says="hi"))
    assert ran == []


def test_a_compiled_app_inside_a_function_asks_the_case_before_its_tools_run() -> None:
    ran: list[str] = []

    @tool
    def act() -> str:
        """Act."""
        ran.append("really")
        return "done"

    clerk = Agent("clerk", model=Scripted(call("act"), "ok"), tools=[act])

    async def front_door(text: str) -> str:
        return str(await heard_from(clerk, [text]))

    rehearse(front_door, Case("one", says="hi", allow_tools=["answer", "act"]))
    assert ran == ["really"]
    ran.clear()
    refused = rehearse(front_door, Case("one", says="hi", allow_tools=["answer"]))["one"]
    assert "tool 'act' was called in case 'one', but has no mock" in str(refused.error)
    assert ran == []


async def test_a_conversation_goes_on_with_an_app_compiled_anew() -> None:
    """Nothing is kept but the session: each turn of it is taken by another app object."""
    clerk = Agent("clerk", model=Scripted("one", "two"))
    heard = await compiled(clerk, ["a", "b"], lambda tool, args: None)
    assert heard.answers == ["one", "two"]
