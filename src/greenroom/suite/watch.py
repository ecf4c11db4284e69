"""The watch over a run: it names code that blocks the event loop, and notes refusals of the fence."""

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Final, Self
from weakref import WeakSet

from greenroom.errors import GreenroomError, Refusal
from greenroom.results.report import FAULT
from greenroom.simulation.fence import (
    Breach,
    blind_spots,
    is_authors,
    is_of_closed_case,
    lent_executor,
    line_of,
    not_held,
    strays,
    suspended,
)
from greenroom.simulation.hangs.deadlines import context_of
from greenroom.simulation.hangs.generators import ending_generators
from greenroom.simulation.hangs.leftovers import used_by
from greenroom.simulation.hangs.stalls import Stall
from greenroom.simulation.hangs.watchdog import keep_watching, sweep_cut_work
from greenroom.simulation.outside_trials import CalledApart

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

_LOG = logging.getLogger("greenroom")
_MOST_NOTES = 20
_noted: Final[WeakSet[object]] = WeakSet()
_reported: Final[set[int]] = set()
"""Refusals that are in a report, by identity: they are kept as long as the process lasts."""

Note = Callable[[str], None]


@asynccontextmanager
async def watched(note: Note, owner: object = None) -> AsyncGenerator[None]:
    """Watch all that runs inside; `owner` identifies it to `cut_all`.

    Work that blocks the event loop for a second is logged at once, and noted.
    """
    blockers = Blockers(note)
    with RareCollection(), keep_watching(owner, blockers.add), lent_executor():
        try:
            async with ending_generators():
                yield
        finally:
            await sweep_cut_work()


class Blockers:
    """What blocked the event loop of a run, each reported once."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._reported: set[str] = set()

    def add(self, stall: Stall) -> None:
        """Report code that blocks the loop; called in a thread of the watchdog."""
        if stall.is_news:
            self.report(describe_stall(stall))

    def report(self, text: str) -> None:
        """Log it now, and note it for the report."""
        if text in self._reported or len(self._reported) > _MOST_NOTES:
            return
        self._reported.add(text)
        if len(self._reported) > _MOST_NOTES:
            text = "the event loop was blocked by more than that; the rest is not listed"
        _LOG.warning(text)
        self._note(text)


def describe_stall(stall: Stall) -> str:
    """A note about work that blocks the event loop."""
    from greenroom.reports.words import printable  # loaded where it is used

    who = stall.who or "code of no case"
    where = f", at {stall.where}" if stall.where else ""
    return printable(
        f"{who} blocked the event loop for more than a second{where}. The time limits of everything that ran alongside "
        f"it were paused for that time; its reported seconds include it. Await what takes "
        f"long, put it into asyncio.to_thread, or run it in worker processes."
    )


_OBJECTS = 50_000
"""New objects between two garbage collections. Python's default of 700 would collect in every other case,
which takes a tenth of a plain one and more with a framework, whose heap is large."""

_open: list["RareCollection"] = []
_before: list[tuple[int, int, int]] = []


class RareCollection:
    """Collect garbage rarely while open; the last one to close restores the earlier setting."""

    def __enter__(self) -> Self:
        if not _open:
            _before.append(gc.get_threshold())
            first, second, third = _before[0]
            # A threshold of zero means that collection is switched off.
            gc.set_threshold(max(first, _OBJECTS) if first else 0, second, third)
        _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open.remove(self)
        if not _open:
            gc.set_threshold(*_before.pop())


def fence_gaps() -> list[str]:
    """What the fence cannot hold here, and what it cannot see."""
    reasons = not_held(asyncio.get_running_loop())
    return [
        *(f"the fence was not held: {reason}" for reason in reasons),
        *(
            f"the fence cannot see connections of {name}"
            for name in blind_spots()
            if not _is_only_the_hosts(name)
        ),
    ]


_HOSTS = {
    "psycopg": ("psycopg", "greenroom.store.postgres"),
    "pyzmq": ("zmq", "ipykernel", "jupyter_client", "IPython"),
}
"""A library with its own sockets: its package, and the code that connects with it outside of any case.

A store on a server does that, and so does the kernel of a notebook.
"""

_CODE = (type, ModuleType, FunctionType, MethodType)


def _is_only_the_hosts(library: str) -> bool:
    """Whether only Greenroom and what runs it have loaded a library, so that it is not a gap in the fence."""
    package, *hosts = _HOSTS.get(library, ("",))
    if not any(host in sys.modules for host in hosts):
        return False
    ours = (package, *hosts)
    others = [module for name, module in [*sys.modules.items()] if not name.startswith(ours)]
    return not any(
        str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).startswith(
            package
        )
        for module in others
        for value in [*getattr(module, "__dict__", {}).values()]
        # By its type: there are hundreds of thousands, and `isinstance` has a proxy load what it stands for.
        if issubclass(type(value), _CODE)
    )


def leftovers() -> list[str]:
    """Notes on what the agents of cases left behind and may still act; each is noted once."""
    return [*_waiting_tasks(), *_suspended_generators()]


def _waiting_tasks() -> list[str]:
    tasks = asyncio.all_tasks().difference(_noted)
    waiting = [task for task in tasks if is_of_closed_case(context_of(task))]
    _noted.update(waiting)
    frames = [frame for task in waiting for frame in task.get_stack(limit=1) if is_authors(frame)]
    return [
        f"a task that a case left behind was still waiting when the run ended, at {place}: what it would have "
        f"done is not recorded. Let the agent await it, if that matters"
        for place in sorted({line_of(frame) for frame in frames})
    ]


def _suspended_generators() -> list[str]:
    """Context managers are entered to be left later, and what a task uses is noted with the task: not these."""
    left = [
        generator
        for begun, generator in suspended(asyncio.get_running_loop())
        if generator not in _noted and not begun.is_resource and is_of_closed_case(begun.context)
    ]
    used = {id(it) for task in asyncio.all_tasks() if left for it in used_by(task)}
    _noted.update(left)
    frames = [generator.ag_frame for generator in left if id(generator) not in used]
    return [
        f"an async generator that a case left suspended was still held when the run ended, at {place}: what it "
        f"would have done is not recorded. Let the agent close it, if that matters"
        for place in sorted({line_of(frame) for frame in frames if frame and is_authors(frame)})
    ]


async def closed(middleware: "MiddlewareStack") -> list[str]:
    """Close middleware inside the fence, after the last trial; a note if that failed."""
    try:
        with CalledApart("middleware", "while it was closed"):
            await middleware.close()
    except Refusal:
        return []  # it is among the refusals, as a fault of the run
    except GreenroomError as error:
        return [str(error)]
    return []


def refusals_since(since: int) -> list[str]:
    """Notes on what the fence refused to code of no open trial, after the first `since` refusals: faults.

    What imported files started may have been refused before: that is the fault of the first run that notes it.
    """
    before, later = strays()[:since], strays()[since:]
    begun = [breach for breach in before if breach.begun_by and id(breach) not in _reported]
    _reported.update(id(breach) for breach in (*begun, *later))
    return list(dict.fromkeys(_describe(breach) for breach in (*begun, *later)))


def _describe(breach: Breach) -> str:
    if breach.begun_by:
        return f"{FAULT}what the {breach.begun_by} started tried {breach}; it was refused"
    whose = f"work that case {breach.of!r} left behind" if breach.of else "work of no case"
    return f"{FAULT}{whose} tried {breach} during the run; it was refused"
