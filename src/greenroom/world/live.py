"""The live world: models are asked and tools run for real."""

from asyncio import CancelledError
from collections.abc import Callable
from hashlib import blake2b
from threading import RLock
from time import time
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from msgspec import structs

from greenroom.errors import InDoubt, ToolRefused
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.models.model import Model, ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.records import answer_model, answer_tool, begin_call
from greenroom.world.resources import Resources
from greenroom.world.world import Clock, Pending, Returned, SystemClock, ToolBody, ToolRequest

if TYPE_CHECKING:
    from greenroom.world.middleware.run import RunMiddleware

E = TypeVar("E", bound=Event)

_SYSTEM_CLOCK = SystemClock()
_RECORDING = RLock()


class WorldOptions(TypedDict, total=False):
    """The options that subclasses pass on to `LiveWorld`."""

    voice: Voice
    run_id: str
    clock: Clock | None
    on_event: Callable[[Event], None] | None
    resources: Resources | None


class LiveWorld:
    """Does everything for real and records it."""

    model: Model | None = None
    """The model that replaces all models of the agent."""
    captures: bool = False
    """Whether requests to models are recorded; the code that holds the conversation sets it."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        voice: Voice = "agent",
        run_id: str = "run",
        clock: Clock | None = None,
        on_event: Callable[[Event], None] | None = None,
        resources: Resources | None = None,
    ) -> None:
        self.ledger = ledger
        self.voice: Voice = voice
        self.run_id = run_id
        self.deadline: float | None = None
        self.resources = resources or Resources()
        self.middleware: RunMiddleware | None = None
        self.redact: Callable[[Event], Event] | None = None
        """Returns the event to record, with the text changed by middleware."""
        self._clock = clock or _SYSTEM_CLOCK
        self.on_event = on_event

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask the real model."""
        return await answer_model(self, request, body, on_delta)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """Run the real tool, unless its answer is the user's to give."""
        if self.middleware is None:
            return await self._answer_call(request, body)
        return await self.middleware.held(request, self._answer_call(request, body))

    async def _answer_call(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        if self.middleware is not None:
            answer = await self.middleware.before_tool(request)
            if answer is not None:
                return answer
        if request.yields and not request.visits:
            begin_call(self, request)
            return Pending(request.id)
        if request.yields:
            raise ToolRefused(cannot_wait(request))
        if not request.delegates:
            self._refuse_doubt(request)
        return await answer_tool(self, request, body, "live")

    def _refuse_doubt(self, request: ToolRequest) -> None:
        """Refuse a live tool that was interrupted half-way: it may have acted, and twice is worse than not at all.

        The tools of user agents are fenced: they run again.
        """
        index = self.ledger.index_of(self.voice)
        before = index.called.get(request.id) if self.voice == "agent" else None
        if before is None or request.again or index.end_of(before) is not None:
            return
        if before.seq < max(self.ledger.loaded_count, index.resumed_at):
            raise InDoubt(
                f"tool {request.tool!r} was called before the interruption with {dict(request.args)!r} and "
                f"its return is not recorded, so it is not known whether it acted. Look at the real "
                f"system; then start the run again, or continue the conversation with a message."
            )

    def record(self, event: E) -> E:
        """Record an event of this voice; stopped work cannot record anything, and is cancelled once more."""
        if event.voice != self.voice:
            event = structs.replace(event, voice=self.voice)
        if self.redact is not None:
            event = cast("E", self.redact(event))
        # An agent inside a function may work in its own threads and loops.
        with _RECORDING:
            index = self.ledger.indexes[self.voice]
            if index.closed and index.is_closed(event.path):
                raise CancelledError(f"{event.path} was stopped before; nothing is recorded there")
            event = self.ledger.append(event, time())
            if self.on_event is not None:
                self.on_event(event)
        return event

    def now(self) -> float:
        """Seconds since the epoch by the run's clock."""
        return self._clock.now()

    def new_id(self, *parts: object) -> str:
        """Twelve hex digits that follow from the voice and the place in the run."""
        # Must not change between versions: a framework's calls are found again by their ids.
        text = "\x1f".join(map(str, (self.voice, *parts)))
        return blake2b(text.encode(errors="surrogatepass"), digest_size=6).hexdigest()


def cannot_wait(request: ToolRequest) -> str:
    """Why a call that only a user could answer is refused where no user can be asked."""
    return (
        f"tool {request.tool!r} waits for its user, but its agent runs inside a function, a step or "
        f"a tool, where no user can be asked. Mock it, or rehearse that agent by itself."
    )
