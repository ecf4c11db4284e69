"""A model that replaces all models of an agent, whichever of its parts asks.

It answers in the order in which the run asks, so that one script holds a whole conversation, including
hand-offs.
"""

from msgspec import DecodeError
from msgspec.json import decode
from msgspec.structs import replace

from greenroom.ledger.events import ModelCalled
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta, ToolSpec
from greenroom.models.replies import checked_reply
from greenroom.world.world import World


def in_place(world: World, request: ModelRequest, respond: ModelBody) -> ModelBody:
    """The function that asks the model this question of the run, before it is recorded."""
    # How many questions of the run came before; one that is asked again after an interruption keeps its number.
    called = world.ledger.of(ModelCalled, voice=world.voice)
    before = list(dict.fromkeys((event.path, event.node, event.n) for event in called))
    mine = (request.path, request.node, request.n)
    number = before.index(mine) if mine in before else len(before)

    async def body(asked: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        reply = checked_reply(await respond(replace(asked, n=number), on_delta), asked.model)
        return _with_answer_tool(reply, asked)

    return body


def _with_answer_tool(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """The reply; for a framework that expects a structured answer as a tool call, data becomes that call."""
    if reply.calls or not request.answer_tools:
        return reply
    try:
        data: Json = decode(reply.text)
    except DecodeError:
        return reply
    tools = {tool.name: tool for tool in request.tools}
    for name in request.answer_tools:
        if (args := _arguments(tools[name], data)) is not None:
            return replace(reply, text="", calls=(ToolCall(name, args),))
    return reply


def _arguments(tool: ToolSpec, data: Json) -> dict[str, Json] | None:
    """The data as arguments of this tool; None if they do not fit."""
    known: Json = tool.parameters.get("properties")
    names = set(known) if is_object(known) else set[str]()
    if is_object(data) and set(data) <= names:
        required = tool.parameters.get("required", [])
        is_whole = not is_array(required) or all(name in data for name in required)
        return dict(data) if is_whole else None
    # What is not a mapping by itself is wrapped in one by its framework.
    return {next(iter(names)): data} if len(names) == 1 else None
