"""Each way around the gate first proves that it leads somewhere, and then leads nowhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backends.adk.bypasses import BYPASSES, dynamic_agent, dynamic_tool
from backends.adk.scripts import case, run_bare
from greenroom import evaluate
from greenroom.testing import Desk

pytestmark = pytest.mark.filterwarnings(
    "ignore:The `plugins` argument is deprecated:DeprecationWarning"
)


async def leads_nowhere(build: Callable[[Desk], Any], folder: Path, **options: Any) -> None:
    open_desk, desk = Desk(folder), Desk(folder / "closed")
    (folder / "closed").mkdir()
    await run_bare(build(open_desk))
    assert open_desk.marks, "the canary does not fire even without a gate"
    alone = await evaluate(build(desk), case(**options))
    many = [case(f"case {n}", **options) for n in range(8)]
    together = await evaluate(build(desk), many, concurrency=8)
    assert {result.status for result in [*alone, *together]} == {"error"}
    assert desk.marks == []


@pytest.mark.parametrize("name", BYPASSES)
async def test_a_way_around_the_gate_leads_nowhere(name: str, tmp_path: Path):
    await leads_nowhere(BYPASSES[name], tmp_path)


@pytest.mark.parametrize("build", [dynamic_agent, dynamic_tool])
async def test_what_an_allowed_node_brings_up_is_not_allowed_with_it(
    build: Callable[[Desk], Any], tmp_path: Path
):
    await leads_nowhere(build, tmp_path, allow_tools=["act"])
