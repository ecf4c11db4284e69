"""The patches of the fence: it goes up once in a process, and reports where it cannot hold."""

import asyncio
import asyncio.selector_events
import socket
import sys
from contextlib import suppress
from contextvars import Context
from functools import partial
from pkgutil import resolve_name
from threading import Lock
from typing import Final

from greenroom.backends.seams import hold, missing_seams, refuse_second_copies_by, stand
from greenroom.simulation.fence import clusters, loops
from greenroom.simulation.fence.generators import (
    carrying_hooks,
    carrying_shutdown,
    hold_generators,
)
from greenroom.simulation.fence.refusal import check_second_copy, check_tool, host_here
from greenroom.simulation.fence.routes import (
    GUARDS,
    Wrap,
    guarded,
    guarded_fork_exec,
    guarded_interpreter,
    guarded_sendfile,
    hook,
    remembering_accepts,
    remembering_lookups,
)
from greenroom.simulation.fence.scope import FencedScope, scope_var
from greenroom.simulation.fence.threads import (
    carrying_callback,
    carrying_joinable_start,
    carrying_register,
    carrying_start,
    carrying_submit,
)
from greenroom.world.call_context import find_hosts_by, watch_everywhere

# Functions without an audit event, or that lose the context. Not every Python has all of these.
_PATCHES: Final[tuple[tuple[str, str, Wrap], ...]] = (
    ("_thread", "start_new_thread", carrying_start),
    ("_thread", "start_new", carrying_start),
    ("_thread", "start_joinable_thread", carrying_joinable_start),
    ("threading", "_start_new_thread", carrying_start),
    ("threading", "_start_joinable_thread", carrying_joinable_start),
    ("concurrent.futures.thread:ThreadPoolExecutor", "submit", carrying_submit),
    ("concurrent.futures._base:Future", "add_done_callback", carrying_callback),
    ("atexit", "register", carrying_register),
    ("sys", "set_asyncgen_hooks", carrying_hooks),
    ("asyncio.base_events:BaseEventLoop", "shutdown_asyncgens", carrying_shutdown),
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
    ("_xxsubinterpreters", "create", guarded_interpreter),
    ("_xxsubinterpreters", "run_string", guarded_interpreter),
    ("_interpreters", "create", guarded_interpreter),
    ("_interpreters", "call", guarded_interpreter),
    ("_interpreters", "exec", guarded_interpreter),
    ("_interpreters", "run_func", guarded_interpreter),
    ("_interpreters", "run_string", guarded_interpreter),
)

# The modules that bring sockets of their own, and the library that each is of.
_OWN_SOCKETS: Final = {
    "grpc._cython.cygrpc": "grpc",
    "pycurl": "pycurl",
    "curl_cffi._wrapper": "curl_cffi",
    "zmq.backend.cython._zmq": "pyzmq",
    "pycares": "pycares",
    "psycopg_binary": "psycopg",
    "psycopg_c": "psycopg",
    "psycopg.pq.pq_ctypes": "psycopg",
    "psycopg2._psycopg": "psycopg2",
    "MySQLdb._mysql": "MySQLdb",
    "_mysql_connector": "mysql.connector",
    "pymssql": "pymssql",
    "pyodbc": "pyodbc",
    "duckdb": "duckdb",
    "polars": "polars",
    "pyarrow._s3fs": "pyarrow",
    "deltalake": "deltalake",
    "lancedb": "lancedb",
    "primp": "primp",
    "hf_xet": "hf_xet",
    "confluent_kafka.cimpl": "confluent_kafka",
    "ray._raylet": "ray",
    "mpi4py.MPI": "mpi4py",
    "uvloop.loop": "uvloop",
    "rloop._rloop": "rloop",
    "winloop.loop": "winloop",
    "temporalio.bridge": "temporalio",
    "obstore._obstore": "obstore",
    "hf_transfer": "hf_transfer",
    "av._core": "av",
}

_PLATFORMS: Final = ("linux", "darwin")
_SELF_TEST: Final = "greenroom.fence"


def _patch(module: str) -> None:
    """Patch what a module has, or has again."""
    for owner, name, wrap in _PATCHES:
        if owner.partition(":")[0] == module:
            with suppress(ImportError, AttributeError):
                home: object = resolve_name(owner)
                setattr(home, name, wrap(getattr(home, name)))


class _Installation:
    """Whether the fence is up, and whether its audit hook was called when it went up."""

    def __init__(self) -> None:
        self.up = False
        self.heard = False
        self.socket_class: type = socket.socket
        self._installing = Lock()

    def put_up(self) -> None:
        with self._installing:
            if self.up:
                return
            for module in {owner.partition(":")[0]: None for owner, _, _ in _PATCHES}:
                _patch(module)
                hold(module, partial(_patch, module))
            refuse_second_copies_by(check_second_copy)
            watch_everywhere(check_tool)
            find_hosts_by(host_here, check_tool)
            clusters.watch()
            loops.watch()
            stand()
            sys.addaudithook(hook)
            Context().run(self._listen)
            self.up = True

    def _listen(self) -> None:
        # A hook that was there before may silently turn ours away, so raise an event of our own, as
        # if from inside a case.
        scope_var.set(FencedScope(_SELF_TEST))
        GUARDS[_SELF_TEST] = self._hear
        sys.audit(_SELF_TEST)

    def _hear(self, *_: object) -> None:
        self.heard = True


_installation: Final = _Installation()


def put_up() -> None:
    """Put the fence up now, open, instead of with the first rehearsal.

    Connections that came in before are known by the port they came in at, as long as this process
    listens there.
    """
    if not _installation.up:
        _installation.put_up()
    hold_generators()


def not_held(loop: asyncio.AbstractEventLoop) -> tuple[str, ...]:
    """Why the fence cannot hold rehearsals on this loop; empty when it holds."""
    put_up()
    reasons: list[str] = []
    if sys.platform not in _PLATFORMS or sys.implementation.name != "cpython":
        here = f"{sys.implementation.name} on {sys.platform}"
        reasons.append(
            f"{here} is not known to report every connection; use CPython on Linux or macOS"
        )
    if not isinstance(loop, asyncio.selector_events.BaseSelectorEventLoop):
        kind = f"{type(loop).__module__}.{type(loop).__qualname__}"
        reasons.append(f"{kind} connects without asking Python; run on asyncio's own event loop")
    if not _installation.heard:
        reasons.append("another audit hook of this process turned the fence's away")
    socket_class: type = socket.socket
    if not issubclass(socket_class, _installation.socket_class):
        reasons.append(
            f"socket.socket was replaced by {socket_class.__module__}; rehearse without it"
        )
    return (*reasons, *missing_seams())


def blind_spots() -> tuple[str, ...]:
    """Loaded libraries whose own sockets, in C, no in-process fence can see."""
    loaded = (name for module, name in _OWN_SOCKETS.items() if module in sys.modules)
    return tuple(dict.fromkeys(loaded))
