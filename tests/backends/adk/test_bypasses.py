"""Each way around the gate first proves that it leads somewhere, and then leads nowhere."""

from pathlib import Path

import pytest

from backends.adk.bypasses import BYPASSES, leads_nowhere, own_kind_with_a_gated_model

pytestmark = pytest.mark.filterwarnings(
    "ignore:The `plugins` argument is deprecated:DeprecationWarning"
)


@pytest.mark.parametrize("name", BYPASSES)
async def test_a_way_around_the_gate_leads_nowhere(name: str, tmp_path: Path):
    await leads_nowhere(BYPASSES[name], tmp_path)


async def test_an_agent_of_ones_own_kind_is_not_let_through_by_a_gated_model(tmp_path: Path):
    await leads_nowhere(own_kind_with_a_gated_model, tmp_path)
