"""An agent run inside other code: wherever it is run from, its calls go through the tool gate.

For frameworks whose innermost calls have a seam. The harness names some of its places in `seam`, as
`module:Class.method`, so that a version of the framework without them can be tested.
"""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from threading import Thread
from typing import Any

import pytest

from greenroom.agents import Agent, step, tool
from greenroom.cases.case import Case, Stop, Turn
from greenroom.ledger import questions as q
from greenroom.ledger.events import ModelReplied, ToolBlocked, ToolCalled
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import called, contains
from greenroom.models import Scripted
from greenroom.results.result import CaseResult
from greenroom.simulation import UserAgents
from greenroom.testing.blueprints import Desk, Harness
from greenroom.testing.conformance.base import WEATHER, Conformance, case, describe, ledger_of

Run = Callable[[], Awaitable[None]]
"""Lets the framework itself run the inner agent; errors are swallowed."""

CONSULT = ToolCall("consult", {}, "call-consult")


@dataclass(frozen=True, slots=True)
class Scene:
    """The agent to rehearse, and the settings of its case."""

    agent: Any
    allow_tools: tuple[str, ...] = ()
    mocks: dict[str, Any] | None = None
    metrics: tuple[Any, ...] = ()
    user: Any = None
    hook: Any = None


Door = Callable[["Inside", Run], Scene]


def in_function(_: "Inside", run: Run) -> Scene:
    async def clerk(message: str) -> str:  # noqa: ARG001
        await run()
        return "done"

    return Scene(clerk)


def in_sync_function(_: "Inside", run: Run) -> Scene:
    def clerk(message: str) -> str:  # noqa: ARG001
        asyncio.run(_coroutine(run))
        return "done"

    return Scene(clerk)


def in_thread_pool(_: "Inside", run: Run) -> Scene:
    async def clerk(message: str) -> str:  # noqa: ARG001
        with ThreadPoolExecutor(1) as pool:
            # The case's own loop is blocked meanwhile, as in an author's code of this kind.
            pool.submit(asyncio.run, _coroutine(run)).result()
        return "done"

    return Scene(clerk)


def in_bare_thread(_: "Inside", run: Run) -> Scene:
    def clerk(message: str) -> str:  # noqa: ARG001
        thread = Thread(target=lambda: asyncio.run(_coroutine(run)))
        thread.start()
        thread.join()
        return "done"

    return Scene(clerk)


def in_named_tool(_: "Inside", run: Run) -> Scene:
    agent = Agent("desk", model=Scripted(CONSULT, "done"), tools=[tool(_consulting(run))])
    return Scene(agent, allow_tools=("consult",))


def in_named_tool_of_the_framework(suite: "Inside", run: Run) -> Scene:
    agent = suite.agent(CONSULT, "done", tools=[_consulting(run)], name="desk")
    return Scene(agent, allow_tools=("consult",))


def in_step(_: "Inside", run: Run) -> Scene:
    @step
    async def consulting(input: str) -> str:  # noqa: ARG001
        await run()
        return "done"

    return Scene(consulting)


def in_mock(_: "Inside", run: Run) -> Scene:
    agent = Agent("desk", model=Scripted(CONSULT, "done"), tools=[tool(_consulting(run))])
    return Scene(agent, mocks={"consult": _consulting(run)})


def in_user(_: "Inside", run: Run) -> Scene:
    async def user(input: str) -> str:  # noqa: ARG001
        await run()
        return "thanks"

    return Scene(Agent("desk", model=Scripted("What?", "done")), user=UserAgents(loop=user))


def in_fresh_context(_: "Inside", run: Run) -> Scene:
    async def clerk(message: str) -> str:  # noqa: ARG001
        await asyncio.get_running_loop().create_task(_coroutine(run), context=Context())
        return "done"

    return Scene(clerk)


def in_metric(_: "Inside", run: Run) -> Scene:
    async def acts(response: str) -> bool:
        await run()
        return "done" in response

    return Scene(_answer, metrics=(acts,))


def in_hook(_: "Inside", run: Run) -> Scene:
    def hook(case: Case) -> None:  # noqa: ARG001
        thread = Thread(target=lambda: asyncio.run(_coroutine(run)))
        thread.start()
        thread.join()

    return Scene(_answer, hook=hook)


ANSWERED: tuple[Door, ...] = (
    *(in_function, in_sync_function, in_thread_pool, in_bare_thread, in_step, in_mock, in_user),
    *(in_named_tool, in_named_tool_of_the_framework),
)
"""Places where the World of the case answers: with a mock, a named body or a refusal."""

REFUSED: tuple[Door, ...] = (in_fresh_context, in_metric, in_hook)
"""Places where no tool may be called, mocked or not."""


def _answer(message: str) -> str:  # noqa: ARG001
    return "done"


def _consulting(run: Run) -> Callable[[], Awaitable[str]]:
    async def consult() -> str:
        """Consult another agent."""
        await run()
        return "consulted"

    return consult


async def _coroutine(run: Run) -> None:
    await run()


class Inside(Conformance):
    """A tool body never runs from inside other code unless allowed, and calls there are in the ledger."""

    @pytest.fixture(autouse=True)
    def has_seam(self, request: pytest.FixtureRequest) -> None:
        """Skip these tests for backends without a seam."""
        in_here = getattr(Inside, request.function.__name__, None) is not None
        if in_here and not _places(self.harness):
            pytest.skip(f"{self.harness.backend.name} has no seam in the framework")

    def inner(self, desk: Desk) -> Run:
        """An agent with a real tool, run through its framework by code that swallows every error."""
        agent = self.agent(WEATHER, "done", tools=[desk.weather])

        async def run() -> None:
            with suppress(Exception):
                await self.harness.run_bare(agent, "hello")

        return run

    def rehearse(self, scene: Scene, times: int = 1, **options: Any) -> list[CaseResult]:
        """The results of a scene, rehearsed once or several times at once."""
        options["mocks"] = {**(scene.mocks or {}), **options.get("mocks", {})}
        options["allow_tools"] = [*scene.allow_tools, *options.get("allow_tools", ())]
        metrics = [*options.pop("metrics", [contains("done")]), *scene.metrics]
        given: dict[str, Any] = {"metrics": metrics, **options}
        if scene.user is not None:
            given |= {"user": scene.user, "says": "", "turns": [Turn("hello")]}
            given["stop"] = Stop(max_turns=2)
        cases = [case(f"case {n}", **given) for n in range(times)]
        heard = {} if scene.hook is None else {"on_case_start": scene.hook}
        return self.results(scene.agent, cases, concurrency=times, **heard)

    def test_the_canary_fires_when_no_rehearsal_is_open(self, desk: Desk) -> None:
        asyncio.run(_coroutine(self.inner(desk)))
        assert desk.marks == ["weather Oslo 1"]

    @pytest.mark.parametrize("times", [1, 8])
    @pytest.mark.parametrize("door", ANSWERED)
    def test_a_tool_without_a_mock_never_runs_by_another_door(
        self, door: Door, times: int, desk: Desk
    ) -> None:
        for result in self.rehearse(door(self, self.inner(desk)), times):
            assert result.status == "error", describe(result)
            assert result.error is not None
            assert result.error.type == "ToolRefused", describe(result)
            blocked = ledger_of(result).of(ToolBlocked, voice=None)
            assert [event.tool for event in blocked] == ["weather"]
        assert desk.marks == []

    @pytest.mark.parametrize("times", [1, 8])
    @pytest.mark.parametrize("door", ANSWERED)
    def test_a_mock_answers_by_another_door(self, door: Door, times: int, desk: Desk) -> None:
        metrics = [contains("done"), *([called("weather")] if door is not in_user else [])]
        scene = door(self, self.inner(desk))
        for result in self.rehearse(scene, times, mocks={"weather": "fine"}, metrics=metrics):
            finished = "terminated" if door is in_user else "passed"
            assert result.status == finished, describe(result)
            asked = ledger_of(result).of(ToolCalled, voice=None)
            assert [call.tool for call in asked if call.tool != "consult"] == ["weather"]
        assert desk.marks == []

    @pytest.mark.parametrize("door", ANSWERED)
    def test_a_named_tool_runs_by_another_door(self, door: Door, desk: Desk) -> None:
        scene = door(self, self.inner(desk))
        self.rehearse(scene, allow_tools=["weather"])
        assert desk.marks == ["weather Oslo 1"]

    @pytest.mark.parametrize("door", REFUSED)
    def test_a_tool_never_runs_where_none_may_be_called(self, door: Door, desk: Desk) -> None:
        allowances: list[dict[str, Any]] = [
            {},
            {"mocks": {"weather": "fine"}},
            {"allow_tools": ["weather"]},
        ]
        for given in allowances:
            (result,) = self.rehearse(door(self, self.inner(desk)), **given)
            # A hook is not part of the trial, but the run has an error.
            assert result.status == ("passed" if door is in_hook else "error"), describe(result)
        assert desk.marks == []

    def test_the_same_calls_are_in_the_ledger_as_when_handed_over(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])

        async def clerk(message: str) -> str:
            await self.harness.run_bare(agent, message)
            return "done"

        one = case(mocks={"weather": "fine"})
        inside, handed = (ledger_of(self.result(given, one)) for given in (clerk, agent))
        assert [(c.tool, c.args, c.result, c.source) for c in q.tool_calls(inside)] == [
            (c.tool, c.args, c.result, c.source) for c in q.tool_calls(handed)
        ]
        replies = [[(r.text, r.usage) for r in it.of(ModelReplied)] for it in (inside, handed)]
        assert replies[0] == replies[1]

    def test_after_a_rehearsal_the_framework_runs_as_before(self, desk: Desk) -> None:
        run = self.inner(desk)
        self.rehearse(in_function(self, run), mocks={"weather": "fine"})
        asyncio.run(_coroutine(run))
        assert desk.marks == ["weather Oslo 1"]

    def test_a_version_without_the_seam_is_refused(self) -> None:
        places = _places(self.harness)
        assert _refusals_without(places) == [f"{place} FenceNotHeld" for place in places]


def _places(harness: Harness) -> tuple[str, ...]:
    return getattr(harness, "seam", ())


_WITHOUT = """
import os, pkgutil, sys
from greenroom import Case, rehearse
from greenroom.errors import GreenroomError
owners = {place: pkgutil.resolve_name(place.partition(":")[0]) for place in sys.argv[1:]}
for place, owner in owners.items():
    # A process of its own for each: the framework is loaded once, and lacks one place at a time.
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    *parts, last = place.partition(":")[2].split(".")
    for part in parts:
        owner = getattr(owner, part)
    delattr(owner, last)
    try:
        rehearse(lambda message: "done", Case("one", says="hello"))
    except GreenroomError as error:
        print(place, type(error).__name__, flush=True)
    os._exit(0)
"""


def _refusals_without(places: Sequence[str]) -> list[str]:
    """What a rehearsal says if the framework lacks one of these places of the seam."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, *places], capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines() or [done.stderr]
