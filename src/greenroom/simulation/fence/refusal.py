"""What is refused, and how: which code asks, what may be reached from here, how an attempt is recorded.

Harmless probes of libraries are refused like everything else, but no case answers for them: each asks
the system a question on the way to something else, and works without the answer.
"""

import asyncio
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from msgspec.structs import replace

from greenroom.errors import FenceBreach, ToolRefused
from greenroom.simulation.fence.scope import (
    Breach,
    Opening,
    answerable,
    current_scope,
    fenced,
    followed,
    importing_here,
    keep_stray,
    open_scopes,
    stray,
)
from greenroom.simulation.remedies import CALL, SECOND_COPY, mend_breach
from greenroom.world.call_context import Host

_STRAY_REMEDY: Final = (
    "No case started this work, so every case that is open ends as an error. Stop it while you "
    "rehearse, start it from inside the case, or rehearse in worker processes."
)


def may_reach(host: str, port: object = None) -> bool:
    """Whether the running work may talk to this place; an opening remembers where it led."""
    scope = current_scope()
    if isinstance(scope, Opening):
        admitted = scope.admits(host, port)
        if admitted:
            scope.note(host, port)
        return admitted
    return scope is None and followed(host, port)


def refuse(route: str, target: str) -> NoReturn:
    """Record the attempt, then refuse it; the record is kept even if the exception is caught."""
    if is_probe() or is_exporter():
        refuse_quietly(route, target)
    breach = Breach(route, target, where())
    scope = answerable()
    if scope is None:
        raise FenceBreach(_stray(breach, _STRAY_REMEDY))
    scope.record_breach(breach)
    raise FenceBreach(
        f"a rehearsal has no access to the outside: {breach} was refused in case "
        f"{scope.name!r}. {mend_breach(route)}"
    )


def refuse_quietly(route: str, target: str) -> NoReturn:
    """Refuse, and record nothing: no case has to answer for it."""
    raise PermissionError(errno.EPERM, f"{route} is closed during a rehearsal", target)


def check_tool(origin: object, name: str) -> None:
    """Refuse a tool that is called without any World, unless the scope of this work lets it run.

    | the work that calls | what happens |
    |---|---|
    | of a case | its host answers: mock, named body or refusal |
    | of a metric or hook | refused by the guard of its scope |
    | of a function that makes an agent, or of what closes one | refused; it is a breach of its scope |
    | of no case, while a rehearsal is open | refused; every open case ends as an error |
    | of no case, and none is open | nothing: the tool runs |
    """
    scope = answerable()
    if scope is not None:
        if scope.body_guard is not None:
            scope.body_guard(origin, name)
            return
        scope.record_breach(breach := Breach(CALL, name, where()))
        raise ToolRefused(
            f"{scope.name} tried {breach}, where no case answers; it was not run. Call tools from the "
            f"agent."
        )
    if fenced():
        remedy = "No case started this work, so every case that is open ends as an error."
        raise ToolRefused(_stray(Breach(CALL, name, where()), remedy))


def _stray(breach: Breach, remedy: str) -> str:
    """Record a refusal that no case answers for; returns what is said about it."""
    begun_by = importing_here()
    stray(replace(breach, begun_by=begun_by))
    if not begun_by:
        return f"another task of this process tried {breach} while a rehearsal was open; it was refused. {remedy}"
    return (
        f"what the {begun_by} started tried {breach}; it was refused, because the file was imported for a "
        f"rehearsal. Start it in the agent or in a tool."
    )


def note_late_call(name: str, case_id: str) -> None:
    """Keep a tool call of work that a case left behind: no verdict can say it, so it is a fault of the run."""
    keep_stray(Breach(CALL, name, where(), of=case_id))


def check_second_copy(module: str) -> None:
    """Refuse to load a framework's module again in a rehearsal: the gate holds the first copy."""
    if fenced():
        refuse(SECOND_COPY, module)


def host_here() -> Host | None:
    """The host that answers for agents that are started in the running work."""
    scope = answerable()
    return scope.host() if scope is not None and scope.host is not None else None


# Whose code asks

# Modules that start `uname`, `ldconfig`, `gcc`, `lsb_release`, `ifconfig` and the like, and never
# call back into the code that asked them.
_PROBING_MODULES: Final = frozenset({"platform", "ctypes.util", "distro.distro", "uuid"})
_PROBING_FUNCTIONS: Final = frozenset(
    {
        ("socket", "getfqdn"),
        # A lock starts a process that would clean up after it; without a child there is nothing
        # to clean up.
        ("multiprocessing.synchronize", "SemLock.__init__"),
    }
)
# Libraries that send traces and usage figures to their makers, by the prefix of their modules. They are
# refused, but that says nothing about the agent.
_EXPORTERS: Final = (
    "agents.tracing.",
    "ddtrace.",
    "langfuse.",
    "langsmith.",
    "logfire.",
    "mlflow.tracing.",
    "openinference.",
    "opentelemetry.exporter.",
    "opentelemetry.sdk.",
    "phoenix.otel",
    "posthog.",
    "sentry_sdk.",
)
_RUN_CALLBACK: Final = asyncio.Handle._run.__code__
# From the refusal up to the probe lie at most subprocess.run, Popen and two helpers.
_DEPTH: Final = 16

_DEBUGGER: Final = "_pydevd_bundle"
_OURS: Final = str(Path(__file__).parents[2]) + os.sep
_LIBRARY: Final = str(Path(os.__file__).parent) + os.sep
_PACKAGES: Final = ("site-packages", "dist-packages")


def _runs_cases(callback: Any) -> bool:
    """Whether the loop of a callback is one on which a case is open."""
    return any(scope.was_opened_on(callback._loop) for scope in tuple(open_scopes))


def is_probe() -> bool:
    """Whether the running code is a library's harmless probe."""
    return any(_probes(frame) for frame, _ in zip(_frames(), range(_DEPTH), strict=False))


def is_exporter() -> bool:
    """Whether a library's own thread is about to send traces to its makers."""
    last = None
    for frame in _frames():
        if is_authors(frame):
            return False
        last = frame if _module(frame).startswith(_EXPORTERS) else last
    return last is not None


def is_debugger() -> bool:
    """Whether a debugger is about to talk to its window: that traffic is not the case's."""
    caller = next((f for f in _frames() if not _is_library(f)), None)
    return caller is not None and _module(caller).startswith(_DEBUGGER)


def where() -> str:
    """The nearest line of the author's own code, as `file.py:12 in name`; empty if none ran."""
    for frame in _frames():
        if is_authors(frame):
            return line_of(frame)
        if frame.f_code is _RUN_CALLBACK and _runs_cases(frame.f_locals["self"]):
            break  # what comes next began the loop: it is waiting for the whole run
    return ""


def line_of(frame: FrameType) -> str:
    """A line of code, as `file.py:12 in name`."""
    code = frame.f_code
    return f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_qualname}"


def _frames() -> Iterator[FrameType]:
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        yield frame
        frame = frame.f_back


def _probes(frame: FrameType) -> bool:
    module, name = _module(frame), frame.f_code.co_qualname
    return (
        module in _PROBING_MODULES
        or (module, name) in _PROBING_FUNCTIONS
        or (module == "logging.handlers" and name.startswith("SysLogHandler."))
    )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_library(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return path.startswith((_OURS, "<frozen ")) or (
        path.startswith(_LIBRARY) and not any(name in path for name in _PACKAGES)
    )


def is_authors(frame: FrameType) -> bool:
    """Whether it runs neither Python's code, nor ours, nor that of an installed package."""
    path = frame.f_code.co_filename
    return not (_is_library(frame) or any(name in path for name in _PACKAGES))
