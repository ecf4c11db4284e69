"""Middleware: the author's code around model and tool calls, and how it gets to know its run.

One object serves many trials at once. It keeps no state of a run; it reads it from the ledger,
`current_run().ledger`, so that an interrupted run continues as if nothing had happened.
"""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from inspect import isfunction
from typing import Any, ClassVar, Final

from greenroom.ledger.events import Event, Source
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.middleware.attempts import Ask
from greenroom.world.world import AgentTurn, Returned, ToolRequest

Around = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]


class Middleware:
    """Hooks around an agent's model and tool calls; a subclass defines those it needs.

    Each hook is asked in the order in which middleware is given. The first answer that is not None
    counts, and the others are not asked. A hook that raises ends the trial as an error of phase
    `system`, which names it. Hooks run inside the fence, and never see the body of a tool.
    """

    name: ClassVar[str] = ""
    """Its name in errors and notes; the name of its class if empty."""
    source: ClassVar[Source] = "middleware"
    """The label of its answers in the ledger."""
    holds_pieces: ClassVar[bool] = False
    """Whether the pieces of a reply wait until the whole reply has passed its hooks."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Hooks that it needs: a backend that does not call them is refused."""
    observes: ClassVar[bool] = False
    """Whether `around_call` also wraps the model calls of simulated users and judges."""
    plugin: Any = None
    """An object that receives results, like those in `plugins=`; None if there is none."""

    def around_run(self) -> Around | None:
        """A context manager that is held while the trial runs, in the task that runs it."""

    def around_turn(self) -> Around | None:
        """A context manager that is held while the agent works on one turn."""

    def around_call(self, call: ModelRequest | ToolRequest) -> Around | None:
        """A context manager that is held while a model or tool is asked, in the task that asks."""

    async def on_user_message(self, text: str) -> str | None:
        """Before the agent gets a message of its user; an answer replaces the message."""

    async def before_run(self) -> Json:
        """Before the agent first works; an answer is its reply to the first message."""

    async def after_run(self) -> None:
        """When the conversation is over and nothing can be changed."""

    async def on_event(self, event: Event) -> None:
        """After each event was recorded. It may look, but must not wait: recorded events are not edited."""

    async def before_agent(self, agent: AgentTurn) -> Json:
        """Before an agent first asks its model; an answer is its output."""

    async def after_agent(self, agent: AgentTurn, output: Json) -> Json:
        """When an agent has its output; an answer replaces it."""

    async def before_model(self, request: ModelRequest) -> ModelReply | str | None:
        """Before a question to a model; an answer is its reply, and the model is not asked."""

    async def after_model(
        self, request: ModelRequest, reply: ModelReply
    ) -> ModelReply | str | None:
        """When a model has replied, before that is recorded; an answer replaces the reply."""

    async def on_model_error(
        self, request: ModelRequest, error: Exception
    ) -> ModelReply | str | None:
        """When a model could not be asked; an answer is its reply, as if nothing had happened."""

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        """Around each attempt to ask a model: `ask(request)` makes one.

        Middleware that defines this is inside all middleware that does not.
        """
        return await ask(request)

    async def before_tool(self, call: ToolRequest) -> Json | Returned:
        """Before a tool is called; an answer is its result, and neither mock nor tool is called."""

    async def after_tool(self, call: ToolRequest, result: Json) -> Json:
        """When a tool has returned, before that is recorded; an answer replaces the result."""

    async def on_tool_error(self, call: ToolRequest, error: Exception) -> Json:
        """When a tool has failed; an answer is its result, as if nothing had happened."""

    def redact(self, text: str) -> str:
        """Called with each string on its way into the ledger; what it returns is recorded instead.

        Agents, models and tools get what is recorded. All middleware is called, one after the other.
        """
        return text

    async def close(self) -> None:
        """When the evaluation, or the turn of a live conversation, is over; it has 10 seconds."""


HOOKS: Final = tuple(name for name, hook in vars(Middleware).items() if isfunction(hook))
"""Every hook, by its name."""
ACTING: Final = tuple(
    name
    for name in HOOKS
    if name not in ("around_run", "around_turn", "around_call", "after_run", "on_event", "close")
)
"""The hooks that may change what happens; the others only look."""


def hook_of(middleware: object, hook: str) -> Any:
    """The hook as the author wrote it; None if it is not defined."""
    found = getattr(middleware, hook, None)
    if not callable(found):
        return None
    is_own = getattr(found, "__func__", found) is not getattr(Middleware, hook)
    return found if is_own else None
