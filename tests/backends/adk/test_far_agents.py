"""Agents that work on somebody else's machine are refused wherever they stand, before they act."""

import json
from pathlib import Path
from typing import Any

import pytest

from backends.adk.eval_environment import environment, run

pytestmark = pytest.mark.heavy

SCRIPT = Path(__file__).with_name("far_agents.py")


@pytest.fixture(scope="module")
def places() -> dict[str, Any]:
    return json.loads(run(str(environment()), str(SCRIPT)).splitlines()[-1])


@pytest.mark.parametrize("place", ["as_root", "as_sub_agent", "as_step", "as_tool", "as_node"])
def test_a_remote_agent_is_refused_before_the_run(places: dict[str, Any], place: str):
    bare, rehearsed, said = places[place]
    assert bare > 0, "the canary does not fire even without a gate"
    assert rehearsed == 0
    assert said.startswith("refused: agent 'far' is a RemoteA2aAgent")


def test_a_remote_agent_that_comes_up_later_is_not_asked(places: dict[str, Any]):
    bare, rehearsed, said = places["brought_up"]
    assert (bare > 0, rehearsed) == (True, 0)
    assert said.startswith("error: agent 'far' is a RemoteA2aAgent")
