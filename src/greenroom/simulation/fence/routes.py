"""The ways out: connecting, sending, looking up names and starting processes, each with its guard.

Most raise an audit event; one that is not listed in `GUARDS` costs one look into a dict. Sending on a
connection that exists already raises none, so the methods that do it are patched. Work without an
opening may send
- on a pair of sockets made by `socketpair` (asyncio wakes itself up by one),
- on a connection this process accepted, before or after the fence went up: that only answers
  what came in,
- on a connection made in an opening, if the work itself was born in an opening that is over: a
  client's reader may finish handshakes and farewells, but no other work may use its connection,
- as a debugger, to its window;
and on nothing else, however old the connection is and whatever opened it. Work of no case at all
may also send where an opening that lasts leads.
"""

import os
import shlex
import socket
import ssl
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from greenroom.simulation.fence.refusal import is_debugger, may_reach, refuse, refuse_quietly
from greenroom.simulation.fence.scope import (
    FencedScope,
    Opening,
    current_scope,
    fenced,
    open_scopes,
    plain_host,
    scope_here,
    scope_var,
    way_out,
)

Args = tuple[Any, ...]
Guard = Callable[[str, Args], None]
Call = Callable[..., Any]
Wrap = Callable[[Call], Call]
# By file descriptor, so that a socket is recognised whichever object represents it.
_Known = WeakValueDictionary[int, socket.socket]

_accepted: Final[_Known] = WeakValueDictionary()
_made_in_opening: Final[_Known] = WeakValueDictionary()
_LONGEST_COMMAND: Final = 200
_SYSTEM_LOGS: Final = frozenset({"/dev/log", "/var/run/syslog"})


def hook(event: str, args: Args) -> None:
    """The audit hook: asks the guard of a way out whether the running work may take it."""
    # When the interpreter ends, it empties modules before the last files are closed.
    guard = GUARDS.get(event) if GUARDS else None
    if guard is not None and (open_scopes or scope_here() is not None) and fenced():
        guard(event, args)


def connecting(event: str, args: Args) -> None:
    """A socket connects, or sends a datagram to an address."""
    sock, (host, port) = args[0], _place(args[1])
    if not may_reach(host, port):
        if host in _SYSTEM_LOGS:
            refuse_quietly(event, host)
        refuse(event, _address(host, port))
    if isinstance(sock, socket.socket) and isinstance(current_scope(), Opening):
        _made_in_opening[sock.fileno()] = sock


def sending(event: str, args: Args) -> None:
    """A message is sent, either to an address or on a connected socket."""
    if args[1] is None:
        check_sending(args[0], event)
    else:
        connecting(event, args)


def looking_up(event: str, args: Args) -> None:
    """A name is looked up, or an address's name."""
    host = _place(args[0])[0] if event == "socket.getnameinfo" else plain_host(args[0] or "")
    if event == "socket.getaddrinfo" and _needs_no_lookup(host):
        return
    if may_reach(host):
        return
    # Programs ask for their own address by their own name, much as getfqdn() does.
    if event == "socket.gethostbyname" and host == plain_host(socket.gethostname()):
        refuse_quietly(event, host)
    refuse(event, host)


def starting(event: str, args: Args) -> None:
    """A process is started, or this one becomes another."""
    scope = current_scope()
    if not (isinstance(scope, Opening) and scope.processes):
        # The command line is the longest of the first two arguments.
        refuse(event, max(map(_words, args[:2]), key=len, default="")[:_LONGEST_COMMAND])


def logging_to_the_system(event: str, _: Args) -> None:
    """The C library's syslog: closed to cases, but no reason to end one."""
    if isinstance(current_scope(), FencedScope):
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
    "cpython.PyInterpreterState_New": starting,
    "syslog.openlog": logging_to_the_system,
    "syslog.syslog": logging_to_the_system,
}


def check_sending(sock: socket.socket, route: str) -> None:
    """Refuse to send on this socket unless the rule above allows it."""
    scope = current_scope()
    if isinstance(scope, Opening) and scope.hosts is None and scope.known:
        return
    try:
        peer = sock.getpeername()
    except OSError:
        return  # not connected
    # In a pair the other end has no name.
    if not peer or _is_free_to_use(sock):
        return
    host, port = _place(peer)
    if not (may_reach(host, port) or is_debugger()):
        refuse(route, _address(host, port))


def guarded_fork_exec(real: Call) -> Call:
    """Wrap `_posixsubprocess.fork_exec`: multiprocessing calls it without an audit event."""

    @wraps(real)
    def fork_exec(*args: object) -> object:
        if fenced():
            starting("_posixsubprocess.fork_exec", args)
        return real(*args)

    return fork_exec


def guarded(route: str) -> Wrap:
    """Wrap a method by which a connected socket sends."""

    def wrap(real: Call) -> Call:
        @wraps(real)
        def speak(sock: socket.socket, *args: object, **kwargs: object) -> Any:
            if fenced():
                check_sending(sock, route)
                if way_out and args:
                    _check_asked_for(sock, args[0], route)
            return real(sock, *args, **kwargs)

        return speak

    return wrap


def _check_asked_for(sock: socket.socket, data: Any, route: str) -> None:
    """Refuse to ask the proxy for a host that this opening does not lead to."""
    scope = current_scope()
    if not isinstance(scope, Opening) or scope.hosts is None:
        return
    place = None
    with suppress(OSError, TypeError):
        if _place(sock.getpeername()) == way_out["proxy"]:
            place = proxied_place(bytes(data[:4096]).partition(b"\r\n")[0])
    if place is not None and not scope.admits(*place):
        refuse(route, _address(*place))


def proxied_place(line: bytes) -> tuple[str, int] | None:
    """The host and port that the first line of a request asks a proxy for; None if it asks for none.

    A request inside a tunnel names only a path.
    """
    method, _, rest = line.decode("latin-1").partition(" ")
    target, _, version = rest.partition(" ")
    if not version.startswith("HTTP/"):
        return None
    is_tunnel = method == "CONNECT"
    with suppress(ValueError):
        place = urlsplit(f"//{target}" if is_tunnel else target)
        if place.hostname:
            return plain_host(place.hostname), place.port or (443 if is_tunnel else 80)
    return None


def guarded_sendfile(real: Call) -> Call:
    """Wrap `os.sendfile`, which takes a bare file descriptor."""

    @wraps(real)
    def sendfile(out_fd: int, *args: object, **kwargs: object) -> object:
        if fenced() and not _holds(_accepted, out_fd):
            _check_descriptor(out_fd)
        return real(out_fd, *args, **kwargs)

    return sendfile


def guarded_interpreter(real: Call) -> Call:
    """Wrap what makes another interpreter, or runs code in one: our hook and patches are not in there.

    Python 3.13 raises no event for it, and 3.12 crashes if the event is refused.
    """

    @wraps(real)
    def run(*args: object, **kwargs: object) -> Any:
        if fenced():
            starting(f"{real.__module__}.{real.__name__}", ())
        return real(*args, **kwargs)

    return run


def remembering_accepts(real: Call) -> Call:
    """Wrap `socket.accept`, so that answers on such a connection are known as such."""

    @wraps(real)
    def accept(sock: socket.socket) -> Any:
        connection, address = real(sock)
        _accepted[connection.fileno()] = connection
        return connection, address

    return accept


def remembering_lookups(real: Call) -> Call:
    """Wrap `socket.getaddrinfo`, so that an opening to a name leads to that name's addresses."""

    @wraps(real)
    def getaddrinfo(host: object, *args: object, **kwargs: object) -> Any:
        found = real(host, *args, **kwargs)
        scope = current_scope()
        if isinstance(scope, Opening):
            for address, port in (_place(entry[4]) for entry in found):
                # An opening to one port of a name does not lead to its others.
                if scope.admits(plain_host(host), port):
                    scope.note(address, port)
        return found

    return getaddrinfo


def _is_free_to_use(sock: socket.socket) -> bool:
    descriptor, scope = sock.fileno(), scope_var.get()
    if _holds(_accepted, descriptor) or (isinstance(sock, ssl.SSLSocket) and sock.server_side):
        return True
    if scope is None and _came_in(sock):
        _accepted[descriptor] = sock
        return True
    was_born_in_opening = isinstance(scope, Opening) and not scope.open
    return was_born_in_opening and _holds(_made_in_opening, descriptor)


def _came_in(sock: socket.socket) -> bool:
    """Whether a connection older than the fence came in: this process listens on its own end's port.

    An outgoing connection has its own port, on which nothing listens.
    """
    try:
        port = _port(sock.getsockname())
        return port is not None and port in _listened_ports()
    except OSError:
        return False


def _listened_ports() -> set[object]:
    """The ports, or paths, of this process's sockets that listen."""
    ports: set[object] = set()
    for descriptor in _descriptors():
        known = socket.socket(fileno=descriptor)
        try:
            if known.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                ports.add(_port(known.getsockname()))
        except OSError:
            continue  # closed meanwhile
        finally:
            known.detach()  # it is not ours to close
    return ports


def _descriptors() -> list[int]:
    """The open descriptors of this process that are sockets, as far as the system shows them."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            found = [int(entry.name) for entry in Path(folder).iterdir()]
            return [descriptor for descriptor in found if _is_socket(descriptor)]
    return []


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _port(address: object) -> object:
    """The port of an address; a path is returned as is."""
    if isinstance(address, tuple):
        return cast("tuple[object, ...]", address)[1]
    return address or None


def _holds(known: _Known, descriptor: int) -> bool:
    sock = known.get(descriptor)
    # A socket that was closed or detached no longer has a descriptor; its number may be reused.
    return sock is not None and sock.fileno() == descriptor


def _check_descriptor(descriptor: int) -> None:
    duplicate = os.dup(descriptor)
    try:
        sock = socket.socket(fileno=duplicate)
    except OSError:
        # A plain file: this fence does not concern it.
        os.close(duplicate)
        return
    with sock:
        check_sending(sock, "os.sendfile")


def _place(address: object) -> tuple[str, object]:
    """Host and port of a socket's address; a path is returned as is."""
    if isinstance(address, tuple):
        host, *rest = cast("tuple[object, ...]", address)
        return plain_host(host), rest[0] if rest else None
    return os.fsdecode(address) if isinstance(address, bytes) else str(address), None


def _address(host: str, port: object) -> str:
    """A place as people write it."""
    if port is None:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _needs_no_lookup(host: str) -> bool:
    """Numbers and `localhost` are turned into addresses without asking a server."""
    if host in ("", "localhost"):
        return True
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            return bool(socket.inet_pton(family, host.partition("%")[0]))
    return False


def _words(arg: object) -> str:
    if isinstance(arg, list | tuple):
        return shlex.join(map(_words, cast("Sequence[object]", arg)))
    return os.fsdecode(arg) if isinstance(arg, str | bytes | Path) else ""
