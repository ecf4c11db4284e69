"""What is refused before a case is played."""

import asyncio
from collections.abc import Collection
from typing import Any

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.errors import BadAgent, BadCase, FenceNotHeld
from greenroom.simulation.fence import not_held


def check_fence() -> None:
    """Refuse to play where the fence cannot hold."""
    reasons = not_held(asyncio.get_running_loop())
    if reasons:
        raise FenceNotHeld(
            f"the fence cannot hold here: {'; '.join(reasons)}. Use asyncio's own event loop, or "
            f"allow_unfenced=True to go on with the gate alone."
        )


def check_opaque(backend: Backend, allowed: bool) -> None:
    """Refuse an agent whose tools no gate can hold, unless somebody allowed that."""
    if backend.tool_calls == "opaque" and not allowed:
        raise BadAgent(
            f"the tools of an agent played by {backend.name!r} run where no gate can see or stop "
            f"them, so mocks do not reach them. Make sure that they act on nothing real, then give "
            f"allow_opaque=True; every result will say so."
        )


def check_tools(case: Case, offered: Collection[str], allowed: Collection[Any]) -> None:
    """A mock for a tool that does not exist is a misspelt one, and would leave the tool bare."""
    for name in case.mocks:
        if name not in offered:
            raise BadCase(
                f"case {case.id!r} mocks tool {name!r}, but the agent offers {sorted(offered)}. "
                f"Rename the mock, or add the tool to the agent."
            )
    for name in allowed:
        if isinstance(name, str) and name not in offered:
            raise BadCase(
                f"allow_tools names {name!r}, but the agent of case {case.id!r} offers "
                f"{sorted(offered)}. Rename it, or hand over the tool itself."
            )
