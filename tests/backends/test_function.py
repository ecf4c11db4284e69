"""Plain functions as agents: what they may ask for, how they answer, what they call."""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest

from greenroom import (
    Case,
    Ledger,
    Lines,
    Scripted,
    Stop,
    Turn,
    UserAgents,
    call,
    evaluate,
    fault,
    rehearse,
    simulate,
    tool,
)
from greenroom.backends import backend_for
from greenroom.backends.function import FunctionBackend
from greenroom.backends.registry import explained
from greenroom.errors import BadAgent, BadCase, BadLedger, NotFound
from greenroom.ledger import InvocationEnded, ModelFailed, ModelReplied, ToolReturned, YieldOpened
from greenroom.ledger import questions as q
from greenroom.ledger.plain import as_text
from greenroom.metrics import called, contains
from greenroom.models import ModelReply
from greenroom.results import CaseResult
from greenroom.world import ToolError


def case(**options: Any) -> Case:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case("one", **given)


async def played(agent: Any, one: Case | None = None, **options: Any) -> CaseResult:
    return (await evaluate(agent, one or case(), **options)).results[0]


def ledger_of(result: CaseResult) -> Ledger:
    assert result.ledger is not None
    return result.ledger


@tool
def weather(city: str, days: int = 1) -> str:
    """The weather."""
    raise AssertionError("never reached in a rehearsal")


@tool
async def post(text: str) -> dict:
    """Post something."""
    raise AssertionError("never reached in a rehearsal")


def plain(message):
    return f"done: {message}"


def of_messages(messages):
    return {"role": "assistant", "content": f"done: {messages[-1]['content']}"}


def of_another_name(question_of_the_day):
    return f"done: {question_of_the_day}"


async def later(input, state):
    await asyncio.sleep(0)
    return f"done: {input}"


def in_pieces(message):
    yield "done: "
    yield message


async def in_pieces_later(message):
    yield "done: "
    yield message


class Speaker:
    def __call__(self, message: str) -> str:
        return f"done: {message}"


def with_defaults(message, temperature=0.2, *, extra=None, **rest):
    return f"done: {message}"


@pytest.mark.parametrize(
    "agent",
    [
        plain,
        of_messages,
        of_another_name,
        later,
        in_pieces,
        in_pieces_later,
        Speaker(),
        partial(with_defaults, temperature=1),
        lambda text: f"done: {text}",
        lambda: "done: hello",
        lambda ctx: f"done: {ctx.message}",
    ],
)
async def test_a_function_is_an_agent(agent: Any):
    result = await played(agent)
    assert result.status == "passed", result.error
    assert q.response(ledger_of(result)) == "done: hello"


def test_a_function_can_be_rehearsed_by_the_blocking_door():
    assert rehearse(plain, [case()])["one"].passed


async def test_a_function_hears_the_conversation_and_keeps_state():
    heard: list[Any] = []

    def clerk(messages: Any, state: Any) -> str:
        heard.append([(m["role"], m["content"]) for m in messages])
        state["session"]["turns"] = state["session"].get("turns", 0) + 1
        return f"done {state['session']['turns']}"

    result = await played(clerk, case(says="", turns=[Turn("a"), Turn("b")]))
    assert heard == [[("user", "a")], [("user", "a"), ("assistant", "done 1"), ("user", "b")]]
    assert q.state(ledger_of(result))["session"] == {"turns": 2}


async def test_data_is_the_turns_output():
    result = await played(lambda message: {"answer": "done", "n": 1})
    assert q.response(ledger_of(result)) == '{"answer": "done", "n": 1}'


@pytest.mark.parametrize(
    "agent,told",
    [
        (lambda message: None, "returned nothing"),
        (lambda message: " ", "empty string"),
        (lambda message: "\u200b", "empty string"),
        (lambda message: {"role": "assistant", "content": ""}, "empty string"),
        (lambda message: {"role": "assistant", "content": None}, "empty string"),
        (lambda message: {"role": "assistant", "content": []}, "empty string"),
        (lambda message: "\u3164\u2800\ufe0f", "empty string"),
        (lambda message: ValueError("no stock"), "returned the exception ValueError('no stock')"),
        (lambda message: 1 / 0, "ZeroDivisionError"),
    ],
)
async def test_a_function_that_does_not_answer_is_named(agent: Any, told: str):
    result = await played(agent)
    assert result.status in ("error", "failed")
    assert told in str(result.error or result.scores)


def test_what_nobody_can_fill_is_refused_by_name():
    def clerk(message: str, tenant: str) -> str:
        return ""

    with pytest.raises(BadAgent, match="'tenant'"):
        backend_for(clerk)


@pytest.mark.parametrize("given", [FunctionBackend, weather, 7, "text"])
def test_what_is_no_agent_is_refused(given: Any):
    with pytest.raises(NotFound):
        backend_for(given)


def calls_sync(message: str) -> str:
    return f"done: {weather('Oslo', days=2)}"


async def calls_sync_from_async(message: str) -> str:
    return f"done: {weather('Oslo', days=2)}"


async def calls_sync_in_a_thread(message: str) -> str:
    return f"done: {await asyncio.to_thread(weather, 'Oslo', 2)}"


@pytest.mark.parametrize("agent", [calls_sync, calls_sync_from_async, calls_sync_in_a_thread])
@pytest.mark.parametrize("slow", [False, True])
async def test_a_tool_called_like_a_function_is_answered_by_its_mock(agent: Any, slow: bool):
    async def mock(city: str, days: int) -> str:
        await asyncio.sleep(0.01 if slow else 0)
        return f"fine for {days}"

    one = case(mocks={"weather": mock}, metrics=[contains("done: fine for 2"), called("weather")])
    result = await played(agent, one)
    assert result.status == "passed", result.error
    (made,) = q.tool_calls(ledger_of(result))
    assert (made.args, made.source) == ({"city": "Oslo", "days": 2}, "mock")


def in_context(function: Callable[..., Any], *given: Any) -> Any:
    """What a function returns in a thread that has this context, as threads of LangChain have."""
    context = copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, function, *given).result()


async def blocks_for_a_tool(message: str) -> str:
    return in_context(weather, "Oslo")


async def blocks_for_a_tool_of_another_loop(message: str) -> str:
    return in_context(lambda: asyncio.run(post("Oslo")))["text"]


async def blocks_for_a_model(message: str, ctx: Any) -> str:
    return in_context(lambda: ctx.ask(Scripted("done"), "hello?").text)


@pytest.mark.parametrize(
    "agent", [blocks_for_a_tool, blocks_for_a_tool_of_another_loop, blocks_for_a_model]
)
async def test_an_async_function_may_block_until_its_thread_has_an_answer(agent: Any):
    one = case(mocks={"weather": "done", "post": {"text": "done"}}, stop=Stop(max_seconds=20))
    result = await played(agent, one)
    assert result.status == "passed", result.error


async def test_async_tools_are_awaited_and_may_run_at_once():
    async def clerk(message: str) -> str:
        posted = await asyncio.gather(post(text="a"), post("b"))
        return f"done: {posted}"

    result = await played(clerk, case(mocks={"post": lambda text: {"id": text}}))
    assert result.status == "passed", result.error
    assert [c.result for c in q.tool_calls(ledger_of(result))] == [{"id": "a"}, {"id": "b"}]


async def test_a_tool_without_a_mock_is_refused_though_the_refusal_is_swallowed():
    def clerk(message: str) -> str:
        try:
            weather("Oslo")
        except Exception:
            return "done anyway"
        return "done"

    result = await played(clerk)
    assert result.error is not None
    assert (result.status, result.error.type) == ("error", "ToolRefused")
    assert "mocks={\n        'weather': ...," in result.error.message


async def test_a_fault_is_raised_where_the_tool_was_called():
    def clerk(message: str) -> str:
        try:
            return weather("Oslo")
        except ToolError as error:
            return f"done without: {error}"

    result = await played(clerk, case(mocks={"weather": fault("no signal")}))
    assert q.response(ledger_of(result)) == "done without: no signal"


@tool
def shaky() -> str:
    """Breaks."""
    raise KeyError("gone")


def forgiving(message: str) -> str:
    try:
        return shaky()
    except ToolError as error:
        return f"done without: {error}, {ask_boss('may I?')}"


async def test_an_allowed_tools_failure_is_the_same_when_the_function_is_begun_anew():
    user = UserAgents(tools={"ask_boss": Lines("yes")})
    result = await played(forgiving, case(allow_tools=["shaky"], user=user))
    assert q.response(ledger_of(result)) == "done without: KeyError: 'gone', yes", result.error


async def asks_in_vain(message: str, ctx: Any) -> str:
    model = Scripted(ValueError("overloaded"), "fine")
    try:
        said = (await ctx.ask(model)).text
    except Exception as error:
        said = f"{type(error).__name__} {error}"
    return f"done: {said}, {(await ctx.ask(model)).text}, {ask_boss('may I?')}"


async def test_a_models_failure_is_the_same_when_the_function_is_begun_anew():
    one = case(user=UserAgents(tools={"ask_boss": Lines("yes")}))
    whole = await simulate(one, asks_in_vain)
    assert q.response(whole) == "done: RecordedFailure overloaded, fine, yes"
    for cut in range(1, len(whole)):
        again = await simulate(one, asks_in_vain, ledger=Ledger.loads(Ledger(whole[:cut]).dumps()))
        assert q.responses(again) == q.responses(whole), cut
        assert [event.n for event in again.of(ModelFailed)] == [0], cut


async def test_a_models_failure_that_nobody_catches_is_told_by_its_own_name():
    async def clerk(message: str, ctx: Any) -> str:
        return (await ctx.ask(Scripted(ValueError("overloaded")))).text

    assert "raised ValueError: overloaded" in str((await played(clerk)).error)


async def test_a_failure_of_ours_ends_the_turn_again_though_the_function_swallows_it():
    async def swallowing(message: str, ctx: Any) -> str:
        try:
            return (await ctx.ask(Scripted())).text
        except Exception:
            return "done"

    whole = await simulate(case(), swallowing)
    (failure,) = whole.of(ModelFailed)
    cut = Ledger.loads(Ledger(whole[: failure.seq + 1]).dumps())
    again = await simulate(case(), swallowing, ledger=cut)
    assert (q.response(whole), q.response(again)) == (None, None)
    assert [event.outcome for event in again.of(InvocationEnded)] == ["failed"]


async def test_replies_are_known_again_by_who_asked_however_late_they_came():
    class Slow:
        """Answers only when another has."""

        def __init__(self, text: str, before: list[Any], after: Any = None) -> None:
            self.text, self.before, self.after = text, before, after

        async def respond(self, request: Any, on_delta: Any = None) -> Any:
            for event in self.before:
                await event.wait()
            if self.after is not None:
                self.after.set()
            return ModelReply(self.text)

    async def clerk(message: str, ctx: Any) -> str:
        gate = asyncio.Event()
        asked = ctx.ask(Slow("first", [gate])), ctx.ask(Slow("second", [], gate))
        first, second = await asyncio.gather(*asked)
        return f"done: {first.text}, {second.text}, {ask_boss('may I?')}"

    result = await played(clerk, case(user=UserAgents(tools={"ask_boss": Lines("yes")})))
    assert q.response(ledger_of(result)) == "done: first, second, yes", result.error
    assert [event.text for event in ledger_of(result).of(ModelReplied)] == ["second", "first"]


async def test_a_tool_is_a_plain_function_outside_of_rehearsals():
    @tool
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    assert double(4) == 8


async def test_models_asked_through_the_context_are_seen():
    model = Scripted(call("weather", city="Oslo"), "done", usage=None)

    async def clerk(message: str, ctx: Any) -> str:
        wanted = await ctx.ask(model, tools=[weather], instructions="Be kind.")
        weather(**wanted.calls[0].args)
        return (await ctx.ask(model, [{"role": "user", "content": "and now?"}])).text

    result = await played(clerk, case(mocks={"weather": "fine"}))
    assert result.status == "passed", result.error
    assert [event.n for event in ledger_of(result).of(ModelReplied)] == [0, 1]


async def test_a_function_that_blocks_asks_models_too():
    def clerk(message: str, ctx: Any) -> str:
        return ctx.ask(Scripted("done"), "hello?").text

    assert (await played(clerk)).status == "passed"


async def test_costs_of_models_nobody_saw_are_unknown():
    result = await played(plain)
    assert (result.usage, result.cost) == (None, None)
    assert any("model calls were not seen" in note for note in result.notes)


async def test_a_function_that_calls_its_provider_itself_is_stopped_and_told_what_to_do():
    def clerk(message: str) -> str:
        try:
            socket.create_connection(("203.0.113.7", 443), timeout=1)
        except OSError:
            return "done"
        return "done"

    result = await played(clerk)
    assert result.error is not None
    assert (result.status, result.error.type) == ("error", "FenceBreach")
    assert "ctx.ask(model" in result.error.message


@tool(yields=True)
def ask_boss(question: str) -> str:
    """Ask the boss."""
    raise AssertionError("never reached")


def careful(message: str) -> str:
    first = weather("Oslo")
    answer = ask_boss("may I?")
    return f"done: {first}, {answer}, {weather('Rome')}"


@pytest.mark.parametrize("agent", [careful, partial(careful)])
async def test_a_function_that_waits_is_begun_anew_and_hears_its_old_answers(agent: Any):
    asked: list[str] = []

    def mock(city: str) -> str:
        asked.append(city)
        return f"fine in {city}"

    one = case(mocks={"weather": mock}, user=UserAgents(tools={"ask_boss": Lines("yes")}))
    result = await played(agent, one)
    assert q.response(ledger_of(result)) == "done: fine in Oslo, yes, fine in Rome"
    assert asked == ["Oslo", "Rome"]
    assert len(ledger_of(result).of(YieldOpened)) == 1


async def test_several_waits_of_one_function_are_answered_at_once():
    @tool(yields=True)
    async def ask(who: str) -> str:
        """Ask somebody."""
        raise AssertionError

    async def clerk(message: str) -> str:
        return f"done: {await asyncio.gather(ask('a'), ask('b'))}"

    result = await played(clerk, case(user=UserAgents(tools={"ask": Lines(1, 2)}, validate="off")))
    assert q.response(ledger_of(result)) == "done: [1, 2]", result.error
    assert result.turns == 2


async def test_a_function_cut_at_any_event_comes_to_the_same_end():
    one = case(mocks={"weather": "fine"}, user=UserAgents(tools={"ask_boss": Lines("yes")}))
    whole = await simulate(one, careful)
    for cut in range(1, len(whole)):
        again = await simulate(one, careful, ledger=Ledger.loads(Ledger(whole[:cut]).dumps()))
        assert q.responses(again) == q.responses(whole), cut
        assert len(again.of(ToolReturned)) == 3, cut


async def test_a_function_that_goes_another_way_when_begun_anew_is_refused():
    cities = iter(["Oslo", "Rome"])

    def fickle(message: str) -> str:
        weather(next(cities))
        return f"done: {ask_boss('may I?')}"

    one = case(mocks={"weather": "fine"}, user=UserAgents(tools={"ask_boss": Lines("yes")}))
    result = await played(fickle, one)
    assert result.error is not None
    assert result.error.type == BadLedger.__name__
    assert "'Rome'" in result.error.message


async def test_tools_said_beforehand_are_known_and_checked():
    backend = FunctionBackend(calls_sync, tools=[weather])
    assert backend.tools is not None
    assert backend.tools["weather"].parameters == ("city", "days")
    with pytest.raises(BadCase, match="mocks tool 'wether'"):
        await played(backend, case(mocks={"wether": 1}))


def test_which_backend_was_taken_is_explained():
    assert explained(plain) == "using the function backend: it is a function"


def test_a_text_of_a_class_of_its_own_is_read_as_any_text():
    class Markup(str):
        __slots__ = ()

    assert as_text(Markup("hello")) == "hello"


def test_a_closure_is_told_apart_by_what_it_carries():
    def made(style: str) -> Callable[[str], str]:
        def clerk(message: str) -> str:
            return style

        return clerk

    polite, rude = backend_for(made("polite")), backend_for(made("rude"))
    assert polite.digest == backend_for(made("polite")).digest != rude.digest
