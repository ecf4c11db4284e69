"""The ways out that raise an audit event, and the answer the fence gives on each.

An event that is not listed costs one look into a dict.
"""

import os
import shlex
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, cast

from greenroom.simulation.fence.connections import Call, check_sending, note_connection
from greenroom.simulation.fence.refusal import (
    may_reach,
    may_start_processes,
    place,
    refuse,
    refuse_quietly,
    shown,
)
from greenroom.simulation.fence.scope import (
    FencedScope,
    current,
    fenced,
    mark_here,
    opened,
    plain_host,
)

Args = tuple[Any, ...]
Guard = Callable[[str, Args], None]

_SHOWN: Final = 200
_SYSTEM_LOGS: Final = frozenset({"/dev/log", "/var/run/syslog"})


def connecting(event: str, args: Args) -> None:
    """A socket connects, or sends a datagram to an address."""
    host, port = place(args[1])
    if not may_reach(host, port):
        if host in _SYSTEM_LOGS:
            refuse_quietly(event, host)
        refuse(event, shown(host, port))
    note_connection(args[0])


def sending(event: str, args: Args) -> None:
    """A message is sent, either to an address or on a connected socket."""
    if args[1] is None:
        check_sending(args[0], event)
    else:
        connecting(event, args)


def looking_up(event: str, args: Args) -> None:
    """A name is looked up, or an address's name."""
    host, _ = place(args[0]) if event == "socket.getnameinfo" else (plain_host(args[0] or ""), None)
    if event == "socket.getaddrinfo" and _is_known_without_asking(host):
        return
    if may_reach(host):
        return
    # Programs ask for their own address by their own name, much as getfqdn() does.
    if event == "socket.gethostbyname" and host == plain_host(socket.gethostname()):
        refuse_quietly(event, host)
    refuse(event, host)


def starting(event: str, args: Args) -> None:
    """A process is started, or this one becomes another."""
    if not may_start_processes():
        refuse(event, _command(args))


def logging_to_the_system(event: str, _: Args) -> None:
    """The C library's syslog: closed to cases, and no reason to end one."""
    if isinstance(current(), FencedScope):
        refuse_quietly(event, "syslog")


GUARDS: Final[dict[str, Guard]] = {
    "socket.connect": connecting,
    "socket.sendto": sending,
    "socket.sendmsg": sending,
    "socket.getaddrinfo": looking_up,
    "socket.gethostbyname": looking_up,
    "socket.gethostbyaddr": looking_up,
    "socket.getnameinfo": looking_up,
    "subprocess.Popen": starting,
    "os.system": starting,
    "os.exec": starting,
    "os.fork": starting,
    "os.forkpty": starting,
    "os.posix_spawn": starting,
    "os.spawn": starting,
    "os.startfile": starting,
    "os.startfile/2": starting,
    "pty.spawn": starting,
    "webbrowser.open": starting,
    "syslog.openlog": logging_to_the_system,
    "syslog.syslog": logging_to_the_system,
}


def hook(event: str, args: Args) -> None:
    """The audit hook: asks the guard of a way out whether the running work may take it."""
    guard = GUARDS.get(event)
    if guard is not None and (opened or mark_here() is not None) and fenced():
        guard(event, args)


def guarded_fork_exec(real: Call) -> Call:
    """Wrap `_posixsubprocess.fork_exec`: multiprocessing calls it without an audit event."""

    @wraps(real)
    def fork_exec(*args: Any) -> Any:
        if fenced():
            starting("_posixsubprocess.fork_exec", args)
        return real(*args)

    return fork_exec


def _is_known_without_asking(host: str) -> bool:
    """Numbers and `localhost` are turned into addresses without asking anybody."""
    if host in ("", "localhost"):
        return True
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            return bool(socket.inet_pton(family, host.partition("%")[0]))
    return False


def _command(args: Args) -> str:
    """The command line among an event's arguments: the longest of its first two."""
    return max(map(_words, args[:2]), key=len, default="")[:_SHOWN]


def _words(arg: Any) -> str:
    if isinstance(arg, list | tuple):
        return shlex.join(map(_words, cast(Sequence[object], arg)))
    return os.fsdecode(arg) if isinstance(arg, str | bytes | Path) else ""
