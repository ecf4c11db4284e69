"""What google-adk's events say besides words: files that were saved, a loop that was left, a reply cut short."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent  # pyright: ignore[reportDeprecated]
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import ToolContext, exit_loop
from google.genai import types

from attached_files import BIG_PNG, holds
from backends.adk.scripts import Script, agent, case, ledger_of, result_of
from greenroom import Turn, attach, simulate
from greenroom.ledger import AgentSaid, ArtifactSaved, Escalated, Ledger, ModelReplied


async def save(tool_context: ToolContext) -> str:
    """Save a picture."""
    part = types.Part(inline_data=types.Blob(data=BIG_PNG, mime_type="image/png"))
    return f"version {await tool_context.save_artifact('cup.png', part)}"


async def test_a_file_that_an_agent_saves_is_in_the_ledger_with_its_version():
    lines = [("save", {}), ("save", {}), "all done"]
    result = await result_of(agent("clerk", *lines, tools=[save]), case(allow_tools=["save"]))
    ledger = ledger_of(result)
    saved = ledger.of(ArtifactSaved)
    assert [(one.name, one.version) for one in saved] == [("cup.png", 0), ("cup.png", 1)]
    assert [one.attachment.data for one in saved if one.attachment] == [BIG_PNG, BIG_PNG]
    assert not holds(ledger.dumps(), BIG_PNG)


async def load(tool_context: ToolContext) -> str:
    """Look at the picture."""
    part = await tool_context.load_artifact("cup.png")
    found = part is not None and part.inline_data is not None and part.inline_data.data == BIG_PNG
    return f"found: {found}"


async def test_a_file_is_still_there_in_a_later_turn_of_a_resumed_run(tmp_path):
    lines = [("save", {}), "saved", ("load", {}), "all done"]
    clerk = agent("clerk", *lines, tools=[save, load])
    turns = [Turn("save it"), Turn("look at it")]
    one = case(says="", turns=turns, allow_tools=["save", "load"], metrics=[])
    whole = await simulate(one, clerk)
    said = [event.seq for event in whole.of(AgentSaid)]
    end = next(event.seq for event in whole if event.seq > said[0] and event.kind == "user_said")
    Ledger(whole[: end + 1]).save(tmp_path / "cut.jsonl")
    again = await simulate(one, clerk, ledger=Ledger.load(tmp_path / "cut.jsonl"))
    assert "found: True" in again.dumps()


@pytest.mark.filterwarnings("ignore:LoopAgent is deprecated:DeprecationWarning")
async def test_an_agent_that_leaves_its_loop_is_in_the_ledger():
    inner = agent("worker", ("exit_loop", {}), "all done", tools=[exit_loop])
    loop: Any = LoopAgent(name="loop", sub_agents=[inner], max_iterations=3)  # pyright: ignore[reportDeprecated]
    ledger = ledger_of(await result_of(loop, case(metrics=[])))
    assert [(one.node, "worker" in one.path) for one in ledger.of(Escalated)] == [("worker", True)]


async def test_without_any_of_it_no_such_event_is_written():
    ledger = ledger_of(await result_of(agent("clerk", "all done"), case()))
    assert ledger.of(ArtifactSaved, Escalated) == []
    assert [reply.partial for reply in ledger.of(ModelReplied)] == [False]


class CutShort(Script):
    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        content = types.Content(role="model", parts=[types.Part(text="all do")])
        yield LlmResponse(content=content, finish_reason=types.FinishReason.MAX_TOKENS)


async def test_a_reply_that_was_cut_at_a_limit_says_so():
    clerk = LlmAgent(name="clerk", model=CutShort(lines=[]))
    ledger = ledger_of(await result_of(clerk, case(metrics=[])))
    assert [reply.partial for reply in ledger.of(ModelReplied)] == [True]


class Painter(Script):
    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        blob = types.Blob(data=BIG_PNG, mime_type="image/png")
        parts = [types.Part(text="here"), types.Part(inline_data=blob)]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


async def test_an_image_that_the_model_gives_reaches_the_user():
    painter = LlmAgent(name="painter", model=Painter(lines=[]))
    ledger = ledger_of(await result_of(painter, case(metrics=[])))
    [said] = ledger.of(AgentSaid)
    assert (said.text, [one.data for one in said.attachments]) == ("here", [BIG_PNG])
    assert not holds(ledger.dumps(), BIG_PNG)


async def test_google_adks_own_service_gets_the_image_of_a_case():
    from greenroom.cases.files.adk_turns import turn_data
    from greenroom.suite.adk.stand_ins import their_case

    one = case(attachments=[attach(BIG_PNG, name="cup.png")])
    [exchange] = their_case(one).conversation or []
    [_, part] = exchange.user_content.parts or []
    assert part.inline_data is not None
    assert part.inline_data.data == BIG_PNG
    assert holds(turn_data(one.script[0]), BIG_PNG)
