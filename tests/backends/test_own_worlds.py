"""A World that code of a case makes does not bypass the gate of the case, in any framework."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from backends.keyed_agents import FRAMEWORKS
from greenroom import Case, Ledger, Scripted, call, rehearse
from greenroom.backends import backend_for
from greenroom.backends.answered import with_model
from greenroom.ledger import ToolFailed
from greenroom.ledger.events import RunStarted, UserSaid
from greenroom.metrics import contains
from greenroom.world import LiveWorld


@pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=[*FRAMEWORKS])
def test_an_agent_that_is_run_on_a_live_world_inside_a_case_is_refused_its_tools(
    build: Callable[..., Any],
) -> None:
    ledgers: list[Ledger] = []

    async def act() -> None:
        ledgers.append(ledger := Ledger())
        world = LiveWorld(ledger)
        world.record(RunStarted(run_id="own", case={}, agent=None, digest="", state={}))
        world.record(UserSaid(text="Paris?"))
        world.model = model = Scripted(call("get_weather", city="Paris"), then="Fine.")
        with suppress(Exception):
            await with_model(backend_for(build()), model).advance(ledger, world)

    async def clerk(message: str) -> str:
        await act()
        return "Fine."

    async def looks(response: str) -> bool:
        await act()
        return True

    for agent, metric in ((clerk, contains("Fine")), (lambda message: "Fine.", looks)):
        [result] = rehearse(agent, Case("c", "Paris?", metrics=[metric]), store=False)
        assert result.error is not None
        assert "called the tool 'get_weather'" in result.error.message
    assert not [failed for ledger in ledgers for failed in ledger.of(ToolFailed)]  # the body raises
