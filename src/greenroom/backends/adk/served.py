"""An agent driven by another program's loop, which asks its user for one message after another.

The copy is made once for a whole trial, because that loop keeps it. The loop's user is ours: it passes on
what the case's user says, and when the loop asks for more, the turn is over.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Generic, TypeVar

from google.adk.apps import App
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types

from greenroom.backends.adk import AdkBackend
from greenroom.backends.adk.run import PLACE, FrameworkRun
from greenroom.backends.adk.sessions import Keeper, Sessions
from greenroom.backends.adk.state import pour, prefixed
from greenroom.backends.adk.tripwire import Tripwire
from greenroom.backends.adk.turns import (
    is_last_word,
    message_for,
    progress_of,
    record_actions,
    record_state,
)
from greenroom.backends.backend import Resumption
from greenroom.backends.invocation import Invocation, Progress
from greenroom.errors import AgentFailed, GreenroomError

T = TypeVar("T")

APP = USER = SESSION = "greenroom"
"""Where the loop must keep its session."""

# State keys that the framework's evaluation writes for itself.
_ITS_OWN = ("__llm_request_key__",)


class Prompter:
    """Replaces the loop's user: gives it the next line, and notices when a turn is over."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[types.Content | None] = asyncio.Queue()
        self._rests: asyncio.Queue[list[Event]] = asyncio.Queue()

    async def next_line(self, events: list[Event]) -> types.Content | None:
        """What the user says now; None once they say nothing more."""
        self._rests.put_nowait(events)
        line = await self._lines.get()
        # The loop runs all turns in one context, so the last turn's place must be cleared.
        PLACE.set("")
        return line

    def say(self, line: types.Content | None) -> None:
        """Let the loop continue with this line."""
        self._lines.put_nowait(line)

    async def rest(self) -> list[Event]:
        """All that has happened, as soon as the loop asks for another line."""
        return await self._rests.get()


class ServedBackend(AdkBackend, Generic[T]):
    """Runs an agent that `serve` drives, once.

    `serve` is given the gated copy and begins with the first message; `over` returns its result.
    `keeper` is given what is in the run's session.
    """

    resumes: ClassVar[Resumption] = "no"

    def __init__(
        self,
        agent: Any,
        serve: "Callable[[ServedBackend[T], App], Coroutine[Any, Any, T]]",
        keeper: Keeper | None = None,
    ) -> None:
        super().__init__(agent)
        self.prompter = Prompter()
        self.sessions = Sessions(self._hear, None if keeper is None else self._keep)
        self.way_out = ""
        self._serve = serve
        self._keeper = keeper
        self._events: list[Event] = []
        self._running: tuple[FrameworkRun, Tripwire] | None = None
        self._task: asyncio.Task[T] | None = None
        self._cut = False

    async def over(self) -> T | None:
        """The result of the run, after which nothing more is said; None if it was interrupted."""
        if self._task is None or self._cut:
            return None
        self.prompter.say(None)
        return await self._task

    async def close(self) -> None:
        """Cancel what still runs."""
        if self._task is not None and not self._task.done():
            self._cut = True
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1)

    def broke(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the run, whatever the agent makes of it; returns it to be raised."""
        assert self._running is not None
        return self._running[0].invocation.keep(error)

    async def run(self, invocation: Invocation) -> Progress:
        """Pass on what the user said last, and wait until the loop asks for more."""
        is_first = self._running is None
        try:
            run = await self._begin(invocation)
            state = prefixed(invocation.ledger.fold(invocation.world.voice))
            if is_first and self._keeper is not None:
                self._keeper.begin(state)
            session = self.sessions.sessions[APP][USER][SESSION]
            pour(state, session, self.sessions)
            begun = len(self._events)
            self.prompter.say(message_for(invocation, self._events))
            self._events = await self._rest()
        except BaseException:
            await self.close()
            raise
        words = [event for event in self._events[begun:] if is_last_word(event)]
        said = next((event for event in reversed(words) if event.author != "user"), None)
        return progress_of(run, self._events, said, self.answers_with_data(said))

    async def _begin(self, invocation: Invocation) -> FrameworkRun:
        """The run, ready for this invocation; the loop is begun with the first."""
        if self._running is not None:
            run, tripwire = self._running
            run.begin(invocation)
            tripwire.begin()
            return run
        run = FrameworkRun(invocation)
        copier = self.copier(run)
        self._running = run, copier.tripwire
        app = self.copied(copier)
        await copier.ask_servers()
        self._task = asyncio.create_task(self._serve(self, app))
        self._events = await self._rest()
        return run

    def _hear(self, event: Event) -> None:
        """Note waits and state changes here, because the loop shows its events too late."""
        if self._running is not None:
            run, tripwire = self._running
            tripwire.hear(event)
            record_state(run, event, _ITS_OWN)
            record_actions(run, event)

    def _keep(self, session: Session, event: Event) -> None:
        # The agent's code may keep its own sessions here.
        if self._keeper is not None and session.id == SESSION:
            self._keeper.keep(event)

    async def _rest(self) -> list[Event]:
        assert self._task is not None
        resting = asyncio.ensure_future(self.prompter.rest())
        try:
            await asyncio.wait([resting, self._task], return_when=asyncio.FIRST_COMPLETED)
            if resting.done():
                return resting.result()
        finally:
            resting.cancel()
        self._task.result()
        raise AgentFailed("the run was ended before its user had said everything.")
