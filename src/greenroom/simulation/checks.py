"""What is refused before a case is played."""

import asyncio

from greenroom.backends.backend import Backend
from greenroom.errors import BadAgent, BadCase, FenceNotHeld
from greenroom.simulation.fence import answerable, not_held


def check_fence() -> None:
    """Refuse to play where the fence cannot hold."""
    reasons = not_held(asyncio.get_running_loop())
    if reasons:
        raise FenceNotHeld(
            f"the fence cannot hold here: {'; '.join(reasons)}. Use asyncio's own event loop, or "
            f"allow_unfenced=True to go on with the gate alone."
        )


def check_outermost() -> None:
    """Refuse a rehearsal inside another: its cases would answer to two gates at once."""
    around = answerable()
    if around is not None:
        raise BadCase(
            f"a rehearsal was begun inside case {around.name!r}. Rehearse from outside, and hand over "
            f"the agent that the case is about."
        )


def check_opaque(backend: Backend, allowed: bool) -> None:
    """Refuse an agent whose tools no gate can hold, unless somebody allowed that."""
    if backend.tool_calls == "opaque" and not allowed:
        raise BadAgent(
            f"the tools of an agent played by {backend.name!r} run where no gate can see or stop "
            f"them, so mocks do not reach them. Make sure that they act on nothing real, then give "
            f"allow_opaque=True; every result will say so."
        )
