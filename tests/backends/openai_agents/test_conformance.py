"""OpenAI Agents pass the suite that every backend passes."""

from backends.openai_agents.scripts import OpenAIAgentsHarness
from greenroom.testing import BackendConformance


class TestOpenAIAgents(BackendConformance):
    harness = OpenAIAgentsHarness()
