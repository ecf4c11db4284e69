"""Cases played on an event loop of their own, until they are done or somebody interrupts."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from greenroom.apps.cli.exits import INTERRUPTED, TERMINATED, loading
from greenroom.apps.cli.progress import Watching
from greenroom.cases import EvalSet
from greenroom.results import Report
from greenroom.simulation.fence import enclosed_executor
from greenroom.suite import evaluate, load_agent


class Interrupted(Exception):
    """Ctrl-C or SIGTERM ended the run before its last case."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("interrupted" if exit_code == INTERRUPTED else "terminated")
        self.exit_code = exit_code


def play(
    agent: Any, cases: EvalSet, watching: Watching, *, verbose: bool = False, **options: Any
) -> Report:
    """Evaluate `agent`, or the one that a reference names, on `cases`."""

    async def main() -> Report:
        # Threads of this loop stay inside the fence.
        asyncio.get_running_loop().set_default_executor(enclosed_executor())
        with _sigterm_cancels():
            playing = agent
            if isinstance(agent, str):
                with loading(agent, verbose):
                    playing = await load_agent(agent)
            return await evaluate(playing, cases, on_case_complete=watching.take, **options)

    try:
        with watching:
            return asyncio.run(main())
    except KeyboardInterrupt:
        raise Interrupted(INTERRUPTED) from None
    except (_Terminated, asyncio.CancelledError):
        raise Interrupted(TERMINATED) from None


class _Terminated(BaseException):
    """Somebody asked twice, and code that does not look up from its work must stop."""


@contextmanager
def _sigterm_cancels() -> Generator[None]:
    """SIGTERM ends the present task as Ctrl-C does: politely at first, then at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def on_sigterm(*_: object) -> None:
        if task is None or task.cancelling():
            raise _Terminated
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # a loop that waits for nothing must wake up

    before = signal.signal(signal.SIGTERM, on_sigterm)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
