"""A remote agent: each message to it is a call that the tool gate sees, and its questions go to the user."""

import asyncio
import re
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

from msgspec import structs

from greenroom.agents.graph import Node
from greenroom.agents.places import value_of
from greenroom.agents.remote import Remote
from greenroom.backends.backend import Yield
from greenroom.backends.native.agent_node import ask_approval, open_yield
from greenroom.backends.native.walk import GraphWalk, Paused, Walked
from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger.events import Noted, Remembered, ToolFailed
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.query import MISSING, split_place
from greenroom.models.model import OnDelta
from greenroom.world.records import ToolError
from greenroom.world.world import Context, Pending, SealedBody, ToolRequest

if TYPE_CHECKING:
    from greenroom.backends.a2a.exchange import Sent
    from greenroom.world.middleware.run import RunMiddleware

ASKS = "input_required"
"""The key with which a remote agent, or its mock, asks back: `{"input_required": "Which order?"}`."""
_SENT = "a2a"
_STATUS = "a2a:status"
_ROUND = re.compile(r"^@\d+|#\d+")


async def run_remote(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """Send the input; while the other agent asks back, send the user's answers."""
    remote, index = node.flow, walk.index
    assert isinstance(remote, Remote)
    for number in count():
        call_id = walk.world.new_id(path, "remote", number)
        if call_id not in index.results:
            waits = await _call(walk, remote, path, call_id, given)
            if waits is not None:
                return waits
        end = index.results[call_id]
        if isinstance(end, ToolFailed):
            raise AgentFailed(f"{remote.name!r} failed at {path}: {end.error}")
        question = asked_back(end.value)
        if question is None:
            return walk.end(node, path, end.value)
        key = walk.world.new_id(path, "remote", number, "answer")
        if key not in index.answers:
            return Paused((_question(walk, f"{path}/{call_id}", key, question),))
        given = index.answers[key].value
    raise AssertionError("a remote agent answers, asks back or fails")


def asked_back(value: Json) -> str | None:
    """The question that a remote agent asks; None if it has answered."""
    question = value.get(ASKS) if is_object(value) and len(value) == 1 else None
    return question if isinstance(question, str) else None


def _question(walk: GraphWalk, path: str, key: str, question: str) -> Yield:
    wanted = Yield(key, "message", prompt=question, invocation=walk.root)
    open_yield(walk.world, wanted, path)
    return wanted


async def _call(
    walk: GraphWalk, remote: Remote, path: str, call_id: str, given: Json
) -> Paused | None:
    """Make the call, or continue one that was sent before an interruption; waits if it needs approval."""
    args: Mapping[str, Json] = {"message": given}
    if call_id in walk.index.called:
        args = walk.index.called[call_id].args
    elif remote.reads:
        args = {**args, "state": _state(walk, remote, path)}
    request = ToolRequest(
        call_id,
        remote.name,
        args,
        path,
        origin=remote,
        n=walk.index.call_number(remote.name, call_id, path),
        again=_sent_before(walk, call_id) is not None,
    )
    far = _FarCall(walk, remote, path, call_id, args)
    outcome = await walk.world.call_tool(request, SealedBody(far.run))
    if not isinstance(outcome, Pending):
        return None
    if not outcome.approval:
        raise BadAgent(f"the remote agent {remote.name!r} cannot be answered by the user; mock it.")
    return Paused((ask_approval(walk.world, request, outcome.approval),))


def _state(walk: GraphWalk, remote: Remote, path: str) -> dict[str, Json]:
    """The part of the state that is sent, each value by the last part of its place."""
    state = walk.ledger.fold(walk.world.voice, branch_of(path))
    found = {split_place(place)[1][-1]: value_of(place, state) for place in remote.reads}
    return {name: value for name, value in found.items() if value is not MISSING}


def _memories(walk: GraphWalk) -> list[dict[str, Json]]:
    notes = walk.ledger.of(Remembered, voice=walk.world.voice)
    return [note.data for note in notes if note.name == _SENT and is_object(note.data)]


def _sent_before(walk: GraphWalk, call_id: str) -> dict[str, Json] | None:
    """What was recorded about a message when it was sent; later records override earlier ones."""
    return next((one for one in reversed(_memories(walk)) if one.get("call") == call_id), None)


class _FarCall:
    """The body of a call: it runs only if the tool gate allows it."""

    def __init__(
        self, walk: GraphWalk, remote: Remote, path: str, call_id: str, args: Mapping[str, Json]
    ) -> None:
        self._walk = walk
        self._remote = remote
        self._path = path
        self._call_id = call_id
        self._args = args
        # The same place in a later turn or round continues the same conversation.
        self._place = _ROUND.sub("", path)

    async def run(self, _: Context) -> Json:
        """Send the message, or ask how it ended; returns an answer or a question."""
        # Imported here: rehearsals with mocks do not need it.
        from greenroom.backends.a2a.exchange import Exchange, Listening
        from greenroom.backends.a2a.wire import parts_for

        sent, is_new = self._sent()
        listening = Listening(self._remember, self._note, self._pieces)
        exchange = Exchange(self._remote.address, sent, listening)
        state = self._args.get("state")
        parts = parts_for(self._args.get("message"), state if is_object(state) else None)
        try:
            ask = exchange.send if is_new else exchange.ask_what_became
            answer = await ask(parts)
        except BadAgent:
            raise
        except AgentFailed as error:
            raise ToolError(str(error)) from error
        except asyncio.CancelledError:
            if self._walk.index.is_closed(self._path):
                await exchange.cancel()  # its answer is no longer needed
            raise
        if answer.question:
            return {ASKS: answer.question}
        is_question = asked_back(answer.output) is not None
        return str(answer.output) if is_question else answer.output

    def _sent(self) -> "tuple[Sent, bool]":
        """The message as it was recorded, or a new one in the same conversation."""
        from greenroom.backends.a2a.exchange import Sent

        before = _sent_before(self._walk, self._call_id)
        if before is not None:
            return Sent.recorded(before), False
        memories = [one for one in _memories(self._walk) if one.get("place") == self._place]
        context = str(memories[-1]["context"]) if memories else str(uuid4())
        # A question belongs to its task; anything else begins another one.
        is_reply = any(str(one.get("path")) == self._path for one in memories)
        task = str(memories[-1]["task"]) if is_reply else ""
        return Sent(context, str(uuid4()), task), True

    def _remember(self, sent: "Sent") -> None:
        data: dict[str, Json] = {
            "call": self._call_id,
            "place": self._place,
            "path": self._path,
            **structs.asdict(sent),
        }
        self._walk.world.record(Remembered(path=self._path, name=_SENT, data=data))

    def _pieces(self) -> OnDelta | None:
        hooks: RunMiddleware | None = getattr(self._walk.world, "middleware", None)
        is_held = hooks is not None and hooks.stack.holds_pieces
        outlet = None if is_held else self._walk.outlet
        return None if outlet is None else outlet.open(self._path, True)

    def _note(self, state: str, said: str) -> None:
        data: dict[str, Json] = {"remote": self._remote.name, "state": state.lower()}
        if said:
            data["said"] = said[:2_000]
        self._walk.world.record(Noted(path=self._path, name=_STATUS, data=data))
