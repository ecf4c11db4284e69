"""Agents of frameworks that come alive inside something else, seen from the seam they call."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from greenroom import Agent, Case, Scripted, Stop, Turn, call, evaluate, simulate, step, tool
from greenroom.errors import BadCase, ToolRefused
from greenroom.ledger.events import ModelCalled, ToolCalled, ToolReturned
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message
from greenroom.ledger.questions import ended, tool_calls
from greenroom.metrics import called, forbidden_calls
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.simulation import UserAgents
from greenroom.world.call_context import model_host, tool_host
from greenroom.world.world import SealedBody, ToolRequest

ACTED: list[str] = []


@pytest.fixture(autouse=True)
def nothing_acted():
    ACTED.clear()
    yield
    ACTED.clear()


async def pay(amount: int = 5) -> str:
    ACTED.append(f"paid {amount}")
    return "paid"


async def seam(amount: int = 5) -> Any:
    """The innermost tool call of a framework, as a seam sees it."""
    host = tool_host(pay, "pay")
    if host is None:
        return await pay(amount)
    request = ToolRequest("call-1", "pay", {"amount": amount}, origin=pay)
    outcome = await host.call_tool(request, SealedBody(lambda _: pay(amount)))
    return outcome.value


async def ask(text: str, replies: list[str]) -> str:
    """The model call of a framework, as a seam sees it."""

    async def body(_: ModelRequest, __: Any = None) -> ModelReply:
        return ModelReply(replies.pop(0))

    request = ModelRequest(
        agent="inner", messages=(Message("user", text),), model="m", node="inner"
    )
    host = model_host()
    reply = await (body(request) if host is None else host.call_model(request, body))
    return reply.text or ""


async def clerk(message: str) -> str:
    return f"done: {await seam()}"


async def test_outside_a_rehearsal_the_tool_runs() -> None:
    assert await clerk("Hi") == "done: paid"
    assert ACTED == ["paid 5"]


async def test_inside_a_function_a_mock_answers_and_the_call_is_in_the_ledger() -> None:
    report = await evaluate(clerk, Case("c", "Hi", mocks={"pay": "ok"}), metrics=[called("pay")])
    assert report.passed, str(report)
    assert ACTED == []


async def test_inside_a_function_an_unmocked_tool_ends_the_case() -> None:
    async def swallowing(message: str) -> str:
        try:
            await seam()
        except Exception:
            return "fine"
        return "paid"

    ledger = await simulate(Case("c", "Hi"), swallowing)
    end = ended(ledger)
    assert end is not None
    assert (end.reason, end.error_type) == ("error", "ToolRefused")
    assert ACTED == []


@pytest.mark.parametrize("named", [["pay"], [pay]], ids=["name", "object"])
async def test_a_named_tool_runs_inside_a_function(named: list[Any]) -> None:
    ledger = await simulate(Case("c", "Hi", allow_tools=named), clerk)
    assert ACTED == ["paid 5"]
    assert [c.tool for c in tool_calls(ledger)] == ["pay"]


def in_a_pool(message: str) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, seam()).result()


def in_a_thread(message: str) -> str:
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(asyncio.run(seam())))
    thread.start()
    thread.join()
    return said[0]


async def in_a_fresh_context(message: str) -> str:
    return await asyncio.get_running_loop().create_task(seam(), context=contextvars.Context())


@pytest.mark.parametrize("agent", [in_a_pool, in_a_thread])
async def test_threads_of_a_case_meet_its_world(agent: Any) -> None:
    ledger = await simulate(Case("c", "Hi", mocks={"pay": "ok"}), agent)
    assert [(c.tool, c.path) for c in ledger.of(ToolCalled)] == [("pay", f"@1/{agent.__name__}")]
    assert ACTED == []


async def test_work_in_an_empty_context_belongs_to_no_case_and_ends_all_that_are_open() -> None:
    open_now = asyncio.Event()

    async def patient(message: str) -> str:
        if message == "wait":
            await asyncio.wait_for(open_now.wait(), 5)
            await asyncio.sleep(0.01)
            return "waited"
        await asyncio.sleep(0.05)
        try:
            return await in_a_fresh_context(message)
        except ToolRefused:
            return "fine"
        finally:
            open_now.set()

    mocks = {"pay": "ok"}
    report = await evaluate(
        patient, [Case("a", "go", mocks=mocks), Case("b", "wait", mocks=mocks)], concurrency=2
    )
    assert [r.status for r in report.results] == ["error", "error"]
    assert ACTED == []


@tool
async def consult() -> str:
    return await seam()


@step
async def consulting(input: str) -> str:
    return await seam()


@pytest.mark.parametrize(
    "agent",
    [Agent("desk", model=Scripted(call("consult"), "ok"), tools=[consult]), consulting],
    ids=["named tool", "step"],
)
async def test_an_agent_inside_a_named_tool_or_a_step_is_gated(agent: Any) -> None:
    allowed = ["consult"] if isinstance(agent, Agent) else []
    refused = await simulate(Case("c", "Hi", allow_tools=allowed), agent)
    assert ended(refused).error_type == "ToolRefused"  # pyright: ignore[reportOptionalMemberAccess]
    mocked = await simulate(Case("c", "Hi", allow_tools=allowed, mocks={"pay": "ok"}), agent)
    assert "pay" in [c.tool for c in tool_calls(mocked)]
    assert ACTED == []


async def test_an_agent_inside_a_mock_is_gated() -> None:
    desk = Agent("desk", model=Scripted(call("consult"), "ok"), tools=[consult])

    async def stand_in() -> Any:
        return await seam()

    ledger = await simulate(Case("c", "Hi", mocks={"consult": stand_in}), desk)
    assert ended(ledger).error_type == "ToolRefused"  # pyright: ignore[reportOptionalMemberAccess]
    assert ACTED == []


async def test_an_agent_inside_the_users_function_is_gated_and_speaks_as_the_user() -> None:
    async def user(input: str) -> str:
        return str(await seam())

    desk = Agent("desk", model=Scripted("What?", "Bye"))
    case = Case(
        "c",
        turns=[Turn("Hi")],
        user=UserAgents(loop=user),
        mocks={"pay": "ok"},
        stop=Stop(max_turns=2),
    )
    ledger = await simulate(case, desk)
    assert tool_calls(ledger) == []
    assert [c.voice for c in ledger.of(ToolCalled, voice=None)] == ["user"]
    assert ACTED == []


async def test_what_was_answered_before_a_pause_is_not_asked_again() -> None:
    replies = ["one", "two"]

    @tool(yields=True)
    def confirm(question: str) -> str: ...

    async def asking(message: str) -> str:
        first = await ask("who?", replies)
        await seam(1)
        said = confirm("sure?")
        second = await ask("who?", replies)
        await seam(1)
        return f"{first} {said} {second}"

    case = Case("c", "Hi", user=UserAgents(tools={"confirm": "yes"}), allow_tools=["pay"])
    ledger = await simulate(case, asking)
    assert ended(ledger).reason == "completed", ended(ledger)  # pyright: ignore[reportOptionalMemberAccess]
    assert ACTED == ["paid 1", "paid 1"]
    assert len(ledger.of(ModelCalled)) == 2
    assert replies == []


async def test_a_cut_function_does_not_act_again_when_it_is_continued() -> None:
    async def acting(message: str) -> str:
        await seam(1)
        return await ask("and now?", ["done"])

    case = Case("c", "Hi", allow_tools=["pay"])
    whole = await simulate(case, acting)
    cut = [type(event) for event in whole].index(ToolReturned) + 1
    ACTED.clear()
    continued = await simulate(case, acting, ledger=Ledger(list(whole)[:cut]))
    assert ACTED == []
    assert ended(continued).reason == "completed"  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_tool_that_waits_for_its_user_is_refused_inside_a_function() -> None:
    async def waiting(message: str) -> str:
        host = tool_host(None, "approve")
        assert host is not None
        try:
            await host.call_tool(ToolRequest("", "approve", {}, yields=True), lambda _: None)
        except ToolRefused:
            return "went on"
        return "answered"

    ledger = await simulate(Case("c", "Hi"), waiting)
    assert "rehearse that agent by itself" in ended(ledger).error  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_metric_that_starts_an_agent_is_refused() -> None:
    async def acts(response: str) -> bool:
        try:
            await seam()
        except Exception:
            return True
        return True

    report = await evaluate(lambda message: "hi", Case("c", "Hi", metrics=[acts]))
    assert report.results[0].status == "error"
    assert ACTED == []


async def test_a_blocked_call_is_no_clean_record() -> None:
    report = await evaluate(clerk, Case("c", "Hi"), metrics=[forbidden_calls("pay")])
    assert report.results[0].status == "error"
    assert ACTED == []


async def test_a_misspelt_mock_of_a_tool_inside_is_named_when_the_trial_is_over() -> None:
    desk = Agent("desk", model=Scripted(call("consult"), "ok"), tools=[consult])
    case = Case("c", "Hi", allow_tools=["consult"], mocks={"pya": 1, "pay": 1})
    ledger = await simulate(case, desk)
    end = ended(ledger)
    assert end is not None
    assert end.error_type == "BadCase"
    assert "mocks tool 'pya'" in end.error


async def test_a_mock_that_nothing_could_bring_is_refused_before_the_trial() -> None:
    desk = Agent("desk", model=Scripted("ok"))
    with pytest.raises(BadCase, match="mocks tool 'pay'"):
        await simulate(Case("c", "Hi", mocks={"pay": 1}), desk)


async def test_a_mock_of_a_tool_whose_bringer_never_ran_is_not_judged() -> None:
    desk = Agent("desk", model=Scripted("no need"), tools=[consult])
    ledger = await simulate(Case("c", "Hi", allow_tools=["consult"], mocks={"pay": 1}), desk)
    assert ended(ledger).reason == "completed"  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_tool_that_only_runs_another_agent_needs_no_name_and_can_be_mocked() -> None:
    async def delegating(message: str) -> str:
        host = tool_host(None, "helper")
        assert host is not None
        request = ToolRequest("", "helper", {}, "boss", delegates=True)
        outcome = await host.call_tool(request, SealedBody(lambda _: seam()))
        return str(outcome.value)

    ledger = await simulate(Case("c", "Hi", mocks={"pay": "ok"}), delegating)
    helper, pay_call = ledger.of(ToolCalled)
    assert (helper.tool, helper.path) == ("helper", "@1/delegating/boss")
    assert (pay_call.tool, pay_call.path) == ("pay", f"{helper.path}/call:{helper.call_id}")
    refused = await simulate(Case("c", "Hi"), delegating)
    assert ended(refused).error_type == "ToolRefused"  # pyright: ignore[reportOptionalMemberAccess]
    mocked = await simulate(Case("c", "Hi", mocks={"helper": "ok"}), delegating)
    assert [c.tool for c in mocked.of(ToolCalled)] == ["helper"]
    assert ACTED == []


async def test_what_a_host_refuses_ends_the_trial_though_the_code_around_swallows_it() -> None:
    async def swallowing(message: str) -> str:
        host = tool_host(None, "search")
        assert host is not None
        host.refuse(ToolRefused("it runs at the provider"))
        return "fine"

    ledger = await simulate(Case("c", "Hi"), swallowing)
    assert ended(ledger).error == "it runs at the provider"  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_thread_of_a_case_that_empties_its_context_stays_in_the_case() -> None:
    late: list[object] = []
    over = threading.Event()

    def acting() -> None:
        over.wait(5)
        try:
            late.append(contextvars.Context().run(asyncio.run, seam()))
        except Exception as error:
            late.append(type(error))

    def leaving(message: str) -> str:
        thread = threading.Thread(target=acting)
        thread.start()
        left.append(thread)
        return str(contextvars.Context().run(asyncio.run, seam()))

    left: list[threading.Thread] = []
    ledger = await simulate(Case("c", "Hi", mocks={"pay": "ok"}), leaving)
    assert [c.tool for c in tool_calls(ledger)] == ["pay"]
    over.set()
    left[0].join()
    assert late == [ToolRefused]
    assert ACTED == []
