"""The suite for backends catches backends that cheat: each is told apart by name."""

import pytest

from nested_pytest import ASYNCIO, few_plugins

HONEST = """
from greenroom import Agent, Ledger, Scripted, tool
from greenroom.backends.native import NativeBackend
from greenroom.ledger import NodeEnded, UserSaid
from greenroom.testing import USAGE, BackendConformance, Bypass
from greenroom.world import LiveWorld


class Around:
    '''A world that passes everything on.'''

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Mine(NativeBackend):
    name = "mine"
    supports = frozenset({"parallel_calls", "turns", "usage"})
    around = Around

    async def advance(self, ledger, world):
        return await super().advance(ledger, self.around(world))


class Harness:
    backend = Mine

    def build(self, plan):
        tools = [tool(given.fn) for given in plan.tools]
        return Mine(Agent(plan.name, model=Scripted(*plan.lines, usage=USAGE), tools=tools,
                          instructions=plan.instructions))

    async def run_bare(self, agent, says):
        world = LiveWorld(Ledger())
        world.record(UserSaid(text=says))
        await agent.advance(world.ledger, world)

    def bypasses(self):
        return {}


class TestMine(BackendConformance):
    harness = Harness()
"""

LEAKY = """
class Leaky(Around):
    async def call_tool(self, request, body):
        request.origin.fn(**request.args)
        return await self.inner.call_tool(request, body)

Mine.around = Leaky
"""

SILENT = """
class Silent(Around):
    def record(self, event):
        return event if isinstance(event, NodeEnded) else self.inner.record(event)

Mine.around = Silent
"""

BOASTING = """
Mine.supports = frozenset({*Mine.supports, "structured_output"})
"""

DUMB_BYPASS = """
Harness.bypasses = lambda self: {"nothing at all": Bypass(lambda desk: tool_less())}

def tool_less():
    return Mine(Agent("clerk", model=Scripted("done")))
"""

OPEN_BYPASS = """
Harness.bypasses = lambda self: {"next to the gate": Bypass(beside)}

def beside(desk):
    def say(request):
        desk.mark("fired")
        return "done"

    return Mine(Agent("clerk", model=Scripted(say)))
"""


def failed(pytester: pytest.Pytester, source: str, chosen: str) -> set[str]:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(test_mine=source)
    with few_plugins():
        ran = pytester.inline_run("-q", "-p", ASYNCIO, "-k", chosen)
    passed, _, broken = ran.listoutcomes()
    assert passed or broken
    return {report.nodeid.split("::")[-1] for report in broken}


def test_an_honest_backend_passes(pytester: pytest.Pytester):
    assert failed(pytester, HONEST, "not hangs and not was_cut") == set()


@pytest.mark.parametrize(
    "cheat, caught",
    [
        (
            LEAKY,
            {
                "test_a_mocked_tool_answers_and_its_body_never_runs",
                "test_a_tool_without_a_mock_is_refused_and_ends_the_case",
            },
        ),
        (SILENT, {"test_what_is_entered_is_left"}),
        (BOASTING, {"test_an_answer_that_is_data_is_the_turns_output"}),
        (DUMB_BYPASS, {"test_a_way_around_the_gate_leads_nowhere[nothing at all]"}),
        (OPEN_BYPASS, {"test_a_way_around_the_gate_leads_nowhere[next to the gate]"}),
    ],
    ids=["runs bodies", "tells half", "boasts", "dumb canary", "open way"],
)
def test_a_backend_that_cheats_is_caught(pytester: pytest.Pytester, cheat: str, caught: set[str]):
    chosen = " or ".join(name.partition("[")[0] for name in caught)
    assert failed(pytester, HONEST + cheat, chosen) == caught
