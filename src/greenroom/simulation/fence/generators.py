"""Async generators that a case leaves suspended end as work of that case, whatever ends them.

Python ends one as it collects it, an event loop those that are left when it closes: in a context that knows
of no case, perhaps when no fence is up any more. So each one that begins in a case is kept here with its
context until it is over. Once the case is over, a context that knows only whose work it was takes its place.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar, copy_context
from functools import partial, wraps
from types import AsyncGeneratorType
from typing import Any, Final
from weakref import ReferenceType, ref

from msgspec import Struct
from msgspec.structs import replace

from greenroom.simulation.fence.routes import Call
from greenroom.simulation.fence.scope import FencedScope, closed_case, is_of_case, scope_var

_PATIENCE: Final = 1.0
"""Seconds in which all must have ended when their loop closes, and then in which those that are late must."""
_FEW: Final = 16

Suspended = AsyncGeneratorType[Any, Any]
Hook = Callable[[Suspended], object]

ENDING: Final = ContextVar[bool]("greenroom_ends_generator", default=False)
"""Set in the tasks that close a generator."""
RUN: Final = ContextVar[object]("greenroom_generators_of", default=None)
"""The run whose cases begin generators here."""


class Begun(Struct, frozen=True, eq=False):
    """An async generator that began in a case."""

    key: int
    """The generator's id: when Python collects it, no weak reference leads to it any more."""
    generator: ReferenceType[Suspended]
    context: Context
    loop: object
    last: Hook
    """What Python calls with it when it collects it; a loop's makes a task that closes it."""
    is_resource: bool
    """Whether it is the inside of an `@asynccontextmanager`."""

    @property
    def is_over(self) -> bool:
        """Whether the generator has ended, or is gone."""
        generator = self.generator()
        return generator is None or generator.ag_frame is None

    def end(self, generator: Suspended) -> None:
        """Have it closed as work of its case."""
        self.context.run(ENDING.set, True)
        self.context.run(self.last, generator)


class _Kept(dict[int, Begun]):
    """By the key of each; in the order in which they came."""

    _most = _FEW

    def add(self, begun: Begun) -> None:
        """Keep one more. Those that are over are looked for whenever the number has doubled."""
        self[begun.key] = begun
        if len(self) > self._most:
            for kept in self.snapshot():
                if kept.is_over:
                    self.drop(kept)
            self._most = 2 * len(self) + _FEW

    def drop(self, begun: Begun) -> None:
        """Let go of it, unless another generator has its key by now."""
        if self.get(begun.key) is begun:
            self.pop(begun.key, None)

    def snapshot(self) -> list[Begun]:
        """All of them, whatever Python collects and other threads begin meanwhile."""
        while True:
            try:
                return list(self.values())
            except RuntimeError:
                continue


_begun: Final = _Kept()
"""Those of cases that may be open. Their contexts hold all that their cases are made of."""
_left: Final = _Kept()
"""Those of cases that are over."""


class _Held(partial[None]):
    """A hook of a loop that this file has wrapped."""


def carrying_hooks(real: Call) -> Call:
    """Wrap `sys.set_asyncgen_hooks`, which every event loop calls as it begins and ends to run."""

    @wraps(real)
    def set_asyncgen_hooks(*hooks: Hook | None, **named: Hook | None) -> None:
        real(*hooks, **named)  # Python checks them, and one that is not given stays
        first, last = sys.get_asyncgen_hooks()
        if isinstance(first, _Held) and isinstance(last, _Held) and first.args[1:] == last.args:
            return
        first, last = (it.args[0] if isinstance(it, _Held) else it for it in (first, last))
        if first is None or last is None:
            real(first, last)
        else:
            real(_Held(_begin, first, last), _Held(_end, last))

    return set_asyncgen_hooks


def hold_generators() -> None:
    """Wrap the hooks of a loop that was running before `sys.set_asyncgen_hooks` was wrapped."""
    first, last = sys.get_asyncgen_hooks()
    if first is not None and not isinstance(first, _Held):
        sys.set_asyncgen_hooks(first, last)


def _begin(first: Hook, last: Hook, generator: Suspended) -> None:
    first(generator)
    key = id(generator)
    _begun.pop(key, None)
    _left.pop(key, None)
    if not is_of_case(scope_var.get()):
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # such as trio's
        loop = None
    # Python calls the hook from where the first value is asked for.
    asks = sys._getframe(1).f_globals.get("__name__")  # pyright: ignore[reportPrivateUsage]
    _begun.add(Begun(key, ref(generator), copy_context(), loop, last, asks == "contextlib"))


def _end(last: Hook, generator: Suspended) -> None:
    key = id(generator)
    begun = _begun.pop(key, None) or _left.pop(key, None)
    if begun is None:
        last(generator)
    else:
        begun.end(generator)


def release_cases() -> None:
    """Let go of what cases that are over were made of. Their generators that are not over stay theirs."""
    for begun in _begun.snapshot():
        # Held here, so that Python does not collect it halfway.
        generator = begun.generator()
        if generator is None or generator.ag_frame is None:
            _begun.drop(begun)
        elif (case := closed_case(begun.context)) is not None:
            context = Context()
            # Another scope of that name: the case's own leads to its world.
            context.run(scope_var.set, FencedScope(case.name))
            context.run(RUN.set, begun.context.get(RUN))
            _left.add(replace(begun, context=context))
            _begun.drop(begun)


def suspended(loop: object) -> Iterator[tuple[Begun, Suspended]]:
    """Those of this loop that wait for someone to take the next value, the outer before the inner."""
    for begun in (*_left.snapshot(), *_begun.snapshot()):
        generator = begun.generator()
        if begun.loop is not loop or generator is None:
            continue
        if generator.ag_frame is not None and not generator.ag_running:
            yield begun, generator


def carrying_shutdown(real: Call) -> Call:
    """Wrap `shutdown_asyncgens` of event loops, which closes every generator that they know."""

    @wraps(real)
    async def shutdown_asyncgens(loop: asyncio.AbstractEventLoop) -> None:
        closing: set[asyncio.Task[None]] = set()
        for begun, generator in suspended(loop):
            closing.add(loop.create_task(generator.aclose(), context=begun.context))
            await asyncio.sleep(0)  # an outer one may close the inner ones itself
        if closing:
            _, late = await asyncio.wait(closing, timeout=_PATIENCE)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_PATIENCE)
        release_cases()
        await real(loop)

    return shutdown_asyncgens
