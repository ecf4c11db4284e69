"""The fence: while a rehearsal is open, this process reaches nobody outside.

Connecting, looking up names, sending, and starting processes are refused by default, at Python's
audit hooks and, where Python raises no event, at a handful of patched functions. Both are put up
by the first rehearsal, never by importing this, and let everything pass while none is open.

Who is refused, and who answers for it:

- Work inside an `enclose(...)`: refused. It is a breach of that enclosure, recorded before the
  exception is raised, because libraries swallow exceptions and try again.
- Work in a `opening_for(...)`: let through, to anybody or to the hosts named; processes only if asked.
- Work of no case (an older thread, an emptied context), while any rehearsal is open: refused, and
  noted among the `strays()`, unless it runs in the very task that opened an enclosure. It may reach
  a host and port that an unlimited passage in flight has reached, and nothing else.
- Work born inside an enclosure stays fenced after it. Work born inside a passage stands where the
  passage stood once that is over.
- Harmless probes of libraries (`platform`, `ctypes.util`, `distro`, `uuid`, `socket.getfqdn`,
  syslog) are refused with a plain `PermissionError` and held against nobody.
- Listening, accepting and answering are free; so are pairs of sockets, `localhost` and numbers as
  names to look up. `connections` says who may send on a connection that is open already.

What it cannot hold. It stands inside the process it guards and stops accidents, not sabotage:

- C code with sockets of its own: `ctypes`, gRPC's core, libpq, curl, ZeroMQ (`blind_spots()` names
  those loaded), and event loops such as uvloop's (`not_held(loop)` refuses those);
- another interpreter in this process, which has hooks and patches of its own, and so none;
- a socket's bare file descriptor: `os.write`, `os.writev`, a file opened on it, and methods of
  `_socket.socket` itself on a connection opened earlier;
- a process started earlier and fed through a pipe, and what a process let through then does;
- an older helper thread fed by a queue, if that thread works in a passage;
- a callback left with somebody else (signal handler, finalizer, hook, entry in a global list) or
  run in an emptied context, once the last rehearsal is over;
- code that sets our own variable, or undoes the patches;
- effects that need neither connection nor process, such as writing files.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from greenroom.simulation.fence.executor import FencedExecutor, fenced_executor, lent_executor
from greenroom.simulation.fence.installation import blind_spots, not_held, put_up
from greenroom.simulation.fence.scope import (
    Breach,
    FencedScope,
    LastingOpening,
    LimitedOpening,
    Opening,
    RunScope,
    answerable,
    fenced,
    strays,
)

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
    "fenced_executor",
    "lent_executor",
    "not_held",
    "opening_for",
    "put_up",
    "strays",
]


def enclose(
    name: str, on_breach: Callable[[Breach], None] | None = None
) -> AbstractContextManager[FencedScope]:
    """Rehearse what runs inside: nothing in this context, or born in it, reaches the outside."""
    put_up()
    return FencedScope(name, on_breach)


def opening_for(
    hosts: Iterable[str] | None = None, *, processes: bool = False
) -> AbstractContextManager[None]:
    """Open the fence for this context: to everybody, or only to the hosts named.

    For work that is ours (a model call, the store, an exporter) or that the author named (a live
    tool). The innermost passage decides. Do not leave one open across a `yield`.
    """
    return Opening() if hosts is None and not processes else LimitedOpening(hosts, processes)
