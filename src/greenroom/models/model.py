"""The protocol of a model: its requests and replies."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from greenroom.ledger.attachments import Attachment
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.plain import Json

OnDelta = Callable[[str], object]
"""Called with each piece of a reply's text as it comes; see `send_piece`."""


async def send_piece(on_delta: OnDelta | None, piece: str) -> None:
    """Pass a piece of a reply to the listener, if there is one, and wait as long as it asks for.

    A model may also just call `on_delta(piece)`, but then it cannot be slowed down.
    """
    if on_delta is not None and piece:
        taken = on_delta(piece)
        if inspect.isawaitable(taken):
            await taken


class ToolSpec(Protocol):
    """A tool as a model sees it."""

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        ...

    @property
    def description(self) -> str:
        """What it is for."""
        ...

    @property
    def parameters(self) -> Mapping[str, Json]:
        """JSON schema of the arguments."""
        ...


class ModelRequest(Struct, frozen=True):
    """A request to a model: the agent that asks, how often it has asked before, and the messages."""

    agent: str
    messages: tuple[Message, ...]
    instructions: str = ""
    tools: Sequence[ToolSpec] = ()
    output_schema: Mapping[str, Any] | None = None
    model: str = ""
    path: str = ""
    node: str = ""
    n: int = 0
    digest: str = ""
    """The digest of the question, by which its answer is found in a ledger."""
    seed: int | None = None
    """The seed of the case, for models that accept one."""
    now: float | None = None
    """The time on the case's clock, if the case sets it."""
    answer_tools: tuple[str, ...] = ()
    """The tools by which a framework expects a structured answer."""

    @property
    def last(self) -> str:
        """The text of the last message, which is what a scripted answer mostly looks at."""
        return self.messages[-1].text if self.messages else ""


class ModelReply(Struct, frozen=True):
    """A model's answer; None as its usage or cost, or as a direction of its usage, means that it is unknown."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    prices: str = ""
    model: str = ""
    attachments: tuple[Attachment, ...] = ()
    partial: bool = False
    """Whether it is incomplete, because of a limit of its provider."""


class Model(Protocol):
    """Anything that answers requests. It keeps no position between them."""

    @property
    def name(self) -> str:
        """Its name in reports and price lists."""
        ...

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The answer to a request; pieces of its text go to `on_delta` as they come."""
        ...


ModelBody = Callable[[ModelRequest, OnDelta | None], Awaitable[ModelReply]]
"""The function that asks the real model, once the gate has let a call through."""


def model_name(model: object) -> str:
    """The name of a model in ledgers and reports."""
    name: object = getattr(model, "name", "") or type(model).__name__
    return name if type(name) is str else str(name)
