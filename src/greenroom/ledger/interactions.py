"""What models and tools were asked and what they answered, each as one record."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec import Struct

from greenroom.ledger.attachments import Attachment
from greenroom.ledger.events import (
    Event,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    OfferedTool,
    Question,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message, ToolCall, Usage, Voice
from greenroom.ledger.plain import Json, as_object, plain


class ModelInput(Struct, frozen=True, omit_defaults=True):
    """A whole question to a model: its instructions, the conversation so far, and the tools it may call."""

    instructions: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    output_schema: Json = None


class ModelInteraction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question to a model and its answer.

    `request` is None where the ledger does not say what was asked: recording it was turned off, or the ledger is older.
    """

    agent: str
    model: str
    node: str
    path: str
    n: int
    at: float
    turn: int
    request: ModelInput | None = None
    reply: str = ""
    calls: tuple[ToolCall, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    seconds: float = 0.0
    first: float | None = None
    """Seconds until the first words, if the reply was streamed."""
    source: str = ""
    """Who answered; empty if no answer is recorded, because the trial was interrupted or the model failed."""
    error: str = ""
    seq: int = -1
    """Which event of the ledger asks."""


class ToolInteraction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a tool and how it ended."""

    tool: str
    call_id: str
    args: dict[str, Json]
    path: str
    n: int
    at: float
    turn: int
    result: Json = None
    error: str = ""
    source: str = ""
    """Who answered; empty if the call has no end."""
    seconds: float = 0.0
    seq: int = -1
    """Which event of the ledger calls."""


def model_interactions(ledger: Ledger, voice: Voice = "agent") -> list[ModelInteraction]:
    """Every question to a model on one side, in order, with its answer."""
    index = ledger.index_of(voice)
    ends = model_ends(ledger, voice)
    found: list[ModelInteraction] = []
    for called, request in model_inputs(ledger, voice):
        end = ends.get(called.seq)
        replied = end if isinstance(end, ModelReplied) else ModelReplied()
        found.append(
            ModelInteraction(
                agent=called.agent,
                model=replied.model or called.model,
                node=called.node,
                path=called.path,
                n=called.n,
                at=called.at,
                turn=bisect_left(index.rounds, called.seq, key=attrgetter("seq")),
                request=request,
                reply=replied.text,
                calls=replied.calls,
                attachments=replied.attachments,
                usage=replied.usage,
                cost=replied.cost,
                seconds=replied.seconds,
                first=replied.first,
                source=replied.source if replied is end else "",
                error=end.error if isinstance(end, ModelFailed) else "",
                seq=called.seq,
            )
        )
    return found


def tool_interactions(ledger: Ledger, voice: Voice = "agent") -> list[ToolInteraction]:
    """Every call of a tool on one side, in order, with its end."""
    index = ledger.index_of(voice)
    found: list[ToolInteraction] = []
    for called in index.issued:
        end = index.end_of(called)
        found.append(
            ToolInteraction(
                tool=called.tool,
                call_id=called.call_id,
                args=as_object(plain(called.args)),
                path=called.path,
                n=called.n,
                at=called.at,
                turn=bisect_left(index.rounds, called.seq, key=attrgetter("seq")),
                result=plain(end.value) if isinstance(end, ToolReturned) else None,
                error=end.error if isinstance(end, ToolFailed) else "",
                source="" if end is None else end.source,
                seconds=0.0 if end is None else end.seconds,
                seq=called.seq,
            )
        )
    return found


def model_ends(ledger: Ledger, voice: Voice = "agent") -> dict[int, ModelReplied | ModelFailed]:
    """How each question ended, by the event that asks; one that was interrupted has no end."""
    still_open: dict[tuple[str, str, int], int] = {}
    ends: dict[int, ModelReplied | ModelFailed] = {}
    for event in ledger:
        if event.voice != voice:
            continue
        if isinstance(event, ModelCalled):
            still_open[event.path, event.node, event.n] = event.seq
        elif isinstance(event, ModelReplied | ModelFailed):
            asked = still_open.pop((event.path, event.node, event.n), None)
            if asked is not None:
                ends[asked] = event
    return ends


# References in questions


def model_inputs(
    ledger: Iterable[Event], voice: Voice = "agent"
) -> Iterator[tuple[ModelCalled, ModelInput | None]]:
    """Every question to a model as it is recorded, and as it was asked."""
    known = _Known()
    for event in ledger:
        if event.voice == voice:
            request = known.add(event)
            if isinstance(event, ModelCalled):
                yield event, request


class _Known:
    """What questions may refer to, from the part of a ledger read so far."""

    def __init__(self) -> None:
        self._said: list[UserSaid] = []
        self._ends: dict[str, ToolReturned | ToolFailed] = {}
        self._replies: dict[tuple[str, int], ModelReplied] = {}
        self._inputs: dict[tuple[str, int], ModelInput] = {}

    def add(self, event: Event) -> ModelInput | None:
        """Read an event; for a question, return what was asked."""
        match event:
            case UserSaid():
                self._said.append(event)
            case ToolReturned() | ToolFailed():
                self._ends[event.call_id] = event
            case ModelReplied():
                self._replies[event.path, event.n] = event
            case ModelCalled(question=Question() as question):
                whole = self._whole(event, question)
                self._inputs[event.path, event.n] = whole
                return whole
            case _:
                pass
        return None

    def _whole(self, called: ModelCalled, question: Question) -> ModelInput:
        place = (
            question.after_path or called.path,
            -1 if question.after is None else question.after,
        )
        before = self._inputs.get(place, ModelInput())
        messages: list[Message] = []
        for entry in question.messages:
            if isinstance(entry, Message):
                messages.append(entry)
            else:
                messages += self._referred(entry, before, self._replies.get(place))
        setting = before if question.same_setting else question
        return ModelInput(
            setting.instructions, tuple(messages), setting.tools, setting.output_schema
        )

    def _referred(
        self, reference: str, before: ModelInput, reply: ModelReplied | None
    ) -> tuple[Message, ...]:
        kind, _, rest = reference.partition(":")
        if kind == "kept":
            first, _, last = rest.partition("-")
            return before.messages[int(first) : int(last)]
        if kind == "reply" and reply is not None:
            return (reply.message,)
        if kind == "said" and int(rest) < len(self._said):
            said = self._said[int(rest)]
            return (Message("user", said.text, attachments=said.attachments),)
        if kind == "result" and rest in self._ends:
            return (self._ends[rest].message,)
        # What is referred to is missing: this may be only a part of a ledger.
        return (Message("user", f"[{reference} is not in this ledger]"),)
