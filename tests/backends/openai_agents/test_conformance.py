"""OpenAI Agents pass the suite that every backend passes."""

import pytest

from backends.openai_agents.scripts import OpenAIAgentsHarness
from greenroom.testing import BackendConformance


class TestOpenAIAgents(BackendConformance):
    harness = OpenAIAgentsHarness()

    @pytest.mark.heavy  # a process of its own loads OpenAI Agents for it
    def test_a_version_without_the_seam_is_refused(self) -> None:
        super().test_a_version_without_the_seam_is_refused()
