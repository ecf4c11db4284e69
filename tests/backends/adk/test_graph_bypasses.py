"""Each way around the gate through a graph first proves that it leads somewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backends.adk.bypasses import leads_nowhere
from backends.adk.graph_bypasses import GRAPH_BYPASSES, dynamic_agent, dynamic_tool
from greenroom.testing import Desk

pytestmark = pytest.mark.filterwarnings(
    "ignore:The `plugins` argument is deprecated:DeprecationWarning"
)


@pytest.mark.parametrize("name", GRAPH_BYPASSES)
async def test_a_way_around_the_gate_leads_nowhere(name: str, tmp_path: Path):
    await leads_nowhere(GRAPH_BYPASSES[name], tmp_path)


@pytest.mark.parametrize("build", [dynamic_agent, dynamic_tool])
async def test_what_an_allowed_node_brings_up_is_not_allowed_with_it(
    build: Callable[[Desk], Any], tmp_path: Path
):
    await leads_nowhere(build, tmp_path, allow_tools=["act"])
