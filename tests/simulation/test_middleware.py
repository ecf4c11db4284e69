"""Middleware: hooks around what an agent does, whose answers are in the ledger."""

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    Turn,
    call,
    evaluate,
    fault,
    perform,
    rehearse,
    simulate,
    tool,
)
from greenroom.agents import approved
from greenroom.errors import BadInput, MiddlewareFailed, ModelBroke
from greenroom.ledger import (
    ModelFailed,
    ModelReplied,
    Noted,
    RunEnded,
    RunStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    state,
    tool_calls,
)
from greenroom.ledger.messages import Usage
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.suite import simulate_all
from greenroom.testing import MiddlewareContract, timeless
from greenroom.world import Ask, Middleware, Returned, ToolRequest, current_run, retry
from greenroom.world.middleware.protocol import HOOKS

ACTED: list[int] = []


@tool
def refund(order: int) -> str:
    """Refund an order."""
    ACTED.append(order)
    return f"refunded {order}"


def clerk(*replies: Any) -> Agent:
    return Agent(
        "clerk", model=Scripted(*(replies or (call("refund", order=7), "Done."))), tools=[refund]
    )


CASE = Case("refund", says="Refund 7.", mocks={"refund": "ok"})


def run(*middleware: Any, agent: Any = None, case: Case = CASE, **more: Any) -> Ledger:
    return asyncio.run(simulate(case, agent or clerk(), middleware=middleware, **more))


def end_of(ledger: Ledger) -> RunEnded:
    last = ledger.last
    assert isinstance(last, RunEnded)
    return last


class Everything(Middleware):
    """Hears all there is, and says nothing."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @contextmanager
    def around_run(self) -> Generator[None]:
        self.heard.append("around_run")
        yield
        self.heard.append("run is over")

    @contextmanager
    def around_turn(self) -> Generator[None]:
        self.heard.append("around_turn")
        yield

    async def on_user_message(self, text: str) -> None:
        self.heard.append(f"on_user_message {text}")

    async def before_run(self) -> None:
        self.heard.append("before_run")

    async def after_run(self) -> None:
        self.heard.append(f"after_run {current_run().run_id}")

    async def on_event(self, event: Any) -> None:
        self.heard.append(f"event {event.kind}")

    async def before_agent(self, agent: Any) -> None:
        self.heard.append(f"before_agent {agent.name}")

    async def after_agent(self, agent: Any, output: Any) -> None:
        self.heard.append(f"after_agent {output}")

    async def before_model(self, request: ModelRequest) -> None:
        self.heard.append("before_model")

    async def after_model(self, request: ModelRequest, reply: ModelReply) -> None:
        self.heard.append(f"after_model {reply.text}".rstrip())

    async def on_model_error(self, request: ModelRequest, error: Exception) -> None:
        self.heard.append(f"on_model_error {error}")

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        self.heard.append("around_attempt")
        return await ask(request)

    async def before_tool(self, call: ToolRequest) -> None:
        self.heard.append(f"before_tool {call.tool} {call.args['order']}")

    async def after_tool(self, call: ToolRequest, result: Any) -> None:
        self.heard.append(f"after_tool {result}")

    async def on_tool_error(self, call: ToolRequest, error: Exception) -> None:
        self.heard.append(f"on_tool_error {error}")

    async def close(self) -> None:
        self.heard.append("close")


class TestEverything(MiddlewareContract):
    def middleware(self) -> Middleware:
        return Everything()


def test_every_hook_is_heard_in_the_order_of_what_happens() -> None:
    listener = Everything()
    run(listener)
    assert [heard for heard in listener.heard if not heard.startswith("event")] == [
        "around_run",
        "on_user_message Refund 7.",
        "around_turn",
        "before_run",
        "before_agent clerk",
        "before_model",
        "around_attempt",
        "after_model",
        "before_tool refund 7",
        "after_tool ok",
        "before_model",
        "around_attempt",
        "after_model Done.",
        "after_agent Done.",
        "run is over",
        "after_run refund",
    ]
    kinds = [heard.removeprefix("event ") for heard in listener.heard if "event" in heard]
    assert kinds == [event.kind for event in run()]


def test_errors_are_heard_and_middleware_is_closed_with_the_evaluation() -> None:
    listener = Everything()
    rehearse(
        clerk(),
        [Case("c", says="Hi", mocks={"refund": fault("no such order")})],
        middleware=[listener],
    )
    assert "on_tool_error no such order" in listener.heard
    assert listener.heard[-1] == "close"

    def fails(_: ModelRequest) -> str:
        raise ModelBroke("no answer")

    listener = Everything()
    run(listener, agent=clerk(fails))
    assert "on_model_error no answer" in listener.heard
    assert {heard.split()[0] for heard in listener.heard} <= {*HOOKS, "event", "run"}


class Answers(Middleware):
    """Gives one answer in one hook."""

    def __init__(self, hook: str, answer: Any) -> None:
        self.asked = 0

        async def answers(*_: Any) -> Any:
            self.asked += 1
            return answer

        setattr(self, hook, answers)


@pytest.mark.parametrize("hook", ["before_model", "after_model", "before_tool", "after_tool"])
def test_the_first_answer_counts_and_the_others_are_not_asked(hook: str) -> None:
    first, second = Answers(hook, "first"), Answers(hook, "second")
    ledger = run(Answers(hook, None), first, second)
    assert '"second"' not in ledger.dumps()
    assert '"first"' in ledger.dumps()
    assert first.asked
    assert not second.asked


def test_an_answer_in_place_of_a_model_is_labelled_and_costs_nothing() -> None:
    ledger = run(Answers("before_model", "I am not the model."), agent=clerk("Never."))
    (reply,) = ledger.of(ModelReplied)
    assert (reply.text, reply.source, reply.cost) == ("I am not the model.", "middleware", 0.0)


def test_an_answer_in_place_of_a_tool_is_labelled_and_needs_no_mock() -> None:
    ledger = run(Answers("before_tool", {"state": "ok"}), case=Case("c", says="Hi"))
    (returned,) = ledger.of(ToolReturned)
    assert (returned.value, returned.source) == ({"state": "ok"}, "middleware")
    assert end_of(ledger).reason == "completed"


def test_an_error_in_place_of_a_tool_is_seen_by_the_agent() -> None:
    ledger = run(Answers("before_tool", Returned(error="ask a person")))
    (failed,) = ledger.of(ToolFailed)
    assert (failed.error, failed.source) == ("ask a person", "middleware")


def test_a_changed_reply_keeps_what_it_cost() -> None:
    said = ModelReply("A secret.", usage=Usage(5, 2), cost=0.25)
    ledger = run(Answers("after_model", "Nothing."), agent=clerk(said))
    (reply,) = ledger.of(ModelReplied)
    assert (reply.text, reply.usage, reply.cost) == ("Nothing.", Usage(5, 2), 0.25)
    assert (reply.source, reply.in_place_of, reply.is_live) == ("middleware", "live", True)


def test_an_answer_that_replaces_nothing_is_not_labelled() -> None:
    class Repeats(Middleware):
        async def after_model(self, request: ModelRequest, reply: ModelReply) -> Any:
            return reply.text or reply

        async def after_tool(self, call: ToolRequest, result: Any) -> Any:
            return result

    ledger = run(Repeats())
    assert [(e.source, e.in_place_of) for e in ledger.of(ToolReturned)] == [("mock", None)]
    assert {(e.source, e.in_place_of) for e in ledger.of(ModelReplied)} == {("live", None)}


def test_a_result_that_a_hook_edits_and_returns_is_labelled() -> None:
    class Edits(Middleware):
        async def after_tool(self, call: ToolRequest, result: Any) -> Any:
            result["total"] = 0
            return result

    ledger = run(Edits(), case=Case("c", says="Hi", mocks={"refund": {"total": 7}}))
    (returned,) = ledger.of(ToolReturned)
    assert (returned.value, returned.source) == ({"total": 0}, "middleware")


@pytest.mark.parametrize("hook", ["after_tool", "on_tool_error"])
def test_a_real_tool_that_acted_is_known_whatever_middleware_answers(hook: str) -> None:
    @tool
    def pay(order: int) -> str:
        """Pay."""
        if hook == "on_tool_error":
            raise ValueError(order)
        return "paid"

    agent = Agent("clerk", model=Scripted(call("pay", order=7), "Done."), tools=[pay])
    ledger = run(Answers(hook, "x"), agent=agent, case=Case("c", says="Hi", mocks={"pay": pay}))
    (returned,) = ledger.of(ToolReturned)
    assert (returned.value, returned.source, returned.is_live) == ("x", "middleware", True)


@pytest.mark.parametrize("hook", ["after_tool", "on_tool_error"])
def test_code_that_calls_a_tool_gets_what_middleware_answers(hook: str) -> None:
    @tool
    def pay(order: int) -> str:
        """Pay."""
        if hook == "on_tool_error":
            raise ValueError(order)
        return "paid"

    def desk(message: str) -> str:
        return str(pay(7))

    ledger = run(Answers(hook, "x"), agent=desk, case=Case("c", says="Hi", mocks={"pay": pay}))
    assert ledger.index_of().invocations_ended["@1"].output == "x"


def test_a_model_or_tool_that_failed_may_be_answered_for() -> None:
    def fails(*_: Any, **__: Any) -> str:
        raise ModelBroke("down")

    ledger = run(Answers("on_model_error", "Later, please."), agent=clerk(fails))
    assert not ledger.of(ModelFailed)
    assert ledger.of(ModelReplied)[0].source == "middleware"

    ledger = run(
        Answers("on_tool_error", "later"),
        case=Case("c", says="Hi", mocks={"refund": fault("down")}),
    )
    assert not ledger.of(ToolFailed)
    (found,) = tool_calls(ledger)
    assert (found.result, found.source) == ("later", "middleware")


def test_a_lost_answer_that_is_answered_for_keeps_its_changes() -> None:
    def paid(order: int, ctx: Any) -> str:
        ctx.state.session["paid"] = order
        return "paid"

    lost = Case("c", says="Hi", mocks={"refund": fault(lost=paid)})
    assert state(run(Answers("on_tool_error", "later"), case=lost)) == {"session": {"paid": 7}}
    assert len(run(Answers("on_tool_error", "later"), case=lost).of(ToolCalled)) == 1


def test_an_agent_a_first_turn_and_a_message_may_be_answered_for() -> None:
    never = clerk("Never.")
    ledger = run(Answers("before_agent", "Not today."), agent=never)
    assert not ledger.of(ModelReplied)
    assert ledger.index_of().invocations_ended["@1"].output == "Not today."
    assert ledger.of(Noted)[0].data == {"middleware": "Answers", "hook": "before_agent"}
    two = Case("c", turns=[Turn("Hi"), Turn("Again")])
    ledger = run(Answers("before_run", "Welcome."), agent=clerk("I am the agent."), case=two)
    said = [event.text for event in ledger if event.kind == "agent_said"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    assert said == ["Welcome.", "I am the agent."]
    ledger = run(Answers("on_user_message", "[hidden]"), agent=clerk(lambda asked: asked.last))
    assert ledger.index_of().invocations_ended["@1"].output == "[hidden]"


class Shortcuts(Middleware):
    """Answers for a tool, and changes what the agent says."""

    async def before_tool(self, call: ToolRequest) -> Any:
        return "by middleware" if call.args.get("order") == 8 else None

    async def after_model(self, request: ModelRequest, reply: ModelReply) -> Any:
        return reply.text.upper() or None

    async def after_agent(self, agent: Any, output: Any) -> Any:
        return f"{output}!"

    async def on_user_message(self, text: str) -> str:
        return f"{text} Please."


class TestShortcuts(MiddlewareContract):
    passes_through = False

    def middleware(self) -> Middleware:
        return Shortcuts()


class TestAnswersForAnAgent(MiddlewareContract):
    passes_through = False

    def middleware(self) -> Middleware:
        return Answers("before_agent", {"refused": True})


class TestAnswersForAFirstTurn(MiddlewareContract):
    passes_through = False

    def middleware(self) -> Middleware:
        return Answers("before_run", "Welcome.")


class Raises(Middleware):
    """Raises in one hook."""

    def __init__(self, hook: str) -> None:
        async def raises(*_: Any) -> Any:
            raise KeyError("lost")

        setattr(self, hook, raises)


@pytest.mark.parametrize(
    "hook",
    [
        hook
        for hook in HOOKS
        if hook not in ("close", "on_model_error", "on_tool_error", "redact")  # redact is not async
    ],
)
def test_a_hook_that_raises_is_an_error_of_the_system_that_names_it(hook: str) -> None:
    end = end_of(run(Raises(hook)))
    assert (end.reason, end.phase, end.error_type) == ("error", "system", "MiddlewareFailed")
    assert "'Raises'" in end.error
    assert hook in end.error
    assert "KeyError" in end.error


def test_an_answer_of_a_wrong_kind_is_an_error_that_names_it() -> None:
    end = end_of(run(Answers("before_model", 7)))
    assert end.phase == "system"
    assert "answered 7 in before_model" in end.error


class Peeks(Middleware):
    """Looks for a body in everything it is given."""

    found: Any = None

    async def before_tool(self, call: ToolRequest) -> None:
        self.found = call.origin


class CallsTheTool(Middleware):
    """Calls a tool that it knows of itself."""

    async def before_tool(self, call: ToolRequest) -> Any:
        return refund(order=7)


class CallsAroundCalls(Middleware):
    """Calls a tool before each call, and goes on whatever comes of it."""

    begun = 0

    @contextmanager
    def around_call(self, call: object) -> Generator[None]:
        self.begun += 1
        with suppress(Exception):
            refund(order=7)
        yield


class Connects(Middleware):
    """Reaches for the outside in one hook."""

    def __init__(self, hook: str) -> None:
        async def connects(*_: Any) -> Any:
            socket.create_connection(("127.0.0.1", 9), timeout=0.1)

        setattr(self, hook, connects)


def test_hooks_see_no_body_and_cannot_run_one() -> None:
    ACTED.clear()
    run(case=Case("c", says="Hi", allow_tools=["refund"]))
    assert ACTED == [7]
    ACTED.clear()
    peeks = Peeks()
    run(peeks)
    assert peeks.found is None
    end = end_of(run(CallsTheTool()))
    assert (end.reason, end.error_type) == ("error", "HookRefused")
    assert not ACTED


def test_a_call_around_calls_is_refused_at_once_and_not_wrapped_in_turn() -> None:
    ACTED.clear()
    calls = CallsAroundCalls()
    end = end_of(run(calls))
    assert (end.reason, end.error_type, calls.begun) == ("error", "HookRefused", 1)
    assert not ACTED


@pytest.mark.parametrize(
    "hook",
    [
        "on_user_message",
        "before_model",
        "after_model",
        "around_attempt",
        "before_tool",
        "after_run",
        "on_event",
    ],
)
def test_hooks_run_inside_the_fence(hook: str) -> None:
    end = end_of(run(Connects(hook)))
    assert (end.reason, end.error_type) == ("error", "FenceBreach")


class AsksTwice(Middleware):
    """Asks a model again that has answered."""

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        await ask(request)
        return await ask(request)


def test_a_model_that_answered_is_not_asked_again() -> None:
    end = end_of(run(AsksTwice()))
    assert "asked a model again that had answered" in end.error


def test_an_order_that_cannot_be_resumed_is_refused_and_the_right_one_named() -> None:
    with pytest.raises(BadInput, match=r"middleware=\[Answers, retry\]"):
        run(retry(2), Answers("before_tool", None))
    run(Answers("before_tool", None), retry(2))


def test_what_is_no_middleware_is_refused() -> None:
    with pytest.raises(BadInput, match="has none of the hooks"):
        run(object())
    with pytest.raises(BadInput, match="has none of the hooks"):
        run(Everything)
    with pytest.raises(BadInput, match="has none of the hooks"):
        run(one for one in [Everything()])  # it can be closed, as middleware can
    with pytest.raises(BadInput, match="outside of a run"):
        current_run()


HELD: ContextVar[str] = ContextVar("held", default="")


class Holds(Middleware):
    """Holds a variable around runs and turns."""

    @contextmanager
    def around_run(self) -> Generator[None]:
        HELD.set(f"{current_run().run_id}")
        yield

    @contextmanager
    def around_turn(self) -> Generator[None]:
        token = HELD.set(f"{HELD.get()}, a turn")
        yield
        HELD.reset(token)


class Swallows(Middleware):
    """Swallows what is raised inside."""

    @contextmanager
    def around_turn(self) -> Generator[None]:
        with suppress(Exception):
            yield


def test_what_is_held_around_a_turn_is_seen_by_what_runs_in_it() -> None:
    run(Holds(), agent=clerk(lambda _: HELD.get()))
    ledger = run(Holds(), agent=clerk(lambda _: HELD.get()))
    assert ledger.index_of().invocations_ended["@1"].output == "refund, a turn"


def test_what_is_held_around_a_turn_cannot_swallow_an_error() -> None:
    assert end_of(run(Swallows(), case=Case("c", says="Hi"))).error_type == "ToolRefused"


async def test_middleware_stands_around_a_live_turn_too() -> None:
    ACTED.clear()
    listener = Everything()
    ledger = await perform(clerk(), "Refund 7.", store=False, middleware=[listener])
    assert ACTED == [7]
    assert "after_tool refunded 7" in listener.heard
    assert listener.heard[-1] == "close"
    ACTED.clear()
    ledger = await perform(clerk(), "Hi", store=False, middleware=[Answers("before_tool", "no")])
    assert ledger.of(ToolReturned)[0].source == "middleware"
    assert not ACTED
    with pytest.raises(MiddlewareFailed, match="'Raises' raised in before_model"):
        await perform(clerk(), "Hi", store=False, middleware=[Raises("before_model")])


async def test_simulations_take_middleware_and_close_it() -> None:
    listener = Everything()
    batch = await simulate_all(clerk(), [CASE], middleware=[listener])
    assert batch.simulations[0].completed
    assert listener.heard[-1] == "close"


def test_an_empty_list_changes_nothing() -> None:
    assert timeless(run()) == timeless(asyncio.run(simulate(CASE, clerk())))


def test_a_run_without_middleware_does_not_even_load_it() -> None:
    code = """
import sys
from greenroom import Agent, Case, Scripted, rehearse
agent = Agent("a", model=Scripted("Hi."))
rehearse(agent, [Case("c", says="Hi")], store=False)
print([name for name in sys.modules if "world.middleware" in name])
from greenroom.world import Middleware
print("greenroom.world.middleware.protocol" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


# What is not an answer


@pytest.mark.parametrize("hook", ["around_run", "around_turn", "around_call"])
@pytest.mark.parametrize("given", [3, object(), socket.socket])
def test_what_is_no_context_manager_is_the_middlewares_fault(hook: str, given: Any) -> None:
    odd = type("Odd", (Middleware,), {hook: lambda self, *call: given})()
    end = end_of(run(odd))
    assert (end.error_type, end.phase) == ("MiddlewareFailed", "system")
    assert f"'Odd' gave {given!r} in {hook}" in end.error


@pytest.mark.parametrize("hook", ["before_tool", "after_tool", "on_tool_error"])
@pytest.mark.parametrize("given", [object(), b"bytes", float("nan")])
def test_an_answer_that_is_no_json_names_who_gave_it(hook: str, given: Any) -> None:
    async def answer(self: Any, *call: Any) -> Any:
        return given

    odd = type("Odd", (Middleware,), {hook: answer})()
    mock = fault("no") if hook == "on_tool_error" else "ok"
    end = end_of(run(odd, case=Case("refund", says="Refund 7.", mocks={"refund": mock})))
    assert end.phase == "system"
    assert "the answer of middleware 'Odd'" in end.error


class Stuck(Middleware):
    """Never closes."""

    async def before_model(self, request: ModelRequest) -> None:
        return None

    async def close(self) -> None:
        await asyncio.sleep(3600)


class Breaks(Stuck):
    async def close(self) -> None:
        raise RuntimeError("no")


class Closes(Stuck):
    closed = 0

    async def close(self) -> None:
        Closes.closed += 1


@pytest.mark.parametrize("broken, why", [(Stuck(), "took longer"), (Breaks(), "RuntimeError: no")])
async def test_one_that_cannot_be_closed_holds_nobody_up(
    broken: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.world.middleware.stack.CLOSING", 0.1)
    given, before = [broken, Closes()], Closes.closed
    report = await evaluate(clerk(), [CASE], middleware=given, store=False)
    assert [why in note for note in report.notes] == [True]
    batch = await simulate_all(clerk(), [CASE], middleware=given)
    assert [why in note for note in batch.notes] == [True]
    assert len(batch.simulations) == 1
    with pytest.raises(MiddlewareFailed, match="raised in close"):
        await perform(clerk("Hi."), "Hi", store=False, middleware=given)
    assert Closes.closed == before + 3


@pytest.mark.parametrize("kind", [RunStarted, RunEnded])
def test_middleware_runs_no_tool_as_a_run_begins_or_ends(kind: type) -> None:
    class Eager:
        def on_event(self, event: Any) -> None:
            if isinstance(event, kind):
                with suppress(Exception):
                    refund(8)

    ACTED.clear()
    report = rehearse(clerk(), [CASE], middleware=[Eager()])
    assert ACTED == []
    error = report.results[0].error
    told = report.faults[0] if kind is RunEnded else error and error.message
    assert re.search(r"a call of the tool .*refund.* at test_middleware.py", str(told))


class Silent(Middleware):
    async def before_tool(self, call: ToolRequest) -> None:
        return None


@pytest.mark.parametrize("mock", [None, "yes", True, {"approved": True}])
async def test_a_constant_mock_answers_a_wait_in_the_same_way_around_middleware(mock: Any) -> None:
    flow = Agent("clerk", model=Scripted("pay")) >> approved(
        Agent("cashier", model=Scripted("paid")), "Pay?"
    )
    case = Case("c", "Hi", mocks={"approve_cashier": mock})
    bare, around = await simulate(case, flow), await simulate(case, flow, middleware=[Silent()])
    assert [(one.result, one.source) for one in tool_calls(bare)] == [(mock, "mock")]
    assert [(one.result, one.source) for one in tool_calls(around)] == [(mock, "mock")]
