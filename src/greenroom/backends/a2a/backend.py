"""Rehearses an agent that can only be reached over A2A."""

from collections.abc import Mapping
from typing import ClassVar
from uuid import uuid4

from msgspec import structs

from greenroom.agents.cards import AgentCard
from greenroom.agents.remote import FarAddress, far_address
from greenroom.backends.a2a.exchange import Exchange, Listening, Sent
from greenroom.backends.a2a.wire import parts_for
from greenroom.backends.backend import Feature, Interception
from greenroom.backends.foreign import ForeignBackend, message_data
from greenroom.backends.invocation import Invocation, Progress
from greenroom.ledger.attachments import message_value
from greenroom.ledger.events import NodeEnded, NodeStarted, Noted, Remembered
from greenroom.ledger.plain import Json

_NODE = "a2a"
_SENT = "a2a.sent"
_STATUS = "a2a:status"


def a2a_agent(
    url: str | AgentCard,
    *,
    token: str = "",
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> "A2ABackend":
    """A remote agent to rehearse: `rehearse(a2a_agent(url), cases, allow_opaque=True)`.

    Its models and tools run at the other side, where they are neither seen nor mocked: its side effects are
    real. So a rehearsal must allow that explicitly. `token` and `headers` are names of environment variables,
    as in `remote`.
    """
    return A2ABackend(far_address(url, token, headers, timeout))


class A2ABackend(ForeignBackend):
    """Runs an agent by sending it messages; make one with `a2a_agent`.

    An interrupted turn is not sent again: the other agent is asked how it ended.
    """

    name: ClassVar[str] = "a2a"
    models: ClassVar[Interception] = "opaque"
    tool_calls: ClassVar[Interception] = "opaque"
    memory: ClassVar[str] = "a2a.messages"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {"message_waits", "structured_output", "turns"}
    )

    def __init__(self, address: FarAddress) -> None:
        self.address = address

    @property
    def reaches(self) -> tuple[str, ...]:
        """The one address that must be reachable, as host and port."""
        return (self.address.place,)

    def describe(self) -> dict[str, Json]:
        """Where it is, and which environment variables hold its token and headers."""
        return self.address.facts()

    async def run(self, invocation: Invocation) -> Progress:
        """Send what the user said last, or ask how it ended; returns its answer, or what it asks."""
        world, path = invocation.world, f"{invocation.root}/{_NODE}"
        if path not in invocation.index.started:
            world.record(NodeStarted(path=path, node=_NODE, input=invocation.given))
        messages, answers = invocation.history(), invocation.answers()
        said = message_value(invocation.given or "", invocation.attached)
        if answers:
            said = answers[-1].value
        # One round for each message that the user has given inside this turn.
        round_path = f"{path}#{sum(opened.path == invocation.root for opened in invocation.index.yields.values())}"
        before = [note for note in self._sent_in(invocation) if note.path == round_path]
        sent = Sent.recorded(before[-1].data) if before else self._next(invocation)

        def remember(sent: Sent) -> None:
            world.record(Remembered(path=round_path, name=_SENT, data=structs.asdict(sent)))

        def note(state: str, words: str) -> None:
            data = {"state": state.lower(), **({"said": words[:2_000]} if words else {})}
            world.record(Noted(path=path, name=_STATUS, data=data))

        listening = Listening(remember, note, lambda: invocation.to_user(path))
        exchange = Exchange(self.address, sent, listening)
        ask = exchange.ask_what_became if before else exchange.send
        answer = await ask(parts_for(said))
        messages.append(message_data("user", said))
        if answer.question:
            messages.append(message_data("assistant", answer.question))
            wanted = invocation.message_wanted(world.new_id(round_path), answer.question)
            return Progress(messages, yields=(wanted,))
        world.record(NodeEnded(path=path, node=_NODE, output=answer.output))
        return Progress([*messages, message_data("assistant", answer.output)], answer.output)

    def _sent_in(self, invocation: Invocation) -> list[Remembered]:
        notes = invocation.ledger.of(Remembered, voice=invocation.world.voice)
        return [note for note in notes if note.name == _SENT]

    def _next(self, invocation: Invocation) -> Sent:
        """A new message in the conversation; within a turn it belongs to the task that asked."""
        notes = self._sent_in(invocation)
        if not notes:
            return Sent(str(uuid4()), str(uuid4()))
        last = Sent.recorded(notes[-1].data)
        is_reply = notes[-1].path.startswith(f"{invocation.root}/")
        return Sent(last.context, str(uuid4()), last.task if is_reply else "")
