"""Where a piece of work stands towards the fence: inside an enclosure, in a passage, or neither.

One context variable says it. Tasks, timers and callbacks inherit it from whoever made them;
`carrying` does the same for threads.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from threading import Lock, get_ident, local
from typing import Final, Self

from greenroom.ledger.records import record
from greenroom.world.presence import Host

# A helper thread that retries for hours must not fill the memory with its refusals.
_STRAYS_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Breach:
    """An attempt to reach the outside that was refused: by which route, whereto, from where."""

    route: str
    target: str
    where: str
    of: str = ""
    """The case whose work it was, if that was over."""

    def __str__(self) -> str:
        return f"{self.route} {self.target!r}" + (f" at {self.where}" if self.where else "")


@record(frozen=False, eq=False)
class FencedScope:
    """One case's fenced stretch of work. Its first breach stays on record.

    `on_breach` is called once, with that first breach, before the attempt is refused; it may be
    called on any thread. A breach by work that outlived the case is recorded but not announced.
    `body_guard` is asked before a tool body runs that this work calls past the World. `host` answers
    the agents of frameworks that run inside it; without one their tools are refused too.
    `on_stray` is called with each refusal of work that belongs to no case: who is open then cannot
    be cleared of it.
    """

    name: str
    on_breach: Callable[[Breach], None] | None = None
    breach: Breach | None = None
    body_guard: Callable[[object, str], None] | None = None
    host: Callable[[], Host] | None = None
    on_stray: Callable[[Breach], None] | None = None
    is_void: bool = False
    """Whether it answers for nothing any more: what was born inside belongs to no case then."""
    _stage: object = None
    _token: "Token[Standing] | None" = None

    def open(self, task: object = None) -> "Token[Standing]":
        """Fence this context in; a task with one of its own has nothing to put back at its end."""
        opened[self] = None
        self._stage = task or _stage()
        return standing.set(self)

    def __enter__(self) -> Self:
        self._token = self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._token is not None:
            _put_back(self._token)

    def close(self) -> None:
        """Declare the case over, whatever of it may still run; that stays fenced."""
        opened.pop(self, None)
        self._stage = None

    def refusals(self, breach: Breach) -> None:
        """Keep the first breach and announce it; one that comes after the case is a stray too."""
        with _latching:
            first, self.breach = self.breach is None, self.breach or breach
        if self not in opened:
            _note(replace(breach, of=self.name))
        elif first and self.on_breach is not None:
            self.on_breach(breach)

    def hosts(self, stage: object) -> bool:
        """Whether this enclosure was opened by the task (or bare thread) called `stage`."""
        return self._stage == stage


class RunScope:
    """Work that belongs to no case and must not act, such as a hook: its enclosure answers for it.

    Unlike a case it fences nobody else.
    """

    __slots__ = ("_enclosure", "_token")

    def __init__(self, scope: FencedScope) -> None:
        self._enclosure = scope

    def __enter__(self) -> None:
        self._token = standing.set(self._enclosure)

    def __exit__(self, *_: object) -> None:
        _put_back(self._token)


class Opening:
    """An opening in the fence for the work in this context, for as long as it lasts.

    What is born inside and lives on finds the fence closed again: a passage that is over counts
    for nothing, and the one around it, or the enclosure, decides.
    """

    __slots__ = ("_token", "known", "open", "outer")

    hosts: frozenset[str] | None = None
    """Those it leads to, or None for everybody."""
    processes = False
    """Whether processes may be started."""
    _places: tuple[tuple[str, int], ...] = ()

    def __enter__(self) -> None:
        # All of it here, for each model call goes through one: there is nothing else to be made.
        self.known: set[tuple[str, object]] = set()
        self.outer: Standing = standing.get()
        self.open = True
        self._token = standing.set(self)

    def __exit__(self, *_: object) -> None:
        self.open = False
        if self.known:
            in_flight.discard(self)
        try:
            standing.reset(self._token)
        except ValueError:
            return  # as `_put_back` says, without a call of its own

    def admits(self, host: str, port: object = None) -> bool:
        """Whether this passage leads to that host: named, looked up by its name, or unlimited."""
        if self.hosts is None or host in self.hosts or (host, port) in self.known:
            return True
        # A name must be looked up before anybody can connect to a port of it.
        return any(host == name and port in (None, known) for name, known in self._places)

    def note(self, host: str, port: object) -> None:
        """Remember where this passage leads; threads without context may follow it there."""
        self.known.add((host, port))
        # Only our own errands lead others: the hosts of a live tool are for that tool alone.
        if self.hosts is None:
            in_flight.add(self)


class LimitedOpening(Opening):
    """A passage to the hosts named, if any are, and to processes only if asked."""

    def __init__(self, hosts: Iterable[str] | None, processes: bool) -> None:
        self.hosts = None if hosts is None else frozenset(plain_host(host) for host in hosts)
        self._places = _places(self.hosts) if self.hosts else ()
        self.processes = processes


class LastingOpening(LimitedOpening):
    """A passage that stays open to what is born inside it: the author's own errands."""

    def __init__(self) -> None:
        super().__init__(None, processes=True)

    def __exit__(self, *_: object) -> None:
        _put_back(self._token)


Standing = FencedScope | Opening | None

standing: Final[ContextVar[Standing]] = ContextVar("greenroom_standing", default=None)
threads: Final = local()
"""Holds the `mark` of a thread that was born in a case, or works for one."""
opened: Final[dict[FencedScope, None]] = {}
in_flight: Final[set[Opening]] = set()
_strays: Final[list[Breach]] = []
_latching: Final = Lock()


def mark_here() -> Standing:
    """Where the running work stands; code that emptied its context stands where its thread does."""
    mark = standing.get()
    return getattr(threads, "mark", None) if mark is None else mark


def current() -> Standing:
    """What holds for the running work now: the innermost passage still open, or the enclosure."""
    mark = mark_here()
    while isinstance(mark, Opening) and not mark.open:
        mark = mark.outer
    return None if isinstance(mark, FencedScope) and mark.is_void else mark


def fenced() -> bool:
    """Whether the fence has a say here: a rehearsal is open, or this work was born inside one."""
    return bool(opened) or _enclosure_of(mark_here()) is not None


def answerable() -> FencedScope | None:
    """The enclosure that has to answer for the running work, or None when nobody can tell."""
    scope = _enclosure_of(mark_here())
    if scope is not None:
        return scope
    # Code that emptied its context still runs in the task that opened the enclosure.
    stage = _stage()
    return next((e for e in reversed(tuple(opened)) if e.hosts(stage)), None)


def followed(host: str, port: object = None) -> bool:
    """Whether an unlimited passage that is open somewhere leads to exactly this place."""
    return any((host, port) in opening_for.known for opening_for in tuple(in_flight))


def strays() -> tuple[Breach, ...]:
    """Refusals no open case answers for, since the first rehearsal of this process, in order.

    Whoever wants those of a stretch of time takes what has come to be added in it.
    """
    return tuple(_strays)


def stray(breach: Breach) -> None:
    """Keep a refusal that belongs to no case, and tell all that are open."""
    _note(breach)
    for scope in tuple(opened):
        if scope.on_stray is not None:
            scope.on_stray(breach)


def _note(breach: Breach) -> None:
    if len(_strays) < _STRAYS_KEPT:
        _strays.append(breach)


def plain_host(host: object) -> str:
    """A host as it is compared: text, lower case, without the final dot."""
    text = host.decode("latin-1") if isinstance(host, bytes | bytearray) else str(host)
    return text.lower().rstrip(".")


def _places(hosts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Those given as `host:port`, which lead to that port alone."""
    split = (host.rpartition(":") for host in hosts)
    return tuple((name.strip("[]"), int(port)) for name, _, port in split if _is_place(name, port))


def _is_place(name: str, port: str) -> bool:
    # A bare IPv6 address has colons too, and no port.
    return port.isdecimal() and bool(name) and (":" not in name or name.startswith("["))


def _enclosure_of(mark: Standing) -> FencedScope | None:
    while isinstance(mark, Opening):
        mark = mark.outer
    return None if mark is None or mark.is_void else mark


def _stage() -> object:
    try:
        return asyncio.current_task() or get_ident()
    except RuntimeError:
        return get_ident()


def _put_back(token: Token[Standing]) -> None:
    try:
        standing.reset(token)
    except ValueError:
        # Left in another context than entered (a generator closed by someone else): the context
        # it was entered in is not ours to touch from here, and being over is remembered anyway.
        return
