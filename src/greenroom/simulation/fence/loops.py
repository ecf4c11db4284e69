"""Event loops written in C: they look up names, connect and start processes without an audit event.

A rehearsal does not run on one, but a case may make one of its own, or hand work to one in another thread.
So the methods that lead outside are wrapped. Nobody sees what is sent on a connection that such a loop
made before.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from pkgutil import resolve_name
from typing import Any, Final

from greenroom.backends.seams import Call, add_seam
from greenroom.simulation.fence.routes import connecting, looking_up, starting
from greenroom.simulation.fence.scope import fenced

_Given = dict[str, Any]
"""What a method was given, by the names of its parameters."""
_Check = Callable[[str, _Given], None]


def watch() -> None:
    """Have the methods wrapped once uvloop is loaded."""
    add_seam(__name__, "uvloop", install=_install)


def _install() -> None:
    loop: Any = resolve_name("uvloop:Loop")
    for name, (check, parameters) in _CHECKS.items():
        route = f"uvloop.Loop.{name}"
        setattr(loop, name, _checked(getattr(loop, name), route, check, parameters))


def _checked(real: Call, route: str, check: _Check, names: Sequence[str]) -> Call:
    @wraps(real)
    def method(loop: object, *args: Any, **kwargs: Any) -> Any:
        if fenced():
            check(route, {**dict(zip(names, args, strict=False)), **kwargs})
        return real(loop, *args, **kwargs)

    return method


def _connecting(route: str, given: _Given) -> None:
    # A socket that is given was connected by Python, and refused there.
    if given.get("sock") is None:
        connecting(route, (None, (given.get("host") or "localhost", given.get("port"))))


def _connecting_to_a_path(route: str, given: _Given) -> None:
    if given.get("sock") is None:
        connecting(route, (None, given.get("path")))


def _opening_datagrams(route: str, given: _Given) -> None:
    # Without an address of the other end it may send to any.
    if given.get("sock") is None:
        connecting(route, (None, given.get("remote_addr") or ("", None)))


def _looking_up_a_name(_: str, given: _Given) -> None:
    looking_up("socket.getaddrinfo", (given.get("host"),))


def _looking_up_an_address(_: str, given: _Given) -> None:
    looking_up("socket.getnameinfo", (given.get("sockaddr"),))


def _starting(route: str, given: _Given) -> None:
    starting(route, (given.get("cmd", given.get("program")),))


_CHECKS: Final[dict[str, tuple[_Check, tuple[str, ...]]]] = {
    "create_connection": (_connecting, ("protocol_factory", "host", "port")),
    "create_unix_connection": (_connecting_to_a_path, ("protocol_factory", "path")),
    "create_datagram_endpoint": (
        _opening_datagrams,
        ("protocol_factory", "local_addr", "remote_addr"),
    ),
    "getaddrinfo": (_looking_up_a_name, ("host", "port")),
    "getnameinfo": (_looking_up_an_address, ("sockaddr", "flags")),
    "subprocess_exec": (_starting, ("protocol_factory", "program")),
    "subprocess_shell": (_starting, ("protocol_factory", "cmd")),
}
"""What is asked before a method runs, and its parameters by position: older versions of uvloop do not say them."""
