"""How the gates of foreign frameworks ask: for a backend's run, or for an agent inside other code.

Every gate works the same way: it describes the call, gets its place in the ledger (path, id and number),
asks, and translates the answer. Until a tool call is placed, its path is the name of the calling agent.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from msgspec.structs import replace

from greenroom.backends.foreign import Invocation, jsonable
from greenroom.errors import AgentFailed, GreenroomError
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.call_context import ContextSetting, Host, model_host, tool_host
from greenroom.world.world import Context, FixedBody, Pending, Returned, SealedBody, ToolRequest

T = TypeVar("T")
Run = Callable[[], Awaitable[Any]]
ToJson = Callable[[Any], Json]
RunModel = Callable[[ModelRequest], Awaitable[T]]
ToReply = Callable[[T], ModelReply]


class Kept:
    """What the real model or tool gave, together with the form of it that was sent to the World.

    If the World passes that on unchanged, the framework gets the real object; if the World answered
    itself or changed anything, the framework gets that instead.
    """

    __slots__ = ("error", "real", "sent")

    def __init__(self) -> None:
        self.real: Any = None
        self.sent: object = None
        self.error: Exception | None = None

    def keep(self, real: Any, sent: T) -> T:
        """Remember what was real, and return what is sent to the World."""
        self.real, self.sent = real, sent
        return sent

    def matches(self, answer: Json | ModelReply) -> bool:
        """Whether the answer is what the real model or tool gave."""
        return self.real is not None and (self.sent is answer or self.sent == answer)


_LISTENER: ContextVar[OnDelta | None] = ContextVar("greenroom_listener", default=None)


def listener() -> OnDelta | None:
    """Who takes the pieces of the reply that a model is asked for here; None if no one does."""
    return _LISTENER.get()


class Caller(ABC):
    """Asks models and tools for one agent of a framework."""

    __slots__ = ("_agent",)

    def __init__(self, agent: str) -> None:
        self._agent = agent

    @property
    def agent(self) -> str:
        """The name of the running agent; "" if the framework does not say."""
        return self._agent

    @abstractmethod
    def place_tool(self, request: ToolRequest) -> ToolRequest:
        """The call with its path, id and number, as far as they are known before it is made."""

    @abstractmethod
    def place_model(self, request: ModelRequest) -> ModelRequest:
        """The question with its path and number, as far as they are known before it is asked."""

    @abstractmethod
    async def call_tool(self, request: ToolRequest, body: SealedBody) -> Returned | Pending:
        """The answer of the World or the host to a placed call."""

    @abstractmethod
    async def call_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The reply of the World or the host to a placed question."""

    @abstractmethod
    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the trial, whatever the framework makes of it; returns it to be raised."""

    @abstractmethod
    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same trial comes to the same place."""

    async def ask_tool(
        self, request: ToolRequest, run: Run, to_json: ToJson = jsonable
    ) -> tuple[Returned | Pending, Kept]:
        """The answer to a placed call, and what the real tool gave or raised if it ran."""
        kept = Kept()

        async def body(_context: Context) -> Json:
            try:
                value = await run()
            except Exception as error:
                kept.error = error
                raise
            return kept.keep(value, to_json(value))

        outcome = await self.call_tool(request, SealedBody(body))
        if isinstance(outcome, Returned) and type(outcome.value) in (dict, list):
            # A copy: the framework's hooks may edit what they get, but must not edit the ledger.
            outcome = Returned(plain(outcome.value), outcome.error, outcome.source)
        return outcome, kept

    async def ask_model(
        self, request: ModelRequest, run: RunModel[T], to_reply: ToReply[T]
    ) -> tuple[ModelReply, Kept]:
        """The reply to a placed question, and what the real model gave if it was asked."""
        kept = Kept()

        async def body(request: ModelRequest, on_delta: OnDelta | None) -> ModelReply:
            with ContextSetting(_LISTENER, on_delta):
                real = await run(request)
            return kept.keep(real, to_reply(real))

        return await self.call_model(request, FixedBody(body)), kept


class RunCaller(Caller):
    """Asks the World, for the agent that a backend runs.

    Calls are placed at `path`; a framework whose agents hand over to each other overrides `place`.
    """

    __slots__ = ("_path", "invocation")

    def __init__(self, invocation: Invocation, agent: str = "", path: str = "") -> None:
        super().__init__(agent)
        self.invocation = invocation
        self._path = path

    @property
    def place(self) -> str:
        """The path of what is running now."""
        return self._path or self.invocation.root

    def call_id(self, tool: str) -> str:
        """The id of a call that no model asked for."""
        before = sum(called.tool == tool for called in self.invocation.index.issued)
        return self.new_id(self.place, "call", tool, before)

    def place_tool(self, request: ToolRequest) -> ToolRequest:
        """The call, placed where the agent is running."""
        tool, path = request.tool, self.place
        call_id = request.id or self.call_id(tool)
        n = self.invocation.index.call_number(tool, call_id, path)
        args = plain(dict(request.args), f"arguments of {tool!r}")
        return replace(request, id=call_id, args=args, path=path, n=n)

    def place_model(self, request: ModelRequest) -> ModelRequest:
        """The request, placed where the agent is running, numbered by the replies it has had in the run."""
        mine = (request.agent, request.node)
        replied = self.invocation.index.replied
        n = sum([(reply.agent, reply.node) == mine for reply in replied])
        return replace(request, path=self.place, n=n)

    async def call_tool(self, request: ToolRequest, body: SealedBody) -> Returned | Pending:
        """The World's answer."""
        return await self.invocation.ask(self.invocation.world.call_tool(request, body))

    async def call_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The World's reply."""
        return await self.invocation.ask(self.invocation.world.call_model(request, body))

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Keep the error: it decides how the invocation ends."""
        return self.invocation.keep(error)

    def new_id(self, *parts: object) -> str:
        """An id of the World."""
        return self.invocation.world.new_id(*parts)


class HostCaller(Caller):
    """Asks the host, for an agent inside a function, a tool, a hook or a thread.

    The host places calls, numbers them, and knows what was answered before.
    """

    __slots__ = ("host",)

    def __init__(self, host: Host, agent: str = "") -> None:
        super().__init__(agent)
        self.host = host

    def place_tool(self, request: ToolRequest) -> ToolRequest:
        """The call as it is."""
        return request

    def place_model(self, request: ModelRequest) -> ModelRequest:
        """The question as it is."""
        return request

    async def call_tool(self, request: ToolRequest, body: SealedBody) -> Returned | Pending:
        """The host's answer."""
        return await self.host.call_tool(request, body)

    async def call_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The host's reply."""
        return await self.host.call_model(request, body)

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the trial."""
        return self.host.refuse(error)

    def new_id(self, *parts: object) -> str:
        """An id of the World."""
        return self.host.new_id(*parts)


def inner_tool_caller(origin: object, name: str, agent: str = "") -> HostCaller | None:
    """The caller for a tool outside of a backend's run; None if the tool may simply run."""
    host = tool_host(origin, name)
    return None if host is None else HostCaller(host, agent)


def inner_model_caller(agent: str = "") -> HostCaller | None:
    """The caller for a model outside of a backend's run; None if the model is asked directly."""
    host = model_host()
    return None if host is None else HostCaller(host, agent)


def refuse_to_wait(caller: Caller, tool: str, outcome: Returned | Pending) -> Returned:
    """How a call ended, for a framework that cannot pause at one."""
    if isinstance(outcome, Pending):
        why = f"tool {tool!r} waits for its user, which its framework cannot do."
        raise caller.refuse(AgentFailed(why))
    return outcome
