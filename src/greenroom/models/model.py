"""What a model is asked and what it answers."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from greenroom.ledger.attachments import Attachment
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.plain import Json

OnDelta = Callable[[str], object]
"""Takes a piece of a reply's text as it comes; see `send_piece`."""


async def send_piece(on_delta: OnDelta | None, piece: str) -> None:
    """Hand a piece of a reply to who listens, if anyone does, and wait as long as they want that.

    A model that only calls `on_delta(piece)` is heard as well, but cannot be held up.
    """
    if on_delta is not None and piece:
        taken = on_delta(piece)
        if inspect.isawaitable(taken):
            await taken


class ToolSpec(Protocol):
    """A tool as a model gets to know it."""

    @property
    def name(self) -> str:
        """What the model calls it by."""
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
    """A question to a model: who asks, for which time, with what before it."""

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
    """Of the question, by which its answer is found in a ledger again."""
    seed: int | None = None
    """The seed of the case, for models that take one."""
    now: float | None = None
    """What the clock of the case shows, if the case sets it."""
    answer_tools: tuple[str, ...] = ()
    """The tools by which a framework wants to be given a structured answer."""

    @property
    def last(self) -> str:
        """The text of the last message, which is what a scripted answer mostly looks at."""
        return self.messages[-1].text if self.messages else ""


class ModelReply(Struct, frozen=True):
    """A model's answer; a cost of None means that no price is known."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    prices: str = ""
    model: str = ""
    attachments: tuple[Attachment, ...] = ()
    partial: bool = False
    """Whether it breaks off, at a limit of its provider's."""


class Model(Protocol):
    """Anything that answers requests. It keeps no position of its own between them."""

    @property
    def name(self) -> str:
        """What reports and price lists call it."""
        ...

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The answer to a request; pieces of its text go to `on_delta` as they come."""
        ...


ModelBody = Callable[[ModelRequest, OnDelta | None], Awaitable[ModelReply]]
"""What really asks the model, once the gate has let a call through."""


def model_name(model: object) -> str:
    """What to call a model in ledgers and reports."""
    name: object = getattr(model, "name", "") or type(model).__name__
    return name if type(name) is str else str(name)
