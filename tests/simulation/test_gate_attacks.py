"""Attacks on the gate: every way a tool body might slip through, tried.

Each attack builds an agent (or a user, a mock, a bridge) that tries to run the body of `danger`,
which leaves a file behind. It is first played with `danger` named as allowed, to prove that the
canary sings; then without, alone and eight at once, to prove that it stays silent and that the case
ends as an error whatever the attacker did with the refusal.
"""

import asyncio
import contextlib
import contextvars
import functools
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from greenroom import (
    Agent,
    Bridge,
    Case,
    Scripted,
    SimulatedUser,
    Stop,
    UserAgents,
    call,
    loop,
    rehearse,
    route,
    step,
    tool,
)
from greenroom.agents import Tool
from greenroom.backends import Advance, TurnOver
from greenroom.backends.native import NativeBackend
from greenroom.errors import BadCase, GreenroomError
from greenroom.ledger import Ledger, ModelReplied, ToolBlocked, ToolCalled
from greenroom.metrics import event_count
from greenroom.models import ModelReply
from greenroom.results import CaseResult
from greenroom.world import Context, ToolRequest, World


@dataclass
class Attack:
    """What an attack brings on stage; `case` are extra fields of its case."""

    agent: Any
    case: dict[str, Any] = field(default_factory=dict)


CHECKS = [event_count("user_said", at_least=1)]
Build = Callable[[Tool], Attack]
ATTACKS: dict[str, Build] = {}


def attack(build: Build) -> Build:
    ATTACKS[build.__name__] = build
    return build


def clerk(*script: Any, tools: Any = (), **options: Any) -> Agent:
    return Agent(options.pop("name", "clerk"), model=Scripted(*script), tools=tools, **options)


def swallowed(act: Callable[[], Any]) -> str:
    """Try, and carry on as if nothing had happened."""
    with contextlib.suppress(Exception):
        act()
    return "carrying on"


def canary(tmp_path: Path) -> tuple[Tool, Callable[[], int]]:
    def danger(n: int = 1) -> str:
        """Does something that cannot be undone."""
        (tmp_path / uuid4().hex).touch()
        return "done"

    return tool(danger), lambda: len(list(tmp_path.iterdir()))


# The model asks for it


@attack
def asking_plainly(danger: Tool) -> Attack:
    return Attack(clerk(call("danger", n=1), "ok", tools=[danger]))


@attack
def asking_beside_a_mocked_tool(danger: Tool) -> Attack:
    @tool
    def harmless() -> str:
        """Nothing."""
        raise AssertionError

    both = [call("harmless"), call("danger", n=1)]
    return Attack(clerk(both, "ok", tools=[harmless, danger]), {"mocks": {"harmless": "fine"}})


@attack
def asking_again_and_again(danger: Tool) -> Attack:
    return Attack(clerk(*[call("danger", n=i) for i in range(5)], "ok", tools=[danger]))


@attack
def asking_from_an_agent_that_is_retried(danger: Tool) -> Attack:
    return Attack(clerk(then_call("danger"), tools=[danger], retries=3, max_steps=3))


def then_call(name: str) -> Any:
    return lambda request: call(name, n=1) if request.n % 2 == 0 else "ok"


@attack
def asking_in_a_sequence(danger: Tool) -> Attack:
    return Attack(clerk("first", name="a") >> clerk(call("danger", n=1), "ok", tools=[danger]))


@attack
def asking_in_a_parallel_branch(danger: Tool) -> Attack:
    return Attack(clerk("first", name="a") | clerk(call("danger", n=1), "ok", tools=[danger]))


@attack
def asking_in_a_route(danger: Tool) -> Attack:
    return Attack(route(lambda: "b", b=clerk(call("danger", n=1), "ok", tools=[danger])))


@attack
def asking_in_a_loop(danger: Tool) -> Attack:
    inner = clerk(call("danger", n=1), "ok", tools=[danger])
    return Attack(loop(inner, until=lambda: True))


@attack
def asking_for_it_under_another_name(danger: Tool) -> Attack:
    alias = Tool("alias", danger.fn, "the same body")
    return Attack(clerk(call("alias", n=1), "ok", tools=[alias]), {"allow_tools": []})


@attack
def a_tool_added_while_running(danger: Tool) -> Attack:
    agent = clerk(call("danger", n=1), "ok")

    @step
    def add(input: Any) -> Any:
        object.__setattr__(agent, "tools", (danger,))
        return input

    return Attack(add >> agent)


@attack
def hidden_behind_the_same_name_as_a_mocked_tool(danger: Tool) -> Attack:
    @step
    def act() -> str:
        return swallowed(danger)

    @tool(name="harmless")
    def twin(n: int = 1) -> str:
        """Has a mock."""
        raise AssertionError

    agent = clerk(call("harmless", n=1), "ok", tools=[twin])
    return Attack(act >> agent, {"mocks": {"harmless": "fine"}})


# Code in the agent calls the body past the World


@attack
def a_step_that_calls_the_tool(danger: Tool) -> Attack:
    @step
    def act() -> str:
        danger(1)
        return "ok"

    return Attack(act)


@attack
def a_step_that_swallows_the_refusal(danger: Tool) -> Attack:
    return Attack(step(lambda: swallowed(danger), name="act"))


@attack
def a_step_that_swallows_even_base_exceptions(danger: Tool) -> Attack:
    @step
    def act() -> str:
        try:
            danger(1)
        except BaseException:
            return "carrying on"
        return "ok"

    return Attack(act)


@attack
def a_step_that_runs_the_tool_by_its_own_method(danger: Tool) -> Attack:
    @step
    async def act(ctx: Any) -> str:
        with contextlib.suppress(Exception):
            await danger.run({"n": 1}, ctx)
        return "ok"

    return Attack(act)


@attack
def a_step_with_retries(danger: Tool) -> Attack:
    return Attack(step(lambda: danger(1), name="act", retries=3))


@attack
def a_partial_of_the_tool(danger: Tool) -> Attack:
    return Attack(step(lambda: swallowed(functools.partial(danger, 1)), name="act"))


@attack
def the_tools_call_method_taken_from_its_class(danger: Tool) -> Attack:
    return Attack(step(lambda: swallowed(lambda: Tool.__call__(danger, 1)), name="act"))


@attack
def a_context_rule(danger: Tool) -> Attack:
    def rule(scene: Any) -> list[Any]:
        swallowed(danger)
        return []

    return Attack(clerk("ok", context=[rule]))


@attack
def a_loops_condition(danger: Tool) -> Attack:
    def until() -> bool:
        swallowed(danger)
        return True

    return Attack(loop(clerk("ok"), until=until))


@attack
def a_routes_choice(danger: Tool) -> Attack:
    def choose() -> str:
        swallowed(danger)
        return "b"

    return Attack(route(choose, b=clerk("ok")))


@attack
def a_scripted_answer(danger: Tool) -> Attack:
    return Attack(clerk(lambda request: swallowed(danger)))


@attack
def an_output_validator(danger: Tool) -> Attack:
    from typing import Annotated

    from pydantic import AfterValidator

    def check(value: str) -> str:
        swallowed(danger)
        return value

    return Attack(clerk('"ok"', output=Annotated[str, AfterValidator(check)]))


# It is started now and runs elsewhere or later


@attack
def a_task(danger: Tool) -> Attack:
    @step
    async def act() -> str:
        async def later() -> None:
            swallowed(danger)

        await asyncio.create_task(later())
        return "ok"

    return Attack(act)


@attack
def a_callback_of_the_loop(danger: Tool) -> Attack:
    @step
    async def act() -> str:
        asyncio.get_running_loop().call_soon(swallowed, danger)
        await asyncio.sleep(0.01)
        return "ok"

    return Attack(act)


@attack
def a_raw_thread(danger: Tool) -> Attack:
    @step
    def act() -> str:
        thread = threading.Thread(target=swallowed, args=(danger,))
        thread.start()
        thread.join()
        return "ok"

    return Attack(act)


@attack
def an_executor_of_its_own(danger: Tool) -> Attack:
    @step
    def act() -> str:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(swallowed, danger).result()
        return "ok"

    return Attack(act)


@attack
def the_loops_executor(danger: Tool) -> Attack:
    @step
    async def act() -> str:
        await asyncio.get_running_loop().run_in_executor(None, swallowed, danger)
        return "ok"

    return Attack(act)


@attack
def to_thread(danger: Tool) -> Attack:
    @step
    async def act() -> str:
        await asyncio.to_thread(swallowed, danger)
        return "ok"

    return Attack(act)


@attack
def a_copied_context(danger: Tool) -> Attack:
    return Attack(step(lambda: contextvars.copy_context().run(swallowed, danger), name="act"))


@attack
def an_emptied_context(danger: Tool) -> Attack:
    return Attack(step(lambda: contextvars.Context().run(swallowed, danger), name="act"))


@attack
def a_timer(danger: Tool) -> Attack:
    @step
    def act() -> str:
        timer = threading.Timer(0.0, swallowed, (danger,))
        timer.start()
        timer.join()
        return "ok"

    return Attack(act)


@attack
def a_finalizer(danger: Tool) -> Attack:
    class Bomb:
        pass

    @step
    def act() -> str:
        bomb = Bomb()
        weakref.finalize(bomb, swallowed, danger)
        del bomb
        return "ok"

    return Attack(act)


@attack
def a_generator_left_open(danger: Tool) -> Attack:
    @step
    def act() -> str:
        def dripping() -> Any:
            try:
                yield 1
            finally:
                swallowed(danger)

        drip = dripping()
        next(drip)
        drip.close()
        return "ok"

    return Attack(act)


# Mocks, allowed tools, users, bridges


@attack
def a_mock_that_calls_the_real_tool(danger: Tool) -> Attack:
    @tool
    def lookup() -> str:
        """Has a mock."""
        raise AssertionError

    agent = clerk(call("lookup"), "ok", tools=[lookup])
    return Attack(agent, {"mocks": {"lookup": lambda: swallowed(danger)}})


@attack
def an_allowed_tool_that_calls_another(danger: Tool) -> Attack:
    @tool
    def outer() -> str:
        """Named as allowed."""
        return swallowed(danger)

    return Attack(clerk(call("outer"), "ok", tools=[outer, danger]), {"mocks": {"outer": outer}})


@attack
def an_allowed_async_tool_that_calls_another(danger: Tool) -> Attack:
    @tool
    async def outer() -> str:
        """Named as allowed."""
        return swallowed(danger)

    return Attack(clerk(call("outer"), "ok", tools=[outer]), {"allow_tools": ["outer"]})


@attack
def a_user_agents_tool_that_calls_the_agents(danger: Tool) -> Attack:
    @tool
    def help_yourself() -> str:
        """A tool of the user's."""
        return swallowed(danger)

    user = clerk(call("help_yourself"), "bye", name="user", tools=[help_yourself])
    return Attack(
        clerk("hello", "ok", tools=[danger]),
        {"user": UserAgents(loop=user), "stop": Stop(max_turns=2)},
    )


@attack
def a_user_step_that_calls_the_agents_tool(danger: Tool) -> Attack:
    user = UserAgents(loop=step(lambda: swallowed(danger), name="user"))
    return Attack(clerk("hello", "ok", tools=[danger]), {"user": user, "stop": Stop(max_turns=2)})


def speaking(message: str) -> str:
    """An agent that nothing is known of beforehand."""
    return "ok"


@attack
def a_user_step_that_calls_a_tool_no_agent_lists(danger: Tool) -> Attack:
    user = UserAgents(loop=step(lambda: swallowed(danger), name="user"))
    return Attack(speaking, {"user": user, "stop": Stop(max_turns=2)})


@attack
def a_user_agents_tool_that_calls_one_no_agent_lists(danger: Tool) -> Attack:
    @tool
    def own() -> str:
        """A tool of the user."""
        return swallowed(danger)

    user = UserAgents(loop=clerk(call("own"), "more", "more", tools=[own]))
    return Attack(speaking, {"user": user, "stop": Stop(max_turns=2)})


@attack
def a_user_agent_that_was_given_the_agents_tool(danger: Tool) -> Attack:
    user = UserAgents(loop=clerk(call("danger", n=1), "more", "more", tools=[danger]))
    return Attack(clerk("hello", "ok", tools=[danger]), {"user": user, "stop": Stop(max_turns=2)})


@attack
def a_simulated_users_model(danger: Tool) -> Attack:
    user = SimulatedUser("A thief.", model=Scripted(lambda request: swallowed(danger)))
    return Attack(clerk("hello", "ok", tools=[danger]), {"user": user, "stop": Stop(max_turns=2)})


@attack
def a_bridge(danger: Tool) -> Attack:
    def prompt(main: Any, wait: Any) -> str:
        return swallowed(danger)

    user = UserAgents(loop=step(lambda: "more", name="user"))
    return Attack(
        clerk("hello", "ok", tools=[danger]),
        {"user": user, "bridge": Bridge(format_prompt=prompt), "stop": Stop(max_turns=2)},
    )


# Frameworks that do not take no for an answer


class Swallowing(NativeBackend):
    """A framework that eats every exception and reports success."""

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        with contextlib.suppress(Exception):
            await super().advance(ledger, world)
        return TurnOver("all is well")


class Insisting(NativeBackend):
    """A framework that calls the body itself when the World refuses."""

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        for name, facts in self.tools.items():
            request = ToolRequest(f"call-{name}", name, {"n": 1}, "@1", origin=facts.origin)
            for _ in range(3):
                body = functools.partial(facts.origin.run, {"n": 1})
                with contextlib.suppress(Exception):
                    await world.call_tool(request, body)
                with contextlib.suppress(Exception):
                    facts.origin(1)
        return TurnOver("all is well")


class Lying(NativeBackend):
    """A framework that says nothing of its tools beforehand and hands over no origin."""

    @property
    def tools(self) -> Any:
        return None

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        body = self.graph.tools["danger"]

        async def run(context: Context) -> Any:
            return await body.run({"n": 1}, context)

        with contextlib.suppress(Exception):
            await world.call_tool(ToolRequest("c1", "danger", {"n": 1}), run)
        with contextlib.suppress(Exception):
            await world.call_model(
                _request(), lambda request, on_delta: _reply("the model is asked again")
            )
        return TurnOver("all is well")


def _request() -> Any:
    from greenroom.models import ModelRequest

    return ModelRequest("clerk", ())


async def _reply(text: str) -> ModelReply:
    return ModelReply(text)


@attack
def a_framework_that_swallows_the_refusal(danger: Tool) -> Attack:
    return Attack(Swallowing(clerk(call("danger", n=1), "ok", tools=[danger])))


@attack
def a_framework_that_insists(danger: Tool) -> Attack:
    return Attack(Insisting(clerk("ok", tools=[danger])))


@attack
def a_framework_that_lies_about_its_tools(danger: Tool) -> Attack:
    return Attack(Lying(clerk("ok", tools=[danger])))


def played(build: Build, danger: Tool, count: int, **options: Any) -> Any:
    """So many cases of an attack at once, on one agent object."""
    made = build(danger)
    cases = [Case(f"case-{i}", says="go", metrics=CHECKS, **made.case) for i in range(count)]
    return rehearse(made.agent, cases, concurrency=count, **options)


def told(result: CaseResult) -> str:
    """The message of a case that broke."""
    assert result.error is not None
    return result.error.message


def allowed(build: Build, danger: Tool) -> dict[str, Any]:
    by_name = {
        asking_for_it_under_another_name: "alias",
        a_framework_that_lies_about_its_tools: "danger",
    }
    return {"allow_tools": [danger, *filter(None, (by_name.get(build),))]}


@pytest.mark.parametrize("count", [1, 8], ids=["alone", "eight at once"])
@pytest.mark.parametrize("name", ATTACKS)
def test_no_tool_body_slips_through(name: str, count: int, tmp_path: Path) -> None:
    build = ATTACKS[name]
    danger, fired = canary(tmp_path)
    played(build, danger, count, **allowed(build, danger))
    assert fired() >= count, "the canary is dead: with the gate open it should have sung"
    for mark in tmp_path.iterdir():
        mark.unlink()
    report = played(build, danger, count)
    assert fired() == 0
    assert [r.status for r in report.results] == ["error"] * count
    assert {r.error.phase for r in report.results} == {"system"}
    assert all(r.ledger.of(ToolBlocked) for r in report.results)


def test_there_are_enough_attacks() -> None:
    assert len(ATTACKS) >= 40


def test_a_task_that_outlives_its_case_stays_shut_out(tmp_path: Path) -> None:
    danger, fired = canary(tmp_path)
    tasks: list[Any] = []

    @step
    async def act() -> str:
        async def later() -> None:
            await asyncio.sleep(0.05)
            swallowed(danger)

        tasks.append(asyncio.create_task(later()))
        return "ok"

    async def main() -> None:
        from greenroom import evaluate

        case = Case("one", says="go", metrics=CHECKS)
        await evaluate(act, [case])
        await asyncio.wait(tasks)

    asyncio.run(main())
    assert fired() == 0


def test_a_refusal_shuts_every_later_call(tmp_path: Path) -> None:
    danger, fired = canary(tmp_path)

    @tool
    def harmless() -> str:
        """Has a mock."""
        raise AssertionError

    @step
    def act() -> str:
        return swallowed(danger)

    agent = act >> clerk(call("harmless"), "ok", tools=[harmless])
    case = Case("one", says="go", mocks={"harmless": 1}, metrics=CHECKS)
    result = rehearse(agent, [case]).results[0]
    assert result.status == "error"
    assert result.ledger is not None
    assert not result.ledger.of(ToolCalled, ModelReplied)
    assert fired() == 0


def test_allowing_a_tool_in_one_case_does_not_allow_it_in_the_next(tmp_path: Path) -> None:
    danger, fired = canary(tmp_path)
    agent = clerk(call("danger", n=1), "ok", tools=[danger])
    cases = [
        Case("open", says="go", allow_tools=["danger"], metrics=CHECKS),
        Case("shut", says="go", metrics=CHECKS),
    ]
    report = rehearse(agent, cases)
    assert [r.status for r in report.results] == ["passed", "error"]
    assert fired() == 1


@pytest.mark.parametrize("mock", ["", None, 0, [], {}, False, "danger"])
def test_an_empty_mock_is_still_a_mock(mock: Any, tmp_path: Path) -> None:
    danger, fired = canary(tmp_path)
    agent = clerk(call("danger", n=1), "ok", tools=[danger])
    result = rehearse(agent, [Case("one", says="go", mocks={"danger": mock}, metrics=CHECKS)])
    assert result.passed
    assert fired() == 0


def test_a_misspelt_allowance_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    danger, fired = canary(tmp_path)
    agent = clerk(call("danger", n=1), "ok", tools=[danger])
    case = Case("one", says="go", metrics=CHECKS)
    with pytest.raises(BadCase, match="'dangr'"):
        rehearse(agent, [case], allow_tools=["dangr"])
    assert fired() == 0


def test_a_misspelt_mock_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    danger, fired = canary(tmp_path)
    agent = clerk(call("danger", n=1), "ok", tools=[danger])
    case = Case("one", says="go", mocks={"dangr": 1}, metrics=CHECKS)
    with pytest.raises(BadCase, match="'dangr'"):
        rehearse(agent, [case])
    assert fired() == 0


def test_another_tool_handed_over_as_a_mock_is_refused(tmp_path: Path) -> None:
    danger, fired = canary(tmp_path)

    @tool
    def lookup() -> str:
        """Nothing."""
        raise AssertionError

    agent = clerk(call("lookup"), "ok", tools=[lookup])
    case = Case("one", says="go", mocks={"lookup": danger}, metrics=CHECKS)
    result = rehearse(agent, [case]).results[0]
    assert result.status == "error"
    assert fired() == 0


def test_the_raw_function_behind_a_tool_is_out_of_the_gates_reach(tmp_path: Path) -> None:
    """Documented: a plain function is not a tool. Only the fence stands under it."""
    danger, fired = canary(tmp_path)
    case = Case("one", says="go", metrics=CHECKS)
    assert rehearse(step(lambda: danger.fn(1), name="act"), [case]).passed
    assert fired() == 1


def test_a_refusal_lists_every_tool_that_lacks_a_mock() -> None:
    @tool
    def pay(order: int, amount: float) -> str:
        """Pay."""
        raise AssertionError

    @tool(read_only=True)
    def balance(account: str) -> float:
        """Look."""
        raise AssertionError

    @tool
    def mocked() -> str:
        """Has one."""
        raise AssertionError

    agent = clerk(call("pay", order=1, amount=2.0), "ok", tools=[pay, balance, mocked])
    case = Case("one", says="go", mocks={"mocked": 1}, metrics=CHECKS)
    message = told(rehearse(agent, [case]).results[0])
    assert "'pay': ...,  # pay(order, amount)" in message
    assert "'balance': ...,  # balance(account) (read only)" in message
    assert "'mocked': ..." not in message
    assert "mocks={'balance': balance}" in message


def test_every_error_of_the_gate_is_ours() -> None:
    with pytest.raises(GreenroomError):
        rehearse(None, [Case("one", agent=None, mocks=7)])  # type: ignore[arg-type]
