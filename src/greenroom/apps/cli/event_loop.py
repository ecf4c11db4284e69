"""Run a command's work on its own event loop, until it is done or a signal ends it.

Ctrl-C, SIGTERM and SIGHUP: the first asks a run to stop, the second ends the process at once.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from select import select
from threading import Thread, current_thread, main_thread
from time import monotonic
from types import FrameType
from typing import Any, Final, Self, TypeVar

from greenroom.agents.flow import Flow
from greenroom.apps.cli.exits import (
    ENDINGS,
    HUNG_UP,
    INTERRUPTED,
    TERMINATED,
    Interrupted,
    aside,
    harmless,
    is_verbose,
)
from greenroom.apps.cli.progress import Watching
from greenroom.apps.cli.streams import STREAMS
from greenroom.backends.backend import ToolFacts
from greenroom.backends.registry import explained
from greenroom.cases import EvalSet
from greenroom.errors import RunBroke, StoreFailed
from greenroom.results import Report
from greenroom.suite import evaluate, load_agent
from greenroom.suite.cancel import Cancel
from greenroom.suite.evaluation import on_own_loop
from greenroom.suite.mock_suggestions import mocked_everywhere, unmocked_tools
from greenroom.suite.options import Options
from greenroom.suite.plan import assemble
from greenroom.suite.storage.identity import GIVEN_AS
from greenroom.world.threads import Interruption

T = TypeVar("T")

_CODES: Final = {
    signal.SIGINT: INTERRUPTED,
    signal.SIGTERM: TERMINATED,
    signal.SIGHUP: HUNG_UP,
}
_SHOW_CURSOR: Final = b"\x1b[?25h"

# Seconds: to wait for a run that does not stop, to print its results, and to erase the progress bar.
_PATIENCE: Final = 3.5
_LAST_WORDS: Final = 5.0
_CLEARING: Final = 0.5


# The run of an evaluation


def run_cases(
    agent: Any,
    cases: EvalSet,
    watching: Watching,
    *,
    names_unmocked: bool = False,
    on_overdue: Callable[[int], None] = lambda _: None,
    resume_hint: Callable[[], str] = lambda: "",
    **options: Any,
) -> Report:
    """Evaluate `agent`, or the one that a reference names, on `cases`.

    Ctrl-C and SIGTERM stop it: `Interrupted` has the report of what was finished. For a run that does
    not stop in time, `on_overdue` is called with the exit code, and the process ends. A second signal
    ends it at once, with `resume_hint` as its last words.
    """
    cancel = Cancel()

    async def evaluated() -> Report:
        with _cancelled_by(cancel):
            found = await loaded(agent) if isinstance(agent, str) else agent
        if isinstance(agent, str):
            GIVEN_AS.set(agent)
        if names_unmocked:
            _name_unmocked(found, cases, options)
        hooks = {"on_case_complete": watching.take, "cancel": cancel}
        return await evaluate(found, cases, **hooks, **options)

    report: Report | None = None
    with watching, Signals(cancel, on_overdue, resume_hint, watching.stop) as signals:
        try:
            report = on_own_loop(evaluated)
        except RunBroke:
            if not signals.code:
                raise
        except StoreFailed as error:
            if not signals.code:
                raise
            report = error.report
    if report is None or signals.code:
        raise Interrupted(signals.code, report)
    return report


@contextmanager
def _cancelled_by(cancel: Cancel) -> Generator[None]:
    """Let the token cancel the current task until a run listens to it."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cut() -> None:
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    cancel.listen(cut)
    try:
        yield
    finally:
        cancel.leave(cut)


async def loaded(reference: str) -> Any:
    """The agent that a reference names; with -v, or if it is a framework's, why its backend was chosen."""
    agent = await load_agent(reference)
    if is_verbose() or not isinstance(agent, Flow):
        aside(f"{reference}: {explained(agent)}")
    return agent


def check_agent(reference: str, cases: EvalSet, **options: Any) -> None:
    """Refuse what `run_cases` would refuse before its first case."""

    async def found() -> None:
        await assemble(await load_agent(reference), cases, Options(**options))

    to_the_end(found)


def tools_to_mock(agent: str, cases: EvalSet, options: Mapping[str, object]) -> list[ToolFacts]:
    """The tools that lack a mock in some case."""
    found = to_the_end(lambda: loaded(agent))
    return unmocked_tools(found, mocked_everywhere(cases, _known(options)))


def _known(options: Mapping[str, Any]) -> list[object]:
    return [*options.get("mocks", ()), *options.get("allow_tools", ())]


def _name_unmocked(agent: object, cases: EvalSet, options: Mapping[str, object]) -> None:
    """Name the tools that would be refused, before the first model is asked."""
    mocked = mocked_everywhere(cases, _known(options))
    lacking = [facts.name for facts in unmocked_tools(agent, mocked)]
    if lacking:
        aside(
            f"not mocked in every case, and refused if called: {', '.join(lacking)} "
            f"(--suggest-mocks prints mocks for them)"
        )


class Signals:
    """Receives signals on its own thread, so that code which blocks the event loop hides none.

    The first signal cancels. If that does not help, `on_overdue` reports what there is, and the process
    ends. The second ends it at once, with `resume_hint` as its last words; `clear` erases the progress
    bar.
    """

    def __init__(
        self,
        cancel: Cancel,
        on_overdue: Callable[[int], None],
        resume_hint: Callable[[], str],
        clear: Callable[[], None] = lambda: None,
    ) -> None:
        self.code = 0
        """The exit code of the signal that came; 0 while none has."""
        self._cancel = cancel
        self._on_overdue = on_overdue
        self._resume_hint = resume_hint
        self._clear = clear
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if current_thread() is not main_thread():
            return self  # only the main thread may set handlers
        reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        for number in _CODES:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._handle)
        self._woken = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._listening = Thread(
            target=self._listen, args=(reading,), name="greenroom-signals", daemon=True
        )
        self._listening.start()
        return self

    def __exit__(self, *_: object) -> None:
        if current_thread() is not main_thread():
            return
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._writing)  # the closed pipe tells the thread to end
        self._listening.join()

    def _handle(self, number: int, _: FrameType | None) -> None:
        """Pass a signal to the thread if an event loop has replaced the thread's pipe."""
        current = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        if current != self._writing:
            signal.set_wakeup_fd(current)
            os.write(self._writing, bytes([number]))

    def _listen(self, reading: int) -> None:
        if first := _next_signal(reading, inf):
            self.code = first
            self._cancel.cancel(ENDINGS[first])
            second = _next_signal(reading, monotonic() + _PATIENCE)
            if second is not None:
                self._end(asked_twice=bool(second))
        os.close(reading)

    def _end(self, *, asked_twice: bool) -> None:
        """End the process, however deep its main thread is stuck, even if printing hangs."""
        if asked_twice:
            clearing = Thread(target=self._clear, daemon=True)
            clearing.start()
            clearing.join(_CLEARING)
            # The main thread may be printing, and would draw the bar again below these words.
            STREAMS.silence()
            erase = "\r\x1b[2K" if sys.stdout.isatty() else ""
            _write(f"{erase}greenroom: {ENDINGS[self.code]}\n")
        speaking = Thread(target=self._last_words, args=(asked_twice,), daemon=True)
        speaking.start()
        speaking.join(_LAST_WORDS)
        if not asked_twice:
            with suppress(Exception):
                sys.stdout.flush()
        if sys.stdout.isatty():
            os.write(1, _SHOW_CURSOR)
        os._exit(self.code)

    def _last_words(self, asked_twice: bool) -> None:
        if not asked_twice:
            self._on_overdue(self.code)
        elif hint := self._resume_hint():
            _write(f"{harmless(hint)}\n")


def _next_signal(reading: int, until: float) -> int | None:
    """The exit code of the next signal; 0 when time is up, None when the run is over."""
    while (left := until - monotonic()) > 0:
        if not select([reading], [], [], None if left == inf else left)[0]:
            break
        number = os.read(reading, 1)
        if not number:
            return None
        if number[0] in _CODES:  # other signals, such as the alarm, have their own handlers
            return _CODES[signal.Signals(number[0])]
    return 0


def _write(text: str) -> None:
    with suppress(OSError):
        os.write(2, text.encode())


# Other work


def to_the_end(work: Callable[[], Awaitable[T]]) -> T:
    """The result of `work`, on a loop whose threads stay inside the fence; a signal raises Interrupted."""

    ends = _Ends()

    async def main() -> T:
        with ends:
            return await work()

    try:
        return on_own_loop(main)
    except KeyboardInterrupt:
        raise Interrupted(INTERRUPTED) from None
    except (_Terminated, RunBroke):
        if not ends.code:
            raise
        raise Interrupted(ends.code) from None


class _Terminated(Interruption):
    """A second signal came, and code that blocks must stop."""


class _Ends:
    """SIGTERM and SIGHUP end the current task as Ctrl-C does: politely first, then at once."""

    def __init__(self) -> None:
        self.code = 0
        """The exit code of the signal that came; 0 while none has."""
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
