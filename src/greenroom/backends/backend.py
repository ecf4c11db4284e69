"""The protocol of a backend: an agent that can be advanced, paused and resumed on a World."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol

from msgspec import Struct

from greenroom.errors import BadAgent
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.events import YieldType
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.world.world import World

Interception = Literal["routed", "observed", "opaque"]
Resumption = Literal["exact", "checkpoint", "by_replay", "no"]
Feature = Literal[
    "approvals",
    "argument_checks",
    "error_handlers",
    "handoffs",
    "message_waits",
    "parallel_calls",
    "pieces",
    "questions",
    "speaks_first",
    "state",
    "streaming",
    "structured_output",
    "turns",
    "usage",
]
"""What a framework may offer beyond one message and one answer; `FEATURES` describes each."""

FEATURES: Mapping[Feature, str] = {
    "approvals": "tools that the user approves or denies",
    "argument_checks": "arguments checked before a tool is called",
    "error_handlers": "the author's own handlers of tool errors",
    "handoffs": "agents that hand over to other agents",
    "message_waits": "waits for a message inside a run",
    "parallel_calls": "several tool calls in one reply",
    "pieces": "replies that a listener takes while they are written",
    "questions": "tools whose answer the user gives",
    "speaks_first": "agents that speak first",
    "state": "the session's state, in and out",
    "streaming": "models that answer in pieces",
    "structured_output": "answers that are data",
    "turns": "several turns, with what was said before",
    "usage": "tokens of each model call",
}


class Yield(Struct, frozen=True):
    """What an agent waits for: a message of its user, or the answer to a tool call."""

    id: str
    type: YieldType
    tool: str = ""
    call_id: str = ""
    args: Any = None
    prompt: str = ""
    invocation: str = ""
    check: Callable[[Json, bool], Json] | None = None
    """Turns an answer into what the tool declared, strictly or not; ValueError if it cannot."""
    attachments: tuple[Attachment, ...] = ()
    """What is attached to the prompt."""

    @property
    def awaiting_input(self) -> bool:
        """Whether it waits for a message of the user."""
        return self.type == "message"


class TurnOver(Struct, frozen=True):
    """The agent has answered and may be addressed again."""

    output: Json = None


class Waiting(Struct, frozen=True):
    """The agent waits for its user inside a turn."""

    yields: tuple[Yield, ...]


class Finished(Struct, frozen=True):
    """The agent has ended the conversation by itself."""

    output: Json = None


class Failed(Struct, frozen=True):
    """The agent could not continue."""

    error: Exception


Advance = TurnOver | Waiting | Finished | Failed
"""How an advance ended: the agent may be addressed again, waits, has finished, or failed."""


class ToolFacts(Struct, frozen=True):
    """What a case needs to know about a tool to mock it."""

    name: str
    parameters: tuple[str, ...] = ()
    read_only: bool = False
    yields: bool = False
    origin: Any = None
    """The author's own object, to recognise it when code calls it directly instead of through the World."""
    takes_more: bool = False
    """Whether it accepts arguments beyond its parameters, or its parameters are unknown."""


DRIFTED = "greenroom:drifted"
"""The note of a backend that replays: the event from which the ledger no longer matches."""


_HEARD_AT_CALLS = ("around_call",)
_HEARD_AT_MODELS = ("before_model", "after_model", "on_model_error", "around_attempt")
_HEARD_AT_TOOLS = ("before_tool", "after_tool", "on_tool_error")


def hooks_heard(backend: "Backend") -> frozenset[str]:
    """The middleware hooks that are called for an agent; hooks around calls only if its calls are visible."""
    from greenroom.world.middleware.protocol import (
        HOOKS,
    )  # a run without middleware does not load it

    always = frozenset(HOOKS).difference(_HEARD_AT_CALLS, _HEARD_AT_MODELS, _HEARD_AT_TOOLS)
    models = () if backend.models == "opaque" else _HEARD_AT_MODELS
    tools = () if backend.tool_calls == "opaque" else _HEARD_AT_TOOLS
    calls = _HEARD_AT_CALLS if models or tools else ()
    waits = ("approvals",) if backend.name == "native" else ()
    return always.union(models, tools, calls, waits)


class Backend(Protocol):
    """Runs an agent on a World."""

    name: ClassVar[str]
    models: ClassVar[Interception]
    tool_calls: ClassVar[Interception]
    resumes: ClassVar[Resumption]
    supports: ClassVar[frozenset[Feature]]

    @property
    def snapshot(self) -> Json:
        """The agent as JSON, for the first event of a ledger."""
        ...

    @property
    def digest(self) -> str:
        """Changes whenever the agent does."""
        ...

    @property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools the agent may call, or None if they are not known before it runs."""
        ...

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Run the agent as far as it can go. Where to begin is read from the ledger."""
        ...


_DECLARED = "models", "name", "resumes", "snapshot", "digest", "supports", "tool_calls", "tools"
"""What a backend says of itself."""


def check_declared(backend: Backend) -> None:
    """Refuse an author's own backend that does not say all that a run must know of it."""
    missing = [
        name
        for name in _DECLARED
        if not (hasattr(type(backend), name) or hasattr(backend, name))  # a property is not read
    ]
    if missing:
        raise BadAgent(
            f"{type(backend).__qualname__} has `advance` and `snapshot`, so it counts as a backend, but lacks "
            f"{', '.join(missing)}. Add them, as docs/how-to/backends.md describes."
        )
