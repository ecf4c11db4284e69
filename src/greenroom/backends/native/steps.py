"""How the function of a step is called."""

import inspect
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from greenroom.agents.flow import Step
from greenroom.errors import BadAgent
from greenroom.models.model import OnDelta, send_piece
from greenroom.world.call_context import placed
from greenroom.world.world import Context

if TYPE_CHECKING:
    from greenroom.backends.native.boundaries import FarCode
    from greenroom.backends.native.listeners import Outlet


async def call_step(
    step: Step,
    path: str,
    context: Context,
    outlet: "Outlet | None" = None,
    far: "FarCode | None" = None,
) -> Any:
    """What the function returns; if it yields strings, all of them joined, each passed on at once."""
    with placed(path):
        if far is not None:
            return await far.call(
                step.fn, context, path, wants=step.wants, name=step.name, outlet=outlet
            )
        output: Any = step.fn(**step.arguments(context))
        if isinstance(output, AsyncIterator):
            on_delta = outlet.open(path, True) if outlet is not None else None
            return await yielded(step.name, cast("AsyncIterator[object]", output), on_delta)
        return await output if inspect.isawaitable(output) else output


async def yielded(name: str, texts: AsyncIterator[object], on_delta: OnDelta | None) -> str:
    """What a step yields, joined; each piece is passed on at once."""
    found: list[str] = []
    async for text in texts:
        if not isinstance(text, str):
            raise BadAgent(
                f"step {name!r} yielded {text!r}; a step may only yield strings, the pieces of its text. "
                f"Return other values."
            )
        found.append(text)
        await send_piece(on_delta, text)
    return "".join(found)
