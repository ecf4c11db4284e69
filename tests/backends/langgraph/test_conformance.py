"""LangGraph agents pass the suite that every backend passes."""

import pytest

from backends.langgraph.scripts import LangGraphHarness
from greenroom.testing import BackendConformance

# A case that is cut while its graph blocks the event loop leaves coroutines of the framework behind.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class TestLangGraph(BackendConformance):
    harness = LangGraphHarness()
