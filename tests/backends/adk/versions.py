"""What older versions of google-adk lack, for tests that need it."""

from importlib.util import find_spec

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import LongRunningFunctionTool

HAS_GRAPHS = find_spec("google.adk.workflow") is not None
HAS_MODES = "mode" in LlmAgent.model_fields

needs_modes = pytest.mark.skipif(
    not HAS_MODES, reason="this version has neither tasks nor single turns"
)
tells_of_unknown_tools = pytest.mark.skipif(
    not HAS_GRAPHS, reason="this version ends the run where a model makes a tool up"
)
runs_generators = pytest.mark.skipif(
    not HAS_GRAPHS, reason="this version runs tools that yield in live mode only"
)
logs_failures = pytest.mark.skipif(
    not HAS_GRAPHS, reason="this version logs nothing of what it raises"
)


def _question() -> LongRunningFunctionTool:
    if HAS_GRAPHS:
        from google.adk.tools._request_input_tool import request_input

        return request_input

    def ask_user(message: str) -> None:
        """Ask the user."""

    return LongRunningFunctionTool(ask_user)


request_input = _question()
