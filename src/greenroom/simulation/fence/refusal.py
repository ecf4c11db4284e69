"""Saying no: what may be reached from here, and how an attempt is recorded and refused."""

import errno
import os
from typing import Any, Final, NoReturn, cast

from greenroom.errors import FenceBreach
from greenroom.simulation.fence.probes import is_exporter, is_probe, where
from greenroom.simulation.fence.scope import (
    Breach,
    FencedScope,
    Opening,
    answerable,
    current,
    followed,
    plain_host,
    stray,
)

_REMEDY: Final = "Mock the tool that does this, or hand it over as live(tool, hosts=[…])."
_STRAY_REMEDY: Final = (
    "No case started this work, so every case that is open ends as an error. Stop it while you "
    "rehearse, start it from inside the case, or rehearse in worker processes."
)


def may_reach(host: str, port: object = None) -> bool:
    """Whether the running work may talk to this place; a passage remembers where it led."""
    mark = current()
    if isinstance(mark, Opening):
        admitted = mark.admits(host, port)
        if admitted:
            mark.note(host, port)
        return admitted
    return mark is None and followed(host, port)


def may_start_processes() -> bool:
    """Whether a passage for processes is open here."""
    mark = current()
    return isinstance(mark, Opening) and mark.processes


def refuse(route: str, target: str) -> NoReturn:
    """Record the attempt, then refuse it; the record stands whatever becomes of the exception."""
    if is_probe() or is_exporter():
        refuse_quietly(route, target)
    breach = Breach(route, target, where())
    scope = answerable()
    if scope is None:
        stray(breach)
    else:
        scope.refusals(breach)
    raise FenceBreach(_told(breach, scope))


def refuse_quietly(route: str, target: str) -> NoReturn:
    """Refuse without holding it against anybody."""
    raise PermissionError(errno.EPERM, f"{route} is closed during a rehearsal", target)


def place(address: Any) -> tuple[str, object]:
    """Host and port of a socket's address; a path stands for itself."""
    if isinstance(address, tuple):
        host, *rest = cast(tuple[object, ...], address)
        return plain_host(host), rest[0] if rest else None
    return os.fsdecode(address) if isinstance(address, bytes) else str(address), None


def shown(host: str, port: object) -> str:
    """A place as people write it."""
    if port is None:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _told(breach: Breach, scope: FencedScope | None) -> str:
    if scope is None:
        told = f"another task of this process tried {breach} while a rehearsal was open"
        return f"{told}; it was refused. {_STRAY_REMEDY}"
    return f"a rehearsal stays inside: {breach} was refused in case {scope.name!r}. {_REMEDY}"
