"""Every way out: it leads outside while the fence is open, and nowhere while it is closed."""

import asyncio
import inspect
from contextlib import suppress
from typing import Any

import pytest

from greenroom.simulation.fence import FencedScope, enclose, strays
from simulation.fence_attacks import Attack
from simulation.fence_attacks_births import births
from simulation.fence_attacks_connections import connections
from simulation.fence_attacks_network import network
from simulation.fence_attacks_processes import processes
from simulation.fence_canaries import Canary

ATTACKS = [*network, *connections, *processes, *births]


@pytest.fixture
async def canary(tmp_path):
    canary = Canary(tmp_path)
    yield canary
    canary.close()
    await asyncio.sleep(0.01)  # transports close in a later turn of the loop


@pytest.mark.parametrize("cases", [1, 8])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_a_way_out_is_closed_during_a_rehearsal(attack: Attack, cases: int, canary: Canary):
    await carry_out(await settled(attack.prepare(canary)))
    assert canary.songs(), "the attack never worked"

    acts = [await settled(attack.prepare(canary)) for _ in range(cases)]
    canary.file.unlink(missing_ok=True)
    canary.forget()
    before = len(strays())
    scopes = await rehearse(acts)
    assert canary.songs() == []
    breaches = strays()[before:] if attack.is_stray else [e.breach for e in scopes]
    assert len(breaches) >= cases
    assert {breach.route for breach in breaches if breach} <= set(attack.routes)
    assert None not in breaches


async def rehearse(acts: list[Any]) -> list[FencedScope]:
    """Carry out each act in an enclosure of its own, all of them open at once."""
    together = asyncio.Barrier(len(acts))

    async def case(number: int, act: Any) -> FencedScope:
        with enclose(f"case {number}") as scope:
            await together.wait()
            await carry_out(act)
            await together.wait()
        return scope

    return await asyncio.gather(*(case(number, act) for number, act in enumerate(acts)))


async def carry_out(act: Any) -> None:
    # Whatever becomes of the exception: the record decides, and the canary.
    with suppress(Exception):
        await settled(act())


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
