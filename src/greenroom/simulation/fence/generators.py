"""Async generators that a case leaves suspended end as work of that case, whatever ends them.

Python ends one as it collects it, an event loop those that are left when it closes: in a context that knows
of no case, perhaps when no fence is up any more. So each one that begins in a case is kept here with its
context until it is over, and those that the author wrote end with the run at the latest.
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

from greenroom.simulation.fence.routes import Call
from greenroom.simulation.fence.scope import is_of_case, scope_var

_PATIENCE: Final = 1.0
"""Seconds in which one must have ended when its loop closes."""
_FEW: Final = 16

Suspended = AsyncGeneratorType[Any, Any]
Hook = Callable[[Suspended], object]

ENDING: Final = ContextVar[bool]("greenroom_ends_generator", default=False)
"""Set in the tasks that close a generator."""


class Begun(Struct, frozen=True, eq=False):
    """An async generator that began in a case."""

    generator: ReferenceType[Suspended]
    context: Context
    loop: object
    last: Hook
    """What Python calls with it when it collects it; a loop's makes a task that closes it."""

    def end(self, generator: Suspended) -> None:
        """Have it closed as work of its case."""
        _begun.pop(id(generator), None)
        self.context.run(ENDING.set, True)
        self.context.run(self.last, generator)


_begun: Final[dict[int, Begun]] = {}
"""By the generator's id: when Python collects one, no weak reference leads to it any more."""


class _Generators:
    """How many may be in `_begun` before those that are over are looked for."""

    most = _FEW


class _Held(partial[None]):
    """A hook of a loop that this file has wrapped."""


def carrying_hooks(real: Call) -> Call:
    """Wrap `sys.set_asyncgen_hooks`, which every event loop calls as it begins and ends to run."""

    @wraps(real)
    def set_asyncgen_hooks(*hooks: Hook | None, **named: Hook | None) -> None:
        first, last = (*hooks, *(named.get(name) for name in ("firstiter", "finalizer")))[:2]
        if first is None or last is None or isinstance(first, _Held):
            real(*hooks, **named)
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
    if not is_of_case(scope_var.get()):
        _begun.pop(id(generator), None)
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # such as trio's
        loop = None
    _begun[id(generator)] = Begun(ref(generator), copy_context(), loop, last)
    if len(_begun) > _Generators.most:
        forget_ended()
        _Generators.most = 2 * len(_begun) + _FEW


def _end(last: Hook, generator: Suspended) -> None:
    begun = _begun.get(id(generator))
    if begun is None:
        last(generator)
    else:
        begun.end(generator)


def forget_ended() -> None:
    """Let go of those that are over: their contexts hold all that their cases were made of."""
    for key, begun in tuple(_begun.items()):
        generator = begun.generator()
        if generator is None or generator.ag_frame is None:
            _begun.pop(key, None)


def suspended(loop: object) -> Iterator[tuple[Begun, Suspended]]:
    """Those of this loop that wait for someone to take the next value, in the order in which they began."""
    for begun in tuple(_begun.values()):
        generator = begun.generator()
        if begun.loop is not loop or generator is None:
            continue
        if generator.ag_frame is not None and not generator.ag_running:
            yield begun, generator


def carrying_shutdown(real: Call) -> Call:
    """Wrap `shutdown_asyncgens` of event loops, which closes every generator that they know."""

    @wraps(real)
    async def shutdown_asyncgens(loop: asyncio.AbstractEventLoop) -> None:
        for begun, generator in suspended(loop):
            closing = loop.create_task(generator.aclose(), context=begun.context)
            await asyncio.wait({closing}, timeout=_PATIENCE)
        forget_ended()
        await real(loop)

    return shutdown_asyncgens
