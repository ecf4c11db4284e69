"""Which model is asked: the agent's own, one that its choice picks by the ledger, or the one that replaces all."""

from collections import Counter
from collections.abc import Iterator
from math import fsum

from msgspec import DecodeError
from msgspec.json import decode
from msgspec.structs import replace

from greenroom.ledger.events import Corrected, ModelCalled, ModelReplied, RunStarted
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.paths import branch_of, branches_of, fork_of
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.models.chooser import ChoiceContext, Chooser
from greenroom.models.model import (
    ModelBody,
    ModelReply,
    ModelRequest,
    OnDelta,
    ToolSpec,
    model_name,
)
from greenroom.models.replies import checked_reply
from greenroom.world.world import World


def chosen(world: World, request: ModelRequest, body: ModelBody) -> tuple[ModelRequest, ModelBody]:
    """The request and its body: as given, or those of the model that a choice picks or that replaces all models."""
    instead = getattr(world, "model", None)
    if instead is not None:
        request, body = replace(request, model=model_name(instead)), instead.respond
    chooser = getattr(body, "__self__", None)
    if isinstance(chooser, Chooser):
        model = chooser.pick(request, context_at(world, request))
        request, body = replace(request, model=model.name), model.respond
    return request, body if instead is None else _in_place(world, request, body)


def context_at(world: World, request: ModelRequest) -> ChoiceContext:
    """The context of the run as known at the place of a request, before it is asked."""
    ledger, path, node = world.ledger, request.path, request.node
    index = ledger.indexes[world.voice]
    replies = [reply for reply in index.replied if index.is_known(reply.path, path)]
    runs = index.earlier_runs(node, path) if path in index.started else []
    places = {path, *(run.path for run in runs)}
    steps = [step for place in places for step in index.steps.get(place, ())]
    called = {
        (call.path, call.n): call.model
        for call in ledger.of(ModelCalled, voice=world.voice)
        # After an interruption the open question was asked before, and is asked again.
        if call.path in places and call.node == node and call.n < request.n
    }
    return ChoiceContext(
        spending=_spending(ledger, index, path, replies),
        unpriced=frozenset(reply.model for reply in replies if reply.cost is None),
        corrections=sum(isinstance(step, Corrected) for step in steps),
        failures=sum(place in index.failed for place in places),
        asked=Counter(called.values()),
        state=ledger.fold(world.voice, branch_of(path)),
    )


def _spending(
    ledger: Ledger, index: VoiceIndex, path: str, replies: list[ModelReplied]
) -> tuple[tuple[int, float], ...]:
    """What was spent outside of all forks and in each branch here, and how many share the rest."""
    branches = ["", *reversed(branches_of(path))]
    spent: dict[str, list[float]] = {branch: [] for branch in branches}
    for reply in replies:
        inside = (b for b in reversed(branches) if not b or reply.path.startswith(f"{b}/"))
        spent[next(inside)].append(reply.cost or 0.0)
    # An exact sum: its last digit must not depend on the order in which branches were answered.
    return tuple((_siblings(ledger, index, b), fsum(usd)) for b, usd in spent.items())


def _siblings(ledger: Ledger, index: VoiceIndex, branch: str) -> int:
    """How many branches the fork of a branch has, including itself; 1 if that is not known."""
    fork = index.started.get(fork_of(branch)) if branch else None
    if fork is None:
        return 1
    first = ledger.first
    snapshot = first.agent if isinstance(first, RunStarted) else None
    facts = next(
        (facts for facts in _facts_in(snapshot) if facts.get("id") == fork.node), dict[str, Json]()
    )
    found = facts.get("parts")
    if facts.get("kind") == "map_over":
        found = fork.input if fork.items is None else fork.items
    return max(len(found), 1) if is_object(found) or is_array(found) else 1


def _facts_in(snapshot: Json) -> Iterator[dict[str, Json]]:
    """The facts of all nodes in a snapshot."""
    if is_object(snapshot):
        yield snapshot
        parts = snapshot.get("parts")
        for part in parts.values() if is_object(parts) else ():
            yield from _facts_in(part)


def _in_place(world: World, request: ModelRequest, respond: ModelBody) -> ModelBody:
    """The function that asks the model that replaces all others, before the question is recorded.

    It answers in the order in which the run asks, whichever part does, so that one script holds a whole
    conversation, including hand-offs.
    """
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
