"""What a reader should know of the fence in this process."""

import asyncio

from greenroom.simulation.fence import blind_spots, not_held, strays


def unheld() -> list[str]:
    """What the fence cannot hold here, and what it cannot see."""
    reasons = not_held(asyncio.get_running_loop())
    return [
        *(f"the fence was not held: {reason}" for reason in reasons),
        *(f"the fence cannot see connections of {name}" for name in blind_spots()),
    ]


def refused(since: int) -> list[str]:
    """What it has refused outside any case, after the first `since` times."""
    return [f"the fence refused a thread outside any case: {one}" for one in strays()[since:]]
