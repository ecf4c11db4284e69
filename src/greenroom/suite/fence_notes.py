"""What a reader should know of the fence in this process."""

import asyncio

from greenroom.results.report import FAULT
from greenroom.simulation.fence import Breach, blind_spots, not_held, strays


def unheld() -> list[str]:
    """What the fence cannot hold here, and what it cannot see."""
    reasons = not_held(asyncio.get_running_loop())
    return [
        *(f"the fence was not held: {reason}" for reason in reasons),
        *(f"the fence cannot see connections of {name}" for name in blind_spots()),
    ]


def refused(since: int) -> list[str]:
    """What no open trial answers for and was refused, after the first `since` times: faults."""
    return list(dict.fromkeys(_fault(breach) for breach in strays()[since:]))


def _fault(breach: Breach) -> str:
    whose = f"work that case {breach.of!r} left behind" if breach.of else "work of no case"
    return f"{FAULT}{whose} tried {breach} while cases were open; it was refused"
