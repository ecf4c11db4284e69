"""What google-adk's service is asked for is checked before anything of it is opened."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import BaseAgent

from backends.adk.scripts import agent, case
from greenroom.errors import BadAgent, BadInput, MissingExtra
from greenroom.suite.adk_service import evaluate_in_adk


@pytest.mark.skipif(find_spec("pandas") is not None, reason="google-adk[eval] is installed")
async def test_without_google_adks_eval_extra_the_missing_extra_is_named():
    with pytest.raises(MissingExtra, match=r"google-adk\[eval\]"):
        await evaluate_in_adk(agent("clerk", "done"), case())


@pytest.mark.parametrize("criteria", [{"exact": "high"}, {"exact": None}, "nowhere.json"])
async def test_criteria_that_are_none_are_refused(criteria: Any):
    with pytest.raises(BadInput, match="names no criteria of google-adk"):
        await evaluate_in_adk(agent("clerk", "done"), case(), criteria)


async def test_a_config_file_with_a_misspelt_field_is_refused(tmp_path: Path):
    path = tmp_path / "test_config.json"
    path.write_text(json.dumps({"criteria": {"exact": "high"}}))
    with pytest.raises(BadInput, match="test_config"):
        await evaluate_in_adk(agent("clerk", "done"), case(), path)


async def test_an_agent_that_cannot_be_held_is_refused_first():
    class OwnAgent(BaseAgent):
        """Does its work in its own code."""

    with pytest.raises(BadAgent, match="OwnAgent"):
        await evaluate_in_adk(OwnAgent(name="a"), case())
