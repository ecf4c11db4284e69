"""The event loop that Greenroom's async functions need."""

import asyncio
import sys

from greenroom.errors import BadInput


def check_loop() -> None:
    """Refuse to run where no loop of asyncio is running, such as on trio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        other = "trio" if "trio" in sys.modules else "another event loop"
        raise BadInput(
            f"Greenroom runs on asyncio, but it was awaited on {other}. Call `rehearse(agent, cases)` in "
            f"a thread instead: await trio.to_thread.run_sync(lambda: rehearse(agent, cases))."
        ) from error
