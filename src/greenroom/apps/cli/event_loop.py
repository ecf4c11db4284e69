"""Cases run on an event loop of their own, until they are done or interrupted."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from greenroom.agents.flow import Flow
from greenroom.apps.cli.exits import INTERRUPTED, TERMINATED, Interrupted, aside, loading
from greenroom.apps.cli.progress import Watching
from greenroom.apps.cli.signals import Signals
from greenroom.backends.registry import explained
from greenroom.cases import EvalSet
from greenroom.errors import RunBroke, StoreFailed
from greenroom.results import Report
from greenroom.suite import evaluate, load_agent
from greenroom.suite.cancel import Cancel
from greenroom.suite.evaluation import on_own_loop
from greenroom.suite.mock_suggestions import mocked_everywhere, suggested_mocks, unmocked_tools

T = TypeVar("T")


def play(
    agent: Any,
    cases: EvalSet,
    watching: Watching,
    *,
    verbose: bool = False,
    model: Any = None,
    tell: bool = False,
    overdue: Callable[[int], None] = lambda _: None,
    farewell: Callable[[], str] = lambda: "",
    **options: Any,
) -> Report:
    """Evaluate `agent`, or the one that a reference names, on `cases`.

    Ctrl-C and SIGTERM stop it: `Interrupted` has the report of what was finished. A run that does
    not stop in time ends with the process, after `overdue` was told the exit code. Who asks twice
    hears `farewell`, and nothing else.
    """
    cancel = Cancel()

    async def evaluated() -> Report:
        with _cancelled_by(cancel):
            playing = await loaded(agent, model, verbose) if isinstance(agent, str) else agent
        if tell:
            _tell_unmocked(playing, cases, options)
        told = {"on_case_complete": watching.take, "cancel": cancel}
        return await evaluate(playing, cases, **told, **options)

    report: Report | None = None
    with watching, Signals(cancel, overdue, farewell) as signals:
        try:
            report = on_own_loop(evaluated)
        except asyncio.CancelledError:
            if not signals.code:
                raise RunBroke("the run was cancelled by code of its own.") from None
        except StoreFailed as error:
            if not signals.code:
                raise
            report = error.report
    if report is None or signals.code:
        raise Interrupted(signals.code, report)
    return report


@contextmanager
def _cancelled_by(cancel: Cancel) -> Generator[None]:
    """Let the token end the present task, for as long as no run listens to it."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cut() -> None:
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    cancel.listen(cut)
    try:
        yield
    finally:
        cancel.leave(cut)


async def loaded(reference: str, model: Any, verbose: bool) -> Any:
    """The agent that a reference names; author's code that cannot be loaded is bad input."""
    with loading(reference, verbose):
        agent = await load_agent(reference, model=model)
    if verbose or not isinstance(agent, Flow):
        aside(f"{reference}: {explained(agent)}")
    return agent


def mocks_for(agent: str, cases: EvalSet, model: Any, options: Mapping[str, Any]) -> str:
    """A block of YAML with a mock for every tool that lacks one in some case."""
    playing = to_the_end(lambda: loaded(agent, model, False))
    return suggested_mocks(playing, mocked_everywhere(cases, _known(options)))


def _known(options: Mapping[str, Any]) -> list[Any]:
    return [*options.get("mocks", ()), *options.get("allow_tools", ())]


def _tell_unmocked(agent: Any, cases: EvalSet, options: Mapping[str, Any]) -> None:
    """Name the tools that would be refused, before the first model is asked."""
    mocked = mocked_everywhere(cases, _known(options))
    lacking = [facts.name for facts in unmocked_tools(agent, mocked)]
    if lacking:
        aside(
            f"without a mock in some case, and refused if called: {', '.join(lacking)} "
            f"(--suggest-mocks writes them)"
        )


def to_the_end(work: Callable[[], Awaitable[T]]) -> T:
    """What `work` comes to, on a loop whose threads stay inside the fence; Interrupted if cut."""

    ends = _Ends()

    async def main() -> T:
        with ends:
            return await work()

    try:
        return on_own_loop(main)
    except KeyboardInterrupt:
        raise Interrupted(INTERRUPTED) from None
    except (_Terminated, asyncio.CancelledError):
        raise Interrupted(ends.code) from None


class _Terminated(BaseException):
    """A second signal came, and code that does not look up from its work must stop."""


class _Ends:
    """SIGTERM and SIGHUP end the present task as Ctrl-C does: politely at first, then at once."""

    def __init__(self) -> None:
        self.code = TERMINATED
        """The exit code of the signal that came."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._end)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _end(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        if self._task is None or self._task.cancelling():
            raise _Terminated
        self._task.cancel()
        self._loop.call_soon_threadsafe(lambda: None)  # a loop that waits for nothing must wake up
