"""google-adk loaded for the first time inside a rehearsal, by the function that is rehearsed."""

import subprocess
import sys
from pathlib import Path

CLERK = """
import asyncio, sys
from pathlib import Path
from greenroom import Case, rehearse
from greenroom.metrics import called

def weather(city: str) -> str:
    "The weather."
    open(sys.argv[1], "a").write("acted")
    return "fine"

async def by_a_runner(message: str) -> str:
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Script(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            said = any(content.role == "model" for content in llm_request.contents)
            wanted = types.FunctionCall(name="weather", args={"city": "Oslo"})
            part = types.Part(text="done") if said else types.Part(function_call=wanted)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    agent = LlmAgent(name="inner", model=Script(model="script"), tools=[weather])
    runner = InMemoryRunner(agent=agent, app_name="app")
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
    said = types.Content(role="user", parts=[types.Part(text=message)])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=said):
        pass
    return "done"

def cases(**options):
    return [Case("one", "hello", metrics=[called("weather")], **options)]

assert "google.adk.runners" not in sys.modules
for options in ({"mocks": {"weather": "fine"}}, {}):
    report = rehearse(by_a_runner, cases(**options))
    print(report.results[0].status, Path(sys.argv[1]).exists())
    assert "google.adk.runners" in sys.modules
asyncio.run(by_a_runner("hello"))
"""


def test_a_framework_that_is_loaded_in_a_rehearsal_is_held(tmp_path: Path):
    """Without a mock it is loaded first in `test_late_imports.py`."""
    canary = tmp_path / "canary"
    command = [sys.executable, "-W", "ignore", "-c", CLERK, str(canary)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["passed False", "error False"], done.stderr
    # Fired once: after the rehearsal, where nothing stands in the way.
    assert canary.read_text() == "acted"


KEPT = """
import asyncio, sys
from google.adk.tools import FunctionTool
from greenroom import Case, rehearse
from greenroom.metrics import called

def weather(city: str) -> str:
    "The weather."
    open(sys.argv[1], "a").write("acted")
    return "fine"

kept = FunctionTool(weather).run_async

async def clerk(message: str) -> str:
    await kept(args={"city": "Oslo"}, tool_context=None)
    return "done"

asyncio.run(clerk("hello"))
for mocks in ({}, {"weather": "fine"}):
    print(rehearse(clerk, Case("one", "hello", metrics=[called("weather")], mocks=mocks)).results[0].status)
"""


def test_a_method_kept_from_before_the_first_rehearsal_is_held(tmp_path: Path):
    canary = tmp_path / "canary"
    command = [sys.executable, "-W", "ignore", "-c", KEPT, str(canary)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["error", "passed"], done.stderr
    assert canary.read_text() == "acted"
