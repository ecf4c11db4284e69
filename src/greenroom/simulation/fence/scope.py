"""Where the fence is open: whether a piece of work is in a fenced scope, in an opening, or in neither.

One context variable says it. Tasks, timers and callbacks inherit it from the work that made them;
`threads` does the same for threads.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import Context, ContextVar, Token
from threading import Lock, get_ident, local
from typing import Any, Final, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from greenroom.world.call_context import Host, carried

# A helper thread that retries for hours must not fill the memory with its refusals.
_STRAYS_KEPT: Final = 10_000


class Breach(Struct, frozen=True):
    """An attempt to reach the outside that was refused: by which route, where to, from where."""

    route: str
    target: str
    where: str
    of: str = ""
    """The case whose work it was, if that was over."""
    begun_by: str = ""
    """The import that began the work, if it was an import of the author's file."""

    def __str__(self) -> str:
        target = f" {self.target!r}" if self.target else ""
        return f"{self.route}{target}" + (f" at {self.where}" if self.where else "")


class FencedScope(Struct, eq=False):
    """One case's fenced stretch of work. Its first breach stays on record.

    `on_breach` is called once, with that first breach, before the attempt is refused; it may be
    called on any thread. A breach by work that outlived the case is recorded but not announced.
    `body_guard` is asked before a tool body runs that this work calls without the World; without one
    none runs. `host` answers the agents of frameworks that run inside it; without one their tools are
    refused too.
    `on_stray` is called with each refusal of work that belongs to no case: any case that is open then
    may have started that work.
    """

    name: str
    on_breach: Callable[[Breach], None] | None = None
    breach: Breach | None = None
    body_guard: Callable[[object, str], None] | None = None
    host: Callable[[], Host] | None = None
    on_stray: Callable[[Breach], None] | None = None
    is_void: bool = False
    """Whether it no longer answers for anything: what was born inside belongs to no case then."""
    is_closed_in: bool = False
    """Whether what was born inside stays fenced nevertheless, even while no case is open."""
    around: Literal["case", "call", "run"] = "case"
    """What it is around: a case, one call of code that belongs to no case, or a run, whose trials begin inside."""
    _opener: object = None
    _token: "Token[AnyScope] | None" = None

    def open(self, task: object = None) -> "Token[AnyScope]":
        """Fence this context in; a task with its own context has nothing to restore at its end."""
        open_scopes[self] = None
        self._opener = task or _task_or_thread()
        return scope_var.set(self)

    def __enter__(self) -> Self:
        self._token = self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._token is not None:
            _put_back(self._token)

    def close(self) -> None:
        """Declare the case over; work of it that still runs stays fenced."""
        open_scopes.pop(self, None)
        self._opener = None

    @contextmanager
    def held(self) -> Generator[None]:
        """Keep the fence up for work of no case as well, as an open case does."""
        open_scopes[self] = None
        try:
            yield
        finally:
            open_scopes.pop(self, None)

    def record_breach(self, breach: Breach) -> None:
        """Keep the first breach and announce it; one that comes after the case is a stray too."""
        with _recording:
            first, self.breach = self.breach is None, self.breach or breach
        if self.around != "case":
            keep_stray(breach)
        elif self not in open_scopes:
            keep_stray(replace(breach, of=self.name))
        elif first and self.on_breach is not None:
            self.on_breach(breach)

    def was_opened_by(self, task_or_thread: object) -> bool:
        """Whether that task (or bare thread) opened this scope."""
        return self._opener == task_or_thread

    def was_opened_on(self, loop: object) -> bool:
        """Whether a task of that loop opened this scope."""
        task: Any = self._opener
        return isinstance(task, asyncio.Task) and task.get_loop() is loop


class RunScope:
    """Work that belongs to no case and must not act, such as a hook: its fenced scope answers for it.

    Unlike a case it fences no other work.
    """

    __slots__ = ("_token", "scope")

    def __init__(self, scope: FencedScope) -> None:
        self.scope = scope

    def __enter__(self) -> None:
        self._token = scope_var.set(self.scope)

    def __exit__(self, *_: object) -> None:
        _put_back(self._token)


class Opening:
    """An opening in the fence for the work in this context, for as long as it lasts.

    Work that is born inside and outlives the opening finds the fence closed again: an opening that is over
    no longer counts, and the one around it, or the fenced scope, decides.
    """

    __slots__ = ("_token", "known", "open", "outer")

    hosts: frozenset[str] | None = None
    """Those it leads to, or None for all."""
    processes = False
    """Whether processes may be started."""
    _places: tuple[tuple[str, int], ...] = ()

    def __enter__(self) -> None:
        self.known: set[tuple[str, object]] = set()
        self.outer: AnyScope = scope_var.get()
        self.open = True
        self._token = scope_var.set(self)

    def __exit__(self, *_: object) -> None:
        self.open = False
        if self.known:
            in_flight.discard(self)
        _put_back(self._token)

    def admits(self, host: str, port: object = None) -> bool:
        """Whether this opening leads to that host: named, looked up by its name, or unlimited."""
        if self.hosts is None or host in self.hosts or (host, port) in self.known:
            return True
        if (host, port) == way_out.get("proxy"):
            return True  # the proxy; the hosts asked of it are checked with each request
        # A name must be looked up before a port of it can be connected to.
        return any(host == name and port in (None, known) for name, known in self._places)

    def note(self, host: str, port: object) -> None:
        """Remember where this opening leads; threads without context may follow it there."""
        self.known.add((host, port))
        # Only our own calls lead others: the hosts of a live tool are for that tool alone.
        if self.hosts is None:
            in_flight.add(self)


class LimitedOpening(Opening):
    """An opening to the hosts named, if any are, and to processes only if asked."""

    def __init__(self, hosts: Iterable[str] | None, processes: bool) -> None:
        self.hosts = None if hosts is None else frozenset(plain_host(host) for host in hosts)
        self._places = _places(self.hosts) if self.hosts else ()
        self.processes = processes


class LastingOpening(LimitedOpening):
    """An opening that lasts for what is born inside it: code of the author's, such as a hook."""

    def __init__(self) -> None:
        super().__init__(None, processes=True)

    def __exit__(self, *_: object) -> None:
        _put_back(self._token)


AnyScope = FencedScope | Opening | None

scope_var: Final[ContextVar[AnyScope]] = ContextVar("greenroom_fence", default=None)
mocking_var: Final = carried(ContextVar[tuple[str, ...]]("greenroom_mocking", default=()))
"""The tools whose mocks are running here, outermost first."""
threads: Final = local()
"""Holds the `scope` of a thread that was born in a case, or works for one."""
way_out: Final[dict[str, tuple[str, int]]] = {}
"""Holds the `proxy` through which all connections of this process lead, if they do."""
open_scopes: Final[dict[FencedScope, None]] = {}
in_flight: Final[set[Opening]] = set()
_strays: Final[list[Breach]] = []
_recording: Final = Lock()


def lead_through(port: int) -> None:
    """From now on every connection of this process leads through the proxy at this port."""
    way_out["proxy"] = ("127.0.0.1", port)


def scope_here() -> AnyScope:
    """The scope of the running work; code that emptied its context has that of its thread."""
    scope = scope_var.get()
    return getattr(threads, "scope", None) if scope is None else scope


def current_scope() -> AnyScope:
    """The scope that decides for the running work now: the innermost open opening, or the fenced scope."""
    scope = scope_here()
    while isinstance(scope, Opening) and not scope.open:
        scope = scope.outer
    return None if isinstance(scope, FencedScope) and scope.is_void else scope


def fenced() -> bool:
    """Whether the fence applies here: a rehearsal is open, or this work was born inside one."""
    scope = _enclosing(scope_here())
    return bool(open_scopes) or (scope is not None and (scope.is_closed_in or not scope.is_void))


def answerable() -> FencedScope | None:
    """The fenced scope that has to answer for the running work, or None when it cannot be known."""
    scope = _fenced_scope(scope_here())
    if scope is not None:
        return scope
    # Code that emptied its context still runs in the task that opened the scope.
    running = _task_or_thread()
    return next((s for s in reversed(tuple(open_scopes)) if s.was_opened_by(running)), None)


def is_of_closed_case(context: Context) -> bool:
    """Whether the work in this context belongs to a case that is over."""
    return closed_case(context) is not None


def closed_case(context: Context) -> FencedScope | None:
    """The scope of the case, if it is over, that the work in this context belongs to."""
    scope = _fenced_scope(context.get(scope_var))
    return scope if is_of_case(scope) and scope not in open_scopes else None


def importing_here() -> str:
    """The import of an author's file that began the running work and is over; "" if none did."""
    scope = _enclosing(scope_here())
    return scope.name if scope is not None and scope.is_closed_in else ""


def followed(host: str, port: object = None) -> bool:
    """Whether an unlimited opening that lasts somewhere leads to exactly this place."""
    return any((host, port) in opening.known for opening in tuple(in_flight))


def strays() -> tuple[Breach, ...]:
    """Refusals that no open case answers for, since the first rehearsal of this process, in order."""
    return tuple(_strays)


def stray(breach: Breach) -> None:
    """Keep a refusal that belongs to no case, and announce it to all that are open."""
    keep_stray(breach)
    for scope in tuple(open_scopes):
        if scope.on_stray is not None:
            scope.on_stray(breach)


def keep_stray(breach: Breach) -> None:
    """Keep a refusal that no open case answers for, up to a limit."""
    if len(_strays) < _STRAYS_KEPT:
        _strays.append(breach)


def plain_host(host: object) -> str:
    """A host as it is compared: text, lower case, without the final dot."""
    text = host.decode("latin-1") if isinstance(host, bytes | bytearray) else str(host)
    return text.lower().rstrip(".")


def is_of_case(scope: AnyScope) -> bool:
    """Whether work in this scope is part of a case, open or over."""
    enclosing = _fenced_scope(scope)
    return enclosing is not None and enclosing.around == "case"


def _places(hosts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Those given as `host:port`, which lead to that port alone."""
    found: list[tuple[str, int]] = []
    for host in hosts:
        name, _, port = host.rpartition(":")
        # A bare IPv6 address has colons too, and no port.
        if port.isdecimal() and name and (":" not in name or name.startswith("[")):
            found.append((name.strip("[]"), int(port)))
    return tuple(found)


def _fenced_scope(scope: AnyScope) -> FencedScope | None:
    scope = _enclosing(scope)
    return None if scope is None or scope.is_void else scope


def _enclosing(scope: AnyScope) -> FencedScope | None:
    while isinstance(scope, Opening):
        scope = scope.outer
    return scope


def _task_or_thread() -> object:
    try:
        return asyncio.current_task() or get_ident()
    except RuntimeError:
        return get_ident()


def _put_back(token: Token[AnyScope]) -> None:
    try:
        scope_var.reset(token)
    except ValueError:
        # Left in another context than entered (a generator closed by someone else): the context
        # it was entered in is not ours to touch from here, and being over is remembered anyway.
        return
