"""Talking on connections that exist already, which raises no audit event.

The rule. Work without an open passage may send
- on a pair of sockets made by `socketpair` (asyncio wakes itself up by one),
- on a connection this process accepted, before or after the fence went up: an answer to whoever
  came in is no errand,
- on a connection that a passage opened, if the work itself was born in a passage now over: a
  client's reader may finish handshakes and farewells, but nobody may borrow its connection,
- as a debugger, to its window;
and on nothing else, however old the connection is and whoever opened it. Work of no case at all
may also send where a passage in flight leads.
"""

import os
import socket
import ssl
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, cast
from weakref import WeakValueDictionary

from greenroom.simulation.fence.probes import is_debugger
from greenroom.simulation.fence.refusal import may_reach, place, refuse, shown
from greenroom.simulation.fence.scope import Opening, current, fenced, plain_host, standing

Call = Callable[..., Any]
Wrap = Callable[[Call], Call]
# Keyed by file descriptor, so that a socket is known under whichever object speaks for it.
_Known = WeakValueDictionary[int, socket.socket]

_accepted: Final[_Known] = WeakValueDictionary()
_opened_in_passage: Final[_Known] = WeakValueDictionary()


def check_sending(sock: socket.socket, route: str) -> None:
    """Refuse to send on this socket unless the rule above allows it."""
    mark = current()
    if isinstance(mark, Opening) and mark.hosts is None and mark.known:
        return
    peer = _peer(sock)
    if peer is None or _is_free_to_use(sock):
        return
    host, port = place(peer)
    if not (may_reach(host, port) or is_debugger()):
        refuse(route, shown(host, port))


def note_connection(sock: object) -> None:
    """Remember a socket that connects with our leave."""
    if isinstance(sock, socket.socket) and isinstance(current(), Opening):
        _opened_in_passage[sock.fileno()] = sock


def guarded(route: str) -> Wrap:
    """Wrap a method by which a connected socket speaks."""

    def wrap(real: Call) -> Call:
        @wraps(real)
        def speak(sock: socket.socket, *args: Any, **kwargs: Any) -> Any:
            if fenced():
                check_sending(sock, route)
            return real(sock, *args, **kwargs)

        return speak

    return wrap


def guarded_sendfile(real: Call) -> Call:
    """Wrap `os.sendfile`, which takes a bare file descriptor."""

    @wraps(real)
    def sendfile(out_fd: int, *args: Any, **kwargs: Any) -> Any:
        if fenced() and not _holds(_accepted, out_fd):
            _check_descriptor(out_fd)
        return real(out_fd, *args, **kwargs)

    return sendfile


def remembering_accepts(real: Call) -> Call:
    """Wrap `socket.accept`, so that answers to whoever came in are known as such."""

    @wraps(real)
    def accept(sock: socket.socket) -> Any:
        connection, address = real(sock)
        _accepted[connection.fileno()] = connection
        return connection, address

    return accept


def remembering_lookups(real: Call) -> Call:
    """Wrap `socket.getaddrinfo`, so that a passage to a name leads to that name's addresses."""

    @wraps(real)
    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        found = real(host, *args, **kwargs)
        mark = current()
        if isinstance(mark, Opening):
            for address, port in (place(entry[4]) for entry in found):
                # A passage to one port of a name does not lead to its others.
                if mark.admits(plain_host(host), port):
                    mark.note(address, port)
        return found

    return getaddrinfo


def _peer(sock: socket.socket) -> object:
    """The other end, or None where there is none or it is nameless, as in a pair."""
    try:
        return sock.getpeername() or None
    except OSError:
        return None


def _is_free_to_use(sock: socket.socket) -> bool:
    descriptor, mark = sock.fileno(), standing.get()
    if _holds(_accepted, descriptor) or (isinstance(sock, ssl.SSLSocket) and sock.server_side):
        return True
    if mark is None and _came_in(sock):
        _accepted[descriptor] = sock
        return True
    is_past_passage = isinstance(mark, Opening) and not mark.open
    return is_past_passage and _holds(_opened_in_passage, descriptor)


def _came_in(sock: socket.socket) -> bool:
    """Whether a connection older than the fence came in: this process listens on its own end's port.

    A connection that goes out has a port of its own, which nobody listens on.
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
    """The open descriptors of this process that are sockets, as far as the system tells."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return [
                int(entry.name) for entry in Path(folder).iterdir() if _is_socket(int(entry.name))
            ]
    return []


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _port(address: Any) -> object:
    """The port of an address; a path stands for itself."""
    if isinstance(address, tuple):
        return cast("tuple[object, ...]", address)[1]
    return address or None


def _holds(known: _Known, descriptor: int) -> bool:
    sock = known.get(descriptor)
    # A socket that was closed or handed on has no descriptor any more; its number may be reused.
    return sock is not None and sock.fileno() == descriptor


def _check_descriptor(descriptor: int) -> None:
    duplicate = os.dup(descriptor)
    try:
        sock = socket.socket(fileno=duplicate)
    except OSError:
        # A plain file: sending to it is no business of this fence.
        os.close(duplicate)
        return
    with sock:
        check_sending(sock, "os.sendfile")
