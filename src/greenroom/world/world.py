"""The World: the one seam through which an agent touches anything outside itself."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from greenroom.errors import BadValue, ToolRefused
from greenroom.ledger.changes import Change, State, apply_changes
from greenroom.ledger.events import Event, Noted, Source, changes_by
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.resources import Resources
from greenroom.world.scopes import Scopes

E = TypeVar("E", bound=Event)


class ToolRequest(Struct, frozen=True):
    """A tool call on its way to its answer."""

    id: str
    tool: str
    args: Mapping[str, Json]
    path: str = ""
    yields: bool = False
    read_only: bool = False
    origin: Any = None
    """The author's own object behind the tool, to recognise it if it is given as its own mock."""
    n: int = 0
    """How many calls of this tool came before; the World fills it in."""
    visits: bool = False
    """Whether the caller runs inside something else, where no user can be asked."""
    delegates: bool = False
    """Whether the tool only runs another agent, whose own calls are asked for one by one."""
    again: bool = False
    """Whether its body paused to ask the user, and runs again from its first line with the answer."""
    ends: bool = False
    """Whether what it returns is the agent's answer, so that the agent is not asked again."""
    pauses: tuple[type[Exception], ...] = ()
    """The exceptions that the framework raises to pause here: not a failure of the tool or its mock."""


class AgentTurn(Struct, frozen=True):
    """An agent that is about to work, or has worked."""

    name: str
    path: str
    input: Json = None


class FixedBody:
    """A body that sends a framework's own request, whatever request it receives."""

    __slots__ = ("_body",)

    def __init__(self, body: ModelBody) -> None:
        self._body = body

    def __call__(self, request: ModelRequest, on_delta: OnDelta | None) -> Awaitable[ModelReply]:
        """Ask the model."""
        return self._body(request, on_delta)


class CallPaused(BaseException):
    """Raised by a body or a mock that asks the user something: its call is not over, and has not failed."""

    def __init__(self, pause: Exception) -> None:
        self.pause = pause


class Returned(Struct, frozen=True):
    """A tool call that ended, with a value or with an error the agent may see."""

    value: Json = None
    error: str = ""
    source: Source = "live"


class Pending(Struct, frozen=True):
    """A tool call that waits for the user's answer."""

    call_id: str
    approval: str = ""
    """The id of the wait, if the user only says whether the tool may be called."""


class Context:
    """The context of a tool, step or mock: call id, tool name, run id, scoped state, `now()` and `note(...)`."""

    def __init__(
        self,
        world: "World",
        path: str,
        *,
        call_id: str = "",
        tool: str = "",
        input: Json = None,
        output: Json = None,
        begun: int | None = None,
        resources: Resources | None = None,
        chunks: Any = None,
    ) -> None:
        self._world = world
        self._path = path
        self._begun = begun
        self._scopes: Scopes | None = None
        self._seen_at = -1
        self._notes: list[tuple[str, Json]] | None = None
        self._adopted: tuple[Change, ...] = ()
        self.call_id = call_id
        self.tool = tool
        self.input = input
        self.output = output
        self.chunks = chunks
        """The input of a step in pieces, as they come; None everywhere else."""
        self.resources = resources
        """The run's resources for the body of a tool that runs for real; None everywhere else."""

    @property
    def state(self) -> Scopes:
        """The run's state by scope; changes count when this call or step has ended well."""
        changed_at = self._world.ledger.index_of(self._world.voice).changed_at
        if self._scopes is None:
            self._scopes = Scopes(self.held())
        elif self._seen_at != changed_at:
            self._scopes.renew(self.held())
        self._seen_at = changed_at
        return self._scopes

    def held(self) -> State:
        """The state; a call sees it as it was when it was called, with its own changes.

        The changes of parallel calls are not shown: they would depend on which call is faster.
        """
        ledger, voice, branch = self._world.ledger, self._world.voice, branch_of(self._path)
        begun = self._begun
        if begun is None:
            return ledger.fold(voice, branch)
        if ledger.index_of(voice).changed_at < begun:
            return {scope: dict(held) for scope, held in ledger.fold(voice, branch).items()}
        state = Ledger(ledger[:begun]).fold(voice, branch)
        inside = f"{self._path}/call:{self.call_id}/"
        for event in ledger[begun:]:
            if f"{event.path}/".startswith(inside):
                apply_changes(state, changes_by(event))
        return state

    def has_read(self, scope: str, key: str) -> bool:
        """Whether this call read the value there."""
        return self._scopes is not None and self._scopes.has_read(scope, key)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._world.run_id

    @property
    def seed(self) -> int | None:
        """The seed of the case, for random numbers; None if it has none."""
        return getattr(self._world, "seed", None)

    def now(self) -> float:
        """Seconds since the epoch by the run's own clock, which a case may set."""
        return self._world.now()

    def note(self, name: str, data: Json = None) -> None:
        """Write your own note into the ledger; it is a step of the trajectory, of type `custom`."""
        if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadValue(f"ctx.note({name!r}, ...) has no name; give a string.")
        path = f"{self._path}/call:{self.call_id}" if self.call_id else self._path
        noted = Noted(path=path, name=name, data=plain(data, f"ctx.note({name!r}, ...)"))
        if self._notes is None:
            # Work that was interrupted runs again, and repeats notes that the ledger has already.
            known = self._world.ledger.index_of(self._world.voice).noted
            self._notes = [(event.name, event.data) for event in known if event.path == path]
        if self._notes[:1] == [(noted.name, noted.data)]:
            self._notes.pop(0)
            return
        self._notes.clear()
        self._world.record(noted)

    def changes(self) -> tuple[Change, ...]:
        """The changes to the state so far."""
        own = self._scopes.changes() if self._scopes is not None else ()
        return (*self._adopted, *own) if self._adopted else own

    def adopt(self, changes: tuple[Change, ...]) -> None:
        """Count changes to the state by code that ran in another process as changes of this call."""
        self._adopted = changes


class SealedBody:
    """A tool's real body on its way to the innermost World, which alone may open it.

    A World around that one, such as middleware, may answer a call or pass it on, but cannot run the tool
    without the gate.
    """

    def __init__(self, body: "OpenBody") -> None:
        self._body = body

    def __call__(self, *_: object) -> object:
        raise ToolRefused(
            "a sealed tool body was called; only the innermost World opens it. Pass the call on to "
            "the World inside instead."
        )


def opened(body: "ToolBody", world: "World") -> "OpenBody":
    """The body, opened for `world`: the innermost World, which wraps no other."""
    if isinstance(body, SealedBody) and not hasattr(world, "inner"):
        return body._body  # pyright: ignore[reportPrivateUsage]
    return body


OpenBody = Callable[[Context], "Awaitable[object] | object"]
ToolBody = OpenBody | SealedBody
"""The code behind a tool, which runs only if the gate lets it."""


class World(Protocol):
    """Everything outside an agent: it reaches models and tools only here."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of this run."""
        ...

    @property
    def voice(self) -> Voice:
        """Whose calls these are: the agent's or its user's."""
        ...

    @property
    def run_id(self) -> str:
        """The id of the run."""
        ...

    @property
    def deadline(self) -> float | None:
        """When this run will time out, by the event loop's clock."""
        ...

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The model's answer; `body` asks the real model."""
        ...

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """The tool's answer, or `Pending` if the user must give it; `body` runs the real tool."""
        ...

    def record(self, event: E) -> E:
        """Record an event of this voice."""
        ...

    def now(self) -> float:
        """Seconds since the epoch by the run's clock."""
        ...

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run gets to the same place."""
        ...


class Around:
    """A world around another: what it does not handle itself, the one inside does."""

    def __init__(self, inner: World) -> None:
        self.inner = inner

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask in the world inside."""
        return await self.inner.call_model(request, body, on_delta)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """Call in the world inside."""
        return await self.inner.call_tool(request, body)

    def record(self, event: E) -> E:
        """Record an event in the world inside."""
        return self.inner.record(event)

    def now(self) -> float:
        """The time in the world inside."""
        return self.inner.now()

    def new_id(self, *parts: object) -> str:
        """An id of the world inside."""
        return self.inner.new_id(*parts)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the world inside."""
        return self.inner.ledger

    @property
    def voice(self) -> Voice:
        """The voice of the world inside."""
        return self.inner.voice

    @property
    def run_id(self) -> str:
        """The run of the world inside."""
        return self.inner.run_id

    @property
    def deadline(self) -> float | None:
        """The deadline of the world inside."""
        return self.inner.deadline


class Clock(Protocol):
    """Tells the time that tools, steps and mocks see."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    """The time of the machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


class FixedClock(Struct, frozen=True):
    """A clock that does not advance, so that a run can be repeated exactly."""

    at: float

    def now(self) -> float:
        """The fixed moment, in seconds since the epoch."""
        return self.at
