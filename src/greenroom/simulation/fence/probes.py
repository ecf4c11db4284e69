"""Harmless probes of libraries: refused like everything else, but held against nobody.

Each of these asks the system a question on the way to something else, and is written to go on
without the answer.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

# Modules that start `uname`, `ldconfig`, `gcc`, `lsb_release`, `ifconfig` and the like, and never
# call back into the code that asked them.
_PROBING_MODULES: Final = frozenset({"platform", "ctypes.util", "distro.distro", "uuid"})
_PROBING_FUNCTIONS: Final = frozenset(
    {
        ("socket", "getfqdn"),
        # A lock wants the process that would clean up after it; without a child there is nothing
        # to clean up.
        ("multiprocessing.synchronize", "SemLock.__init__"),
    }
)
# What sends traces and usage figures home, by the beginning of its modules. It is refused, but says
# nothing of the agent.
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
# From the refusal up to the probe lie at most subprocess.run, Popen and two helpers.
_DEPTH: Final = 16

_DEBUGGER: Final = "_pydevd_bundle"
_OURS: Final = str(Path(__file__).parents[2]) + os.sep
_LIBRARY: Final = str(Path(os.__file__).parent) + os.sep
_PACKAGES: Final = ("site-packages", "dist-packages")


def is_probe() -> bool:
    """Whether the running code is a library's harmless probe."""
    return any(_probes(frame) for frame, _ in zip(_frames(), range(_DEPTH), strict=False))


def is_exporter() -> bool:
    """Whether a library's own thread is about to send its traces home."""
    last = None
    for frame in _frames():
        if is_authors(frame):
            return False
        last = frame if _module(frame).startswith(_EXPORTERS) else last
    return last is not None


def is_debugger() -> bool:
    """Whether a debugger is about to talk to its window: that conversation is not the case's."""
    caller = next((f for f in _frames() if not _is_library(f)), None)
    return caller is not None and _module(caller).startswith(_DEBUGGER)


def where() -> str:
    """The nearest line of the author's own code, as `file.py:12 in name`; empty if none ran."""
    frame = next((f for f in _frames() if is_authors(f)), None)
    return "" if frame is None else shown(frame)


def shown(frame: FrameType) -> str:
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
