"""Requests to models as the ledger keeps them: by reference to what it holds already.

Each question refers to the one before it, at the same place or in the node's last run, so that a
conversation of any length is recorded once, not again with every question.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from msgspec import Struct

from greenroom.errors import BadValue
from greenroom.ledger.events import ModelReplied, OfferedTool, Question
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.interactions import ModelInput, model_inputs
from greenroom.ledger.messages import Message, Role, ToolCall
from greenroom.ledger.paths import branch_of, parent_branch
from greenroom.ledger.plain import Json, as_object, plain
from greenroom.models.model import ModelRequest, ToolSpec
from greenroom.world.world import World

_ROLES = frozenset(get_args(Role))


class _Asked(Struct, frozen=True, gc=False):
    """A question that was asked, kept next to the ledger so that the next one can refer to it."""

    path: str
    n: int
    messages: tuple[Message, ...]
    instructions: str
    offered: Sequence[object]
    """The tools as they were given, to recognise the same ones quickly."""
    tools: tuple[OfferedTool, ...]
    output_schema: Json


def captured(world: World, request: ModelRequest) -> Question:
    """The question as it is recorded."""
    index = world.ledger.indexes[world.voice]
    path, n, messages = request.path, request.n, request.messages
    before = _before(world, index, request) if index.questions else None
    offered, instructions, schema = request.tools, request.instructions, request.output_schema
    if before is not None and offered is before.offered:
        tools = before.tools
    else:
        tools = tuple([_offered(tool) for tool in offered])
    schema = None if schema is None else _json(schema)
    index.requests[path] = _Asked(path, n, messages, instructions, offered, tools, schema)
    if before is None:
        return Question(_referring(index, messages), instructions, tools, schema)
    found = _after(index, messages, before)
    place = "" if before.path == path else before.path
    if (
        instructions == before.instructions
        and tools == before.tools
        and schema == before.output_schema
    ):
        return Question(found, "", (), None, before.n, place, True)
    return Question(found, instructions, tools, schema, before.n, place)


def as_input(request: ModelRequest) -> ModelInput:
    """A request as it is read from a ledger in which it was recorded."""
    schema = request.output_schema
    return ModelInput(
        request.instructions,
        tuple([_written_out(message) for message in request.messages]),
        tuple([_offered(tool) for tool in request.tools]),
        None if schema is None else _json(schema),
    )


def _before(world: World, index: VoiceIndex, request: ModelRequest) -> _Asked | None:
    """The question to refer to: the last one here, else that of the node's last run, if any.

    A resumed run finds the same one: a question that is asked again does not count as its own
    predecessor, and neither does what runs in parallel with it.
    """
    path = request.path
    if path in index.questions:
        here = _at(world, index, path, request.n)
        if here is not None:
            return here
    branch = branch_of(path)
    while True:
        for place in reversed(index.asked_in(branch, request.node)):
            if place != path and index.is_known(place, path):
                return _at(world, index, place, None)
        if not branch:
            return None
        branch = parent_branch(branch)


def _at(world: World, index: VoiceIndex, path: str, n: int | None) -> _Asked | None:
    """The last question at a path; with `n`, the last one that does not have this number."""
    known: _Asked | None = index.requests.get(path)
    if known is not None and (n is None or known.n < n):
        return known
    found: _Asked | None = None
    for called, whole in model_inputs(world.ledger, world.voice):
        if called.path == path and whole is not None and (n is None or called.n < n):
            found = _Asked(
                called.path,
                called.n,
                whole.messages,
                whole.instructions,
                whole.tools,
                whole.tools,
                whole.output_schema,
            )
    return found


def _after(
    index: VoiceIndex, messages: tuple[Message, ...], before: _Asked
) -> tuple[Message | str, ...]:
    """The messages of a question, without those of the question before and its reply."""
    known, count = before.messages, len(before.messages)
    if messages[:count] == known:
        found, rest = [f"kept:0-{count}"] if count else [], messages[count:]
        for step in reversed(index.steps.get(before.path, ())) if rest else ():
            if isinstance(step, ModelReplied) and step.n == before.n:
                if rest[0] == step.message:
                    found, rest = [*found, "reply"], rest[1:]
                break
        return (*found, *_referring(index, rest))
    return tuple(
        kept or _reference(index, message) or _written_out(message)
        for kept, message in _kept_runs(messages, known)
    )


def _referring(index: VoiceIndex, messages: tuple[Message, ...]) -> tuple[Message | str, ...]:
    """The messages, with references for those that the ledger holds."""
    return tuple([_reference(index, message) or _written_out(message) for message in messages])


def _kept_runs(
    messages: Sequence[Message], before: Sequence[Message]
) -> Iterator[tuple[str, Message]]:
    """Runs of messages that the question before has in the same order; the others one by one.

    So a history that loses its beginning, or begins differently every time, is not recorded again in full.
    """
    here, there, count = 0, 0, len(messages)
    while here < count:
        message, start = messages[here], there
        while start < len(before) and before[start] != message:
            start += 1
        if start == len(before):
            yield "", message
            here += 1
            continue
        end = start
        while end < len(before) and here < count and before[end] == messages[here]:
            end, here = end + 1, here + 1
        yield f"kept:{start}-{end}", message
        there = end


def _reference(index: VoiceIndex, message: Message) -> str:
    """Where the ledger holds this message: the user's last, or the end of a call; "" if it does not."""
    if message.role == "user" and index.said:
        said = index.said[-1]
        if said.text == message.text and said.attachments == message.attachments:
            return f"said:{len(index.said) - 1}"
    if message.role == "tool":
        end = index.results.get(message.call_id)
        if end is not None and index.result_message(end) == message:
            return f"result:{message.call_id}"
    return ""


def _written_out(message: Message) -> Message:
    """The message itself, in a form that can be read back: a function may use roles of its own."""
    role, text = message.role, message.text
    if role not in _ROLES:
        role, text = "user", f"{role}: {text}"
    if not message.calls and type(text) is str:
        attached = message.attachments
        return message if role == message.role else Message("user", text, attachments=attached)
    # The arguments may be the framework's own to change.
    calls = tuple([ToolCall(one.tool, as_object(_json(one.args)), one.id) for one in message.calls])
    return Message(role, str(text), calls, message.call_id, message.tool, message.attachments)


def _offered(tool: ToolSpec) -> OfferedTool:
    takes: str = getattr(tool, "takes", "")
    if takes:
        # Its schema can be derived from it, and would be computed only for the record.
        return OfferedTool(tool.name, tool.description, None, takes)
    return OfferedTool(tool.name, tool.description, _json(tool.parameters))


def _json(value: Mapping[str, object]) -> Json:
    try:
        return plain(value)
    except BadValue as error:
        # A request may hold more than JSON, and no question may fail because of its record.
        return {"not JSON": str(error)}
