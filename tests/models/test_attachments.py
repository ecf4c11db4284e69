"""Attachments go to every provider byte for byte, and come back from those that give some."""

import base64

import pytest

from attached_files import BIG_PNG, MP4, PDF, PNG, WAV, holds
from greenroom import Agent, Case, Scripted, attach, call, rehearse, tool
from greenroom.errors import RequestRefused
from greenroom.ledger import AgentSaid, Message, ToolCall
from greenroom.models import ModelRequest
from models.test_providers import ANSWERS, model_at
from models.wire import Answer, anthropic, gemini, openai, wire

ASKED = ToolCall("photo", {"of": "cup"}, "call-1")


def shown(*messages: Message) -> ModelRequest:
    return ModelRequest("looker", messages, instructions="Look.")


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_image_of_the_user_arrives_byte_for_byte(name):
    said = Message("user", "What is it?", attachments=(attach(BIG_PNG, name="cup.png"),))
    with wire([ANSWERS[name]("A cup.")]) as server:
        await model_at(server, name, max_tokens=500).respond(shown(said))
    [asked] = server.asked
    assert holds(asked.body, BIG_PNG)
    assert not holds(asked.body, BIG_PNG[:-1] + b"x")


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_image_that_a_tool_gave_arrives_byte_for_byte(name):
    told = Message("tool", "here", (), "call-1", "photo", (attach(BIG_PNG, name="cup.png"),))
    asked = (Message("user", "Show me."), Message("assistant", "", (ASKED,)), told)
    with wire([ANSWERS[name]("A cup.")]) as server:
        await model_at(server, name, max_tokens=500).respond(shown(*asked))
    assert holds(server.asked[0].body, BIG_PNG)


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:x", "google:gemini-2.5-flash"])
async def test_a_document_arrives_byte_for_byte(name):
    said = Message("user", "Sum it up.", attachments=(attach(PDF, name="bill.pdf"),))
    answer = {"openai": openai, "anthropic": anthropic, "google": gemini}[name.partition(":")[0]]
    with wire([answer("Yes.")]) as server:
        await model_at(server, name, max_tokens=500).respond(shown(said))
    assert holds(server.asked[0].body, PDF)


@pytest.mark.parametrize("name", ["openai:gpt-4o", "google:gemini-2.5-flash"])
async def test_a_sound_arrives_byte_for_byte(name):
    said = Message("user", attachments=(attach(WAV, name="call.wav"),))
    with wire([ANSWERS.get(name, openai)("A voice.")]) as server:
        await model_at(server, name, max_tokens=500).respond(shown(said))
    assert holds(server.asked[0].body, WAV)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("has_called", [False, True])
async def test_an_image_that_the_model_gave_itself_is_still_there_later(name, has_called):
    calls = (ASKED,) if has_called else ()
    given = Message("assistant", "", calls, attachments=(attach(BIG_PNG, name="cup.png"),))
    told = (Message("tool", "here", (), "call-1", "photo"),) if has_called else ()
    asked = (Message("user", "Draw."), given, *told, Message("user", "Bigger."))
    with wire([ANSWERS[name]("There.")]) as server:
        await model_at(server, name, max_tokens=500).respond(shown(*asked))
    assert holds(server.asked[0].body, BIG_PNG)


@pytest.mark.parametrize(
    "data, kind", [(b"OggS" + bytes(40), "audio/ogg"), (b"\xff\xfe" * 20, "text/plain")]
)
async def test_what_a_client_chokes_on_is_refused_by_name(data, kind):
    said = Message("user", "Hear.", attachments=(attach(data, kind, name="a"),))
    with wire([openai("Fine.")]) as server, pytest.raises(RequestRefused, match=kind):
        await model_at(server, "openai:gpt-4o").respond(shown(said))
    assert not server.asked


async def test_what_a_provider_cannot_take_is_refused_by_name_and_not_left_out():
    said = Message("user", "Watch.", attachments=(attach(MP4, name="cup.mp4"),))
    with wire([openai("Fine.")]) as server, pytest.raises(RequestRefused, match="video/mp4"):
        await model_at(server, "openai:gpt-4o").respond(shown(said))
    assert server.asked == []


async def test_an_image_that_a_model_gives_is_part_of_its_reply():
    answer = gemini("Here.")
    parts = answer.body["candidates"][0]["content"]["parts"]
    coded = base64.b64encode(PNG).decode()
    parts.append({"inlineData": {"mimeType": "image/png", "data": coded}})
    with wire([answer]) as server:
        reply = await model_at(server, "google:gemini-2.5-flash").respond(
            shown(Message("user", "Draw."))
        )
    [drawn] = reply.attachments
    assert (reply.text, drawn.data, drawn.media_type) == ("Here.", PNG, "image/png")


async def test_a_reply_that_was_cut_at_a_limit_says_so():
    answer: Answer = openai("It is a c")
    answer.body["choices"][0]["finish_reason"] = "length"
    with wire([answer, openai("It is a cup.")]) as server:
        model = model_at(server, "openai:gpt-4o-mini")
        replies = [await model.respond(shown(Message("user", "What?"))) for _ in range(2)]
    assert [reply.partial for reply in replies] == [True, False]


@tool
def photo(of: str) -> str:
    """A photo."""
    raise AssertionError("no test runs this")


def test_a_rehearsal_carries_images_of_the_user_and_of_mocks_to_the_provider():
    with wire([openai(None, ("photo", {"of": "cup"})), openai("Broken.")]) as server:
        agent = Agent("looker", model=model_at(server, "openai:gpt-4o"), tools=[photo])
        case = Case(
            "cup",
            "What is it?",
            attachments=[attach(PNG, name="cup.png")],
            mocks={"photo": {"front": attach(BIG_PNG, name="front.png")}},
        )
        rehearse(agent, [case], store=False)
    assert holds(server.asked[0].body, PNG)
    assert holds(server.asked[1].body, BIG_PNG)


def test_a_script_may_answer_with_an_image():
    drawn = attach(PNG, name="drawn.png")
    agent = Agent(
        "painter", model=Scripted(call("photo", of="cup"), ["Here.", drawn]), tools=[photo]
    )
    report = rehearse(agent, [Case("draw", "Draw.", mocks={"photo": "done"})], store=False)
    ledger = report.results[0].ledger
    assert ledger is not None
    assert [said.attachments for said in ledger.of(AgentSaid)] == [(drawn,)]
