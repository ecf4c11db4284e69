"""An agent driven by another program's loop, which asks its user for one message after the other.

The copy is made once for a whole run, because that loop keeps it. It has a user of ours: what the
case's user says is handed over, and where the loop asks for more the turn is over.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Generic, TypeVar

from google.adk.apps import App
from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types

from greenroom.backends.adk import MEMORY, AdkBackend
from greenroom.backends.adk.run import PLACE, FrameworkRun
from greenroom.backends.adk.sessions import Keeper, Sessions
from greenroom.backends.adk.state import pour, prefixed
from greenroom.backends.adk.tripwire import Tripwire
from greenroom.backends.adk.turns import is_last_word, message_for, played, record_state
from greenroom.backends.backend import Advance, Resumption
from greenroom.backends.foreign import Invocation, Played
from greenroom.errors import AgentFailed, GreenroomError
from greenroom.ledger.ledger import Ledger
from greenroom.world.world import World

T = TypeVar("T")

APP = USER = SESSION = "greenroom"
"""Where the loop must keep its session."""

# What the framework's evaluation writes into the state for itself.
_ITS_OWN = ("__llm_request_key__",)


class Prompter:
    """Sits where the loop's user sits: tells it the next line, and hears that a turn is over."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[types.Content | None] = asyncio.Queue()
        self._rests: asyncio.Queue[list[Event]] = asyncio.Queue()

    async def next_line(self, events: list[Event]) -> types.Content | None:
        """What the user says now; None once they say nothing more."""
        self._rests.put_nowait(events)
        line = await self._lines.get()
        # The loop runs all turns in one context, where the last turn's place would linger.
        PLACE.set("")
        return line

    def say(self, line: types.Content | None) -> None:
        """Let the loop go on with this line."""
        self._lines.put_nowait(line)

    async def rest(self) -> list[Event]:
        """All that has happened, as soon as the loop asks for another line."""
        return await self._rests.get()


class ServedBackend(AdkBackend, Generic[T]):
    """Plays one run of an agent that `serve` drives.

    `serve` is handed the gated copy and begins when the first message is there; what it makes of
    the run in the end is told by `over`. `keeper` is told what is in the run's session.
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
        self._staged: tuple[FrameworkRun, Tripwire] | None = None
        self._task: asyncio.Task[T] | None = None
        self._cut = False

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Hand over what the user said last, and wait until the loop asks for more."""
        invocation = Invocation(ledger, world, MEMORY)
        return await invocation.play(lambda: self._turn(invocation))

    async def over(self) -> T | None:
        """What came of the run, after which nothing more is said; None if it was cut short."""
        if self._task is None or self._cut:
            return None
        self.prompter.say(None)
        return await self._task

    async def close(self) -> None:
        """Break off what still runs."""
        if self._task is not None and not self._task.done():
            self._cut = True
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1)

    def broke(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the run, whatever the agent makes of it; given back to be raised."""
        assert self._staged is not None
        return self._staged[0].invocation.keep(error)

    async def _turn(self, invocation: Invocation) -> Played:
        is_first = self._staged is None
        try:
            stage = await self._set_stage(invocation)
            state = prefixed(invocation.ledger.fold(invocation.world.voice))
            if is_first and self._keeper is not None:
                self._keeper.begin(state)
            pour(state, self._session, self.sessions)
            begun = len(self._events)
            self.prompter.say(message_for(invocation, self._events))
            self._events = await self._rest()
        except BaseException:
            await self.close()
            raise
        words = [event for event in self._events[begun:] if is_last_word(event)]
        said = next((event for event in reversed(words) if event.author != "user"), None)
        return played(stage, self._events, said, self.answers_with_data(said))

    async def _set_stage(self, invocation: Invocation) -> FrameworkRun:
        """The stage of the run, ready for this invocation; the loop is begun with the first."""
        if self._staged is not None:
            stage, tripwire = self._staged
            stage.begin(invocation)
            tripwire.begin()
            return stage
        stage = FrameworkRun(invocation)
        copier = self.copier(stage)
        self._staged = stage, copier.tripwire
        app = self.copied(copier)
        await copier.ask_servers()
        self._task = asyncio.create_task(self._serve(self, app))
        self._events = await self._rest()
        return stage

    def _hear(self, event: Event) -> None:
        """Note what waits and what changes in the state, as the loop shows its events too late."""
        if self._staged is not None:
            stage, tripwire = self._staged
            tripwire.hear(event)
            record_state(stage, event, _ITS_OWN)

    def _keep(self, session: Session, event: Event) -> None:
        # Code of the agent may keep sessions of its own here.
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

    @property
    def _session(self) -> Session:
        return self.sessions.sessions[APP][USER][SESSION]
