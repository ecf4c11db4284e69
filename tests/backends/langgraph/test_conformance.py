"""LangGraph agents pass the suite that every backend passes."""

from backends.langgraph.scripts import LangGraphHarness
from greenroom.testing import BackendConformance


class TestLangGraph(BackendConformance):
    harness = LangGraphHarness()
