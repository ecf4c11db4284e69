"""The ground the fence stands on: putting it up once, and saying where it cannot stand."""

import asyncio
import asyncio.selector_events
import socket
import sys
from contextlib import suppress
from contextvars import Context
from pkgutil import resolve_name
from threading import Lock
from typing import Any, Final

from greenroom.backends.seams import missing_seams, stand
from greenroom.simulation.fence.connections import (
    Wrap,
    guarded,
    guarded_sendfile,
    remembering_accepts,
    remembering_lookups,
)
from greenroom.simulation.fence.routes import GUARDS, guarded_fork_exec, hook
from greenroom.simulation.fence.scope import FencedScope, standing
from greenroom.simulation.fence.threads import (
    carrying_joinable_start,
    carrying_register,
    carrying_start,
    carrying_submit,
)
from greenroom.simulation.fence.tools import watch_tools

# What has no audit event, or loses the context. Not every Python has every one of these.
_PATCHES: Final[tuple[tuple[str, str, Wrap], ...]] = (
    ("_thread", "start_new_thread", carrying_start),
    ("_thread", "start_new", carrying_start),
    ("_thread", "start_joinable_thread", carrying_joinable_start),
    ("threading", "_start_new_thread", carrying_start),
    ("threading", "_start_joinable_thread", carrying_joinable_start),
    ("concurrent.futures.thread:ThreadPoolExecutor", "submit", carrying_submit),
    ("atexit", "register", carrying_register),
    ("_posixsubprocess", "fork_exec", guarded_fork_exec),
    ("subprocess", "_fork_exec", guarded_fork_exec),
    ("socket", "getaddrinfo", remembering_lookups),
    ("socket:socket", "accept", remembering_accepts),
    ("socket:socket", "send", guarded("socket.send")),
    ("socket:socket", "sendall", guarded("socket.sendall")),
    ("ssl:SSLSocket", "do_handshake", guarded("ssl.do_handshake")),
    ("ssl:SSLSocket", "send", guarded("ssl.send")),
    ("ssl:SSLSocket", "write", guarded("ssl.write")),
    ("os", "sendfile", guarded_sendfile),
)

# Libraries that bring their own sockets, by the module that holds them.
_OWN_SOCKETS: Final = {
    "grpc": "grpc._cython.cygrpc",
    "pycurl": "pycurl",
    "curl_cffi": "curl_cffi._wrapper",
    "pyzmq": "zmq.backend.cython._zmq",
    "pycares": "pycares",
    "psycopg": "psycopg_binary",
    "psycopg2": "psycopg2._psycopg",
}

_PLATFORMS: Final = ("linux", "darwin")
_SELF_TEST: Final = "greenroom.fence"


class _Installation:
    """Whether the fence is up, and whether its hook was heard when it went up."""

    def __init__(self) -> None:
        self.up = False
        self.heard = False
        self.socket_class: type = socket.socket
        self._raising = Lock()

    def put_up(self) -> None:
        with self._raising:
            if self.up:
                return
            for owner, name, wrap in _PATCHES:
                _patch(owner, name, wrap)
            watch_tools()
            stand()
            sys.addaudithook(hook)
            Context().run(self._listen)
            self.up = True

    def _listen(self) -> None:
        # A hook that was there before may silently turn ours away, so ask it something, as from
        # inside an enclosure that nobody opened.
        standing.set(FencedScope(_SELF_TEST))
        GUARDS[_SELF_TEST] = self._hear
        sys.audit(_SELF_TEST)

    def _hear(self, *_: object) -> None:
        self.heard = True


def _patch(owner: str, name: str, wrap: Wrap) -> None:
    with suppress(ImportError, AttributeError):
        home: Any = resolve_name(owner)
        setattr(home, name, wrap(getattr(home, name)))


_footing: Final = _Installation()


def put_up() -> None:
    """Put the fence up now, open, instead of with the first rehearsal.

    Connections that came in before are known by the port they came in at, as long as this process
    listens there.
    """
    if not _footing.up:
        _footing.put_up()


def not_held(loop: asyncio.AbstractEventLoop) -> tuple[str, ...]:
    """Why the fence cannot hold rehearsals on this loop; empty when it holds."""
    put_up()
    return tuple(filter(None, (_platform(), _loop(loop), _hook(), _sockets(), *missing_seams())))


def blind_spots() -> tuple[str, ...]:
    """Loaded libraries whose own sockets, in C, no in-process fence can see."""
    return tuple(name for name, module in _OWN_SOCKETS.items() if module in sys.modules)


def _platform() -> str:
    if sys.platform in _PLATFORMS and sys.implementation.name == "cpython":
        return ""
    here = f"{sys.implementation.name} on {sys.platform}"
    return f"{here} is not known to report every connection; use CPython on Linux or macOS"


def _loop(loop: asyncio.AbstractEventLoop) -> str:
    if isinstance(loop, asyncio.selector_events.BaseSelectorEventLoop):
        return ""
    kind = f"{type(loop).__module__}.{type(loop).__qualname__}"
    return f"{kind} connects without asking Python; run on asyncio's own event loop"


def _hook() -> str:
    return "" if _footing.heard else "another audit hook of this process turned the fence's away"


def _sockets() -> str:
    now: type = socket.socket
    if issubclass(now, _footing.socket_class):
        return ""
    return f"socket.socket was replaced by {now.__module__}; rehearse without it"
