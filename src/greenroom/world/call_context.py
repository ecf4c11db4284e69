"""What is known about the code that runs here: its place in the ledger, and what answers its calls.

A framework's agent may be started anywhere: inside a plain function, a step, a tool, a mock, a
callback, a thread. Wherever it is, its calls are answered by the host of the case they belong to.
Lower rooms only ask for the host; the fence provides the function that finds it.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Generic, Protocol, TypeVar

from greenroom.errors import GreenroomError
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.world import Returned, ToolBody, ToolRequest

T = TypeVar("T")


class ContextSetting(Generic[T]):
    """Sets a context variable for a while."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        try:
            self._variable.reset(self._token)
        except ValueError:
            # A coroutine that was discarded ends in another context, where there is nothing to reset.
            return


# What goes with the work of a case into threads

CARRIED: Final[list[ContextVar[Any]]] = []
"""The variables that work of a case keeps in a thread, where Python leaves the context behind."""


def carried(variable: ContextVar[T]) -> ContextVar[T]:
    """Have work of a case keep this variable in threads."""
    CARRIED.append(variable)
    return variable


# Where

_PLACE: Final = carried(ContextVar[str]("greenroom_place", default=""))
_ASKED: Final = carried(ContextVar[str | None]("greenroom_asked", default=None))
"""The path whose model is being asked."""


def place_here() -> str:
    """The path in the ledger of the step, tool or function that runs here; "" if none does."""
    return _PLACE.get()


def placed(path: str) -> "ContextSetting[str]":
    """Record what runs in this context at `path` in the ledger."""
    return ContextSetting(_PLACE, path)


def asking() -> "ContextSetting[str | None]":
    """Mark this context as a model that is computing its answer."""
    return ContextSetting(_ASKED, _PLACE.get())


def is_asked() -> bool:
    """Whether a model is computing its answer here, so that whatever it asks in turn is part of that answer.

    A tool that it calls has its own path, where model calls count again.
    """
    return _ASKED.get() == _PLACE.get()


# What was decided


class _Call(Generic[T]):
    """A call that the gate has let through, for as long as it runs."""

    __slots__ = ("is_over", "known_by")

    def __init__(self, known_by: T) -> None:
        self.known_by = known_by
        self.is_over = False


class _LetThrough(ContextSetting[_Call[T] | None]):
    """Sets the call that is let through for a while, and ends it with that."""

    __slots__ = ()

    def __exit__(self, *error: object) -> None:
        if self._value is not None:
            self._value.is_over = True
        super().__exit__(*error)


class LetThrough(Generic[T]):
    """The call whose body runs here because the gate has let it, by what identifies it: it is not asked about again.

    A task or thread that the body left behind has a copy of the context, but is no part of the call any more.
    """

    __slots__ = ("variable",)

    def __init__(self, name: str) -> None:
        # A thread that the body starts works on the same call, and no longer than the body runs.
        self.variable = carried(ContextVar[_Call[T] | None](name, default=None))

    def here(self) -> T | None:
        """What identifies the call whose body runs here; None where none does."""
        call = self.variable.get()
        return None if call is None or call.is_over else call.known_by

    def during(self, known_by: T | None) -> ContextSetting[_Call[T] | None]:
        """Count what runs in this context as the body of this call; None: of no call."""
        return _LetThrough(self.variable, None if known_by is None else _Call(known_by))


_DECIDED: Final = LetThrough[str]("greenroom_decided")


def is_decided(tool: str) -> bool:
    """Whether the body of this tool runs here, because the gate has let it."""
    return _DECIDED.here() == tool


def decided(tool: str | None) -> ContextSetting[_Call[str] | None]:
    """Count what runs in this context as the body of `tool`; None: of no tool.

    A framework states it again for its own body, under the name by which the server of the tool knows it.
    """
    return _DECIDED.during(tool)


# What answers agents that run inside something else


class Host(Protocol):
    """Answers the model and tool calls of agents that run inside something else."""

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The model's answer; the host fills in path, number and digest of the request."""
        ...

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned:
        """The tool's answer; the host fills in the number and, if necessary, the id.

        The request's path is the calling agent's name, or "": the host turns it into a path of the ledger.
        """
        ...

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Make this error end the trial, even if it is swallowed; returns it to be raised."""
        ...

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run gets to the same place."""
        ...

    def begin(self, place: str) -> None:
        """Note that work at this place begins, perhaps again; repeated questions get their recorded answers."""
        ...

    @property
    def is_answered(self) -> bool:
        """Whether one model answers in place of all that are asked here."""
        ...


FindHost = Callable[[], Host | None]
RefuseStray = Callable[[object, str], None]

_finders: list[tuple[FindHost, RefuseStray]] = []


def tool_host(origin: object, name: str) -> Host | None:
    """The host that answers this tool call; None: no rehearsal applies here, and the tool may run.

    Raises a `Refusal` where tools must not be called: in metrics and hooks, and in work of no case
    while a rehearsal is open.
    """
    for find, refuse in _finders:
        if (host := find()) is not None:
            return host
        refuse(origin, name)
    return None


def model_host() -> Host | None:
    """The host that answers a model call made here; None: the model is asked as it is.

    When models ask each other, only the outermost has a host: one question, one answer.
    """
    if is_asked():
        return None
    for find, _ in _finders:
        if (host := find()) is not None:
            return host
    return None


def find_hosts_by(find: FindHost, refuse: RefuseStray) -> None:
    """Set the function that finds the host of the running work, and the one that refuses tool calls without a host."""
    if (find, refuse) not in _finders:
        _finders.append((find, refuse))


# Tool bodies that are called directly

Guard = Callable[[object, str], None]
Route = Callable[[Any, tuple[Any, ...], dict[str, Any]], object]
"""A function of a tool and its arguments that returns the result of the call."""

_route: ContextVar[Route | None] = ContextVar("greenroom_body_route", default=None)

_guard: Final = carried(ContextVar[Guard | None]("greenroom_body_guard", default=None))
_everywhere: list[Guard] = []


def check_direct_call(origin: object, name: str) -> None:
    """Let the guard of this context, or else every guard, refuse a body that is called without the World."""
    guard = _guard.get()
    if guard is not None:
        guard(origin, name)
        return
    for everywhere in _everywhere:
        everywhere(origin, name)


def guard_here() -> Guard | None:
    """The guard of tools that are called directly in this context, and in no other."""
    return _guard.get()


def guarded(guard: Guard) -> "ContextSetting[Guard | None]":
    """Ask `guard` before any tool body runs that was called directly in this context."""
    return ContextSetting(_guard, guard)


def route_of_calls() -> Route | None:
    """The route that answers tools that are called directly in this context, if there is one."""
    return _route.get()


def answered_by(route: Route | None) -> "ContextSetting[Route | None]":
    """Let `route` answer every tool that is called directly in this context; None: they run."""
    return ContextSetting(_route, route)


def watch_everywhere(guard: Guard) -> None:
    """Ask `guard` in every context without its own guard, including threads without context."""
    if guard not in _everywhere:
        _everywhere.append(guard)


# Of which run

_STORED: Final = carried(ContextVar[str]("greenroom_stored_run", default=""))


def stored_run() -> str:
    """The run of the store that the current trial belongs to; empty if nothing is stored."""
    return _STORED.get()


def stored_as(run_id: str) -> "ContextSetting[str]":
    """Count what runs in this context as a trial of this run of the store."""
    return ContextSetting(_STORED, run_id)
