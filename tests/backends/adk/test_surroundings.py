"""What stands around an agent: files it saves, memory, plug-ins, resumable apps, and the log."""

from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.plugins import BasePlugin
from google.adk.tools import FunctionTool, load_artifacts, preload_memory
from google.genai import types

from backends.adk.bypasses import async_generator_tool, generator_tool, live_connection
from backends.adk.scripts import WEATHER, agent, case, ledger_of, result_of
from backends.adk.versions import logs_failures, runs_generators
from greenroom import Case, Ledger, Lines, Turn, UserAgents, simulate
from greenroom.ledger import questions as q
from greenroom.ledger.events import Answered, Remembered, RunEnded
from greenroom.testing import Desk


def weather(city: str) -> str:
    """The weather."""
    raise RuntimeError("never reached")


async def test_a_file_saved_in_one_turn_is_there_in_the_next():
    seen: list[Any] = []

    async def keep(callback_context: Any) -> None:
        found = await callback_context.load_artifact("note")
        seen.append(found and found.inline_data.data)
        data = types.Part.from_bytes(data=b"\x00\xff%d" % len(seen), mime_type="image/png")
        await callback_context.save_artifact("note", data)

    clerk = agent("clerk", "well", "done", before_agent_callback=keep)
    one = case(says="", turns=[Turn("a"), Turn("b")])
    result = await result_of(clerk, one)
    assert (result.status, seen) == ("passed", [None, b"\x00\xff1"]), result.error
    kept = ledger_of(result).of(Remembered)[-1].data["items"]
    assert Ledger.loads(ledger_of(result).dumps())
    assert len(kept[-1]["artifacts"]) == 1


async def test_a_run_that_saves_no_file_remembers_none():
    ledger = ledger_of(await result_of(agent("clerk", "done"), case()))
    assert all("artifacts" not in item for item in ledger.of(Remembered)[0].data["items"])


async def test_memory_is_empty_and_there():
    result = await result_of(agent("clerk", "done", tools=[preload_memory]), case())
    assert result.status == "passed", result.error


async def test_the_tool_that_loads_files_is_gated_like_any_other():
    clerk = agent("clerk", ("load_artifacts", {"artifact_names": ["a"]}), "done")
    clerk = clerk.clone(update={"tools": [load_artifacts]})
    refused = await result_of(clerk, case())
    allowed = await result_of(clerk, case(allow_tools=["load_artifacts"]))
    assert (refused.status, allowed.status) == ("error", "passed"), allowed.error


async def test_a_plugins_callbacks_run_and_may_answer_for_a_tool():
    seen: list[str] = []

    class Watch(BasePlugin):
        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            seen.append("model")

        async def after_tool_callback(self, *, tool: Any, **_: Any) -> None:
            seen.append(tool.name)

    clerk = agent("clerk", WEATHER, "done", tools=[weather])
    app = App(name="shop", root_agent=clerk, plugins=[Watch("watch")])
    result = await result_of(app, case(mocks={"weather": "fine"}))
    assert (result.status, seen) == ("passed", ["model", "weather", "model"]), result.error


@pytest.mark.filterwarnings("ignore:.*ResumabilityConfig:UserWarning")
async def test_a_resumable_app_pauses_and_goes_on_from_its_saved_ledger():
    def app() -> App:
        tool = FunctionTool(weather, require_confirmation=True)
        return App(
            name="shop",
            root_agent=agent("clerk", WEATHER, "done", tools=[tool]),
            resumability_config=ResumabilityConfig(is_resumable=True),
        )

    one = case(mocks={"weather": "fine"}, user=UserAgents(tools={"weather": Lines(True)}))
    result = await result_of(app(), one)
    assert result.status == "passed", result.error
    ledger = ledger_of(result)
    assert [call.result for call in q.tool_calls(ledger)] == ["fine"]
    begun = Ledger.loads(Ledger(ledger[: ledger.of(Answered)[0].seq + 1]).dumps())
    assert q.response(await simulate(one, app(), ledger=begun)) == "done"


@pytest.mark.parametrize("name", ["session", "user", "app", "temp"])
async def test_every_scope_of_state_goes_in_and_a_callbacks_change_comes_out(name: str):
    prefix = "" if name == "session" else f"{name}:"

    def change(callback_context: Any) -> None:
        state = callback_context.state
        state["seen"] = state[f"{prefix}order"]
        state[f"{prefix}order"] = 8

    clerk = agent("clerk", "done", before_agent_callback=change)
    result = await result_of(clerk, case(state={name: {"order": 7}}))
    state = q.state(ledger_of(result))
    assert state["session"]["seen"] == 7, result.error
    # What is temporary is over when its turn is.
    assert state.get(name, {}).get("order") == (None if name == "temp" else 8)


async def test_a_live_conversation_is_refused_and_says_what_to_do(tmp_path: Path):
    result = await result_of(live_connection(Desk(tmp_path)), case())
    assert result.error is not None
    assert (result.status, result.error.type) == ("error", "ToolRefused")
    assert "without run_live" in result.error.message


@runs_generators
@pytest.mark.parametrize("build", [generator_tool, async_generator_tool])
async def test_a_tool_that_yields_is_mocked_or_named_like_any_other(build: Any, tmp_path: Path):
    desk = Desk(tmp_path)
    mocked = await result_of(build(desk), case(mocks={"weather": "mild"}))
    assert (mocked.status, desk.marks) == ("passed", []), mocked.error
    (call,) = q.tool_calls(ledger_of(mocked))
    assert (call.args, call.result, call.source) == ({"city": "Oslo"}, "mild", "mock")
    named = await result_of(build(desk), case(allow_tools=["weather"]))
    assert (named.status, desk.marks) == ("passed", ["Oslo"]), named.error


async def test_a_refusal_is_told_by_the_report_and_not_by_a_traceback(
    caplog: pytest.LogCaptureFixture,
):
    result = await result_of(agent("clerk", WEATHER, "done", tools=[weather]), case())
    assert result.status == "error"
    assert [record for record in caplog.records if record.exc_info] == []


@logs_failures
async def test_an_agents_own_failure_is_still_logged(caplog: pytest.LogCaptureFixture):
    clerk = agent("clerk", WEATHER, "done", tools=[weather])
    result = await result_of(clerk, case(allow_tools=["weather"]))
    assert result.status == "error"
    assert [record for record in caplog.records if record.exc_info] != []


async def test_a_missing_key_is_said_in_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    keyless = LlmAgent(name="weather", model="gemini-2.5-flash")
    ledger = await simulate(Case("c", says="Hi"), keyless)
    end = ledger.of(RunEnded)[0]
    assert end.error_type == "KeyRefused"
    assert "Set GOOGLE_API_KEY, or let another model answer" in end.error
    assert [record for record in caplog.records if record.exc_info] == []
