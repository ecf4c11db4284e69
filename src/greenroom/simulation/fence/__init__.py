"""The fence: while a rehearsal is open, this process reaches nothing outside.

Connecting, looking up names, sending, and starting processes are refused by default, at Python's
audit hooks and, where Python raises no event, at a handful of patched functions. Both are put up
by the first rehearsal, never by importing this, and let everything pass while none is open.

Four ideas, a file for each: `patches` (what is patched; `threads` carries the scope into threads,
`generators` to the end of async generators), `scope` (where it is open), `refusal` and `routes` (what is
refused), `requests` (what is read of requests: the keys in them). `kernel` closes a whole process in.
`clusters` is about work that is given to processes that are already running, `loops` about event loops
written in C.

What is refused, and which case answers for it:

- Work inside an `enclose(...)`: refused. It is a breach of that scope, recorded before the
  exception is raised, because libraries swallow exceptions and try again.
- Work in an `opening_for(...)`: let through, to all hosts or to those named; processes only if asked.
- Work of no case (an older thread, an emptied context), while any rehearsal is open: refused, and
  noted among the `strays()`, unless it runs in the very task that opened a fenced scope. It may reach
  a host and port that an unlimited opening has reached and lasts, and nothing else.
- Work born inside a fenced scope stays fenced after it. Work born inside an opening belongs to the
  scope around the opening once that is over.
- Harmless probes of libraries (`platform`, `ctypes.util`, `distro`, `uuid`, `socket.getfqdn`,
  syslog) are refused with a plain `PermissionError`, and no case answers for them.
- Listening, accepting and answering are free; so are pairs of sockets, `localhost` and numbers as
  names to look up. `routes` says what may be sent on a connection that is open already.

What it cannot hold. It is inside the process it guards and stops accidents, not sabotage:

- C code with its own sockets: `ctypes`, gRPC's core, libpq, curl, ZeroMQ (`blind_spots()` names
  those loaded), and what event loops such as uvloop's send on connections they made earlier
  (`not_held(loop)` refuses to rehearse on one);
- an interpreter made earlier in this process that works in its own thread, where neither hook nor
  patches are;
- a socket's bare file descriptor: `os.write`, `os.writev`, a file opened on it, and methods of
  `_socket.socket` itself on a connection opened earlier;
- a process started earlier and fed through a bare pipe, and what a process let through then does;
- an older helper thread fed by a queue, if that thread works in an opening;
- a callback left elsewhere (signal handler, finalizer, hook, entry in a global list) or
  run in an emptied context, once the last rehearsal is over;
- code that sets our own variable, or undoes the patches;
- effects that need neither connection nor process, such as writing files.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from greenroom.simulation.fence.generators import release_cases, suspended
from greenroom.simulation.fence.patches import blind_spots, not_held, put_up
from greenroom.simulation.fence.refusal import is_authors, line_of, note_late_call
from greenroom.simulation.fence.routes import proxied_place
from greenroom.simulation.fence.scope import (
    Breach,
    FencedScope,
    LastingOpening,
    LimitedOpening,
    Opening,
    RunScope,
    answerable,
    fenced,
    is_of_closed_case,
    lead_through,
    mocking_var,
    scope_var,
    strays,
)
from greenroom.simulation.fence.threads import FencedExecutor, lent_executor

__all__ = [
    "Breach",
    "FencedExecutor",
    "FencedScope",
    "LastingOpening",
    "Opening",
    "RunScope",
    "answerable",
    "blind_spots",
    "enclose",
    "fenced",
    "is_authors",
    "is_of_closed_case",
    "lead_through",
    "lent_executor",
    "line_of",
    "mocking_var",
    "not_held",
    "note_late_call",
    "opening_for",
    "proxied_place",
    "put_up",
    "release_cases",
    "strays",
    "suspended",
    "without_opening",
]

_NOTHING: Final = nullcontext()


def enclose(
    name: str, on_breach: Callable[[Breach], None] | None = None
) -> AbstractContextManager[FencedScope]:
    """Rehearse what runs inside: nothing in this context, or born in it, reaches the outside."""
    put_up()
    return FencedScope(name, on_breach)


def without_opening() -> AbstractContextManager[None]:
    """Close the openings around the running work: a tool that a model call or another tool calls has none of theirs."""
    scope = scope_var.get()
    if not isinstance(scope, Opening):
        return _NOTHING
    around = answerable()
    return _NOTHING if around is None else RunScope(around)


def opening_for(
    hosts: Iterable[str] | None = None, *, processes: bool = False
) -> AbstractContextManager[None]:
    """Open the fence for this context: to all hosts, or only to those named.

    For work that is ours (a model call, the store, an exporter) or that the author named (a live
    tool). The innermost opening decides. Do not leave one open across a `yield`.
    """
    return Opening() if hosts is None and not processes else LimitedOpening(hosts, processes)
