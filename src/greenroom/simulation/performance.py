"""The live entry point: an agent that acts for real, one turn at a time, its conversation kept as a ledger."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from greenroom.backends.backend import Advance, Backend, Failed, Waiting, hooks_heard
from greenroom.backends.native import NativeBackend
from greenroom.backends.registry import backend_for
from greenroom.errors import (
    BadAgent,
    BadInput,
    BadLedger,
    TimeUp,
)
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.changes import Change, State
from greenroom.ledger.events import (
    Event,
    RunResumed,
    RunStarted,
    StateChanged,
    UserSaid,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, as_object, is_object
from greenroom.ledger.query import MISSING
from greenroom.ledger.questions import ended, started
from greenroom.models.model import OnDelta
from greenroom.simulation.fence import Breach, answerable
from greenroom.simulation.fence.refusal import where
from greenroom.simulation.hooked_turns import advance_hooked
from greenroom.simulation.live_turns import MAX_MODEL_CALLS, LiveTurnWorld
from greenroom.simulation.remedies import PERFORM, mend_breach
from greenroom.simulation.spoken import Spoken
from greenroom.simulation.user.given_answers import answers_to
from greenroom.world.pieces import Pieces, Taken
from greenroom.world.resources import Factories, Resources

if TYPE_CHECKING:
    from greenroom.store.conversations import OpenConversation
    from greenroom.store.store import Store

_AT_WORK: set[int] = set()
"""The ledgers that a turn of this process writes to."""


def perform(
    agent: Any,
    message: str | None = None,
    *,
    attachments: Iterable[Attachment] = (),
    answers: Mapping[str, Json] | None = None,
    ledger: Ledger | None = None,
    conversation: str = "",
    state: Mapping[str, Mapping[str, Json]] | None = None,
    user: str = "",
    app: str = "",
    store: "Store | str | Path | bool | None" = None,
    max_model_calls: int = MAX_MODEL_CALLS,
    seconds: float | None = None,
    resources: Factories | None = None,
    middleware: Iterable[object] = (),
    on_delta: OnDelta | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> "Performance":
    """Let an agent answer for real: its models are asked, its tools act.

    Await it for the ledger of the conversation, or go through `.deltas()` for the pieces of the reply.
    `ledger`, or the id of a `conversation` in the store, continues that conversation, in this process or
    another. `attachments` go with the message: [attach("cup.png")]. `answers` are for what the agent waits
    for, by tool: {"approve_payment": True}. State in the scopes `user` and `app` outlives the conversation;
    the arguments `user` and `app` say whose it is. `resources` maps names to functions that open what tools
    need; `middleware` wraps the agent's model and tool calls.
    """
    # SQLite is loaded only when something must be stored.
    from greenroom.store.store import as_store

    turn = Turn(
        agent=agent,
        message=message,
        attachments=tuple(attachments),
        answers=dict(answers or {}),
        ledger=Ledger() if ledger is None else ledger,
        conversation=conversation,
        state=dict(state or {}),
        owners={"app": app, "user": user},
        store=as_store(store),
        max_model_calls=max_model_calls,
        seconds=seconds,
        resources=resources,
        middleware=tuple(middleware),
        on_event=on_event,
    )
    turn.check()
    return Performance(turn, on_delta)


class Performance:
    """A turn of a live conversation: awaited for its ledger, or followed piece by piece.

    It is taken once. Await it after its pieces, or again, for the ledger.
    """

    def __init__(self, turn: "Turn", on_delta: OnDelta | None) -> None:
        self._turn = turn
        self._on_delta = on_delta
        self._is_begun = self._is_over = False

    def __await__(self) -> Generator[Any, None, Ledger]:
        return self._ledger().__await__()

    async def _ledger(self) -> Ledger:
        return self._turn.ledger if self._is_over else await self._take(self._on_delta)

    async def _take(self, on_delta: OnDelta | None) -> Ledger:
        if self._is_begun:
            raise BadInput(
                "this turn is in progress or was interrupted, and is not taken twice. Continue with "
                "perform(agent, ledger=performance.ledger)."
            )
        self._is_begun = True
        ledger = await self._turn.take(on_delta)
        self._is_over = True
        return ledger

    @property
    def ledger(self) -> Ledger:
        """What has happened in the conversation so far."""
        return self._turn.ledger

    async def deltas(self, hold: int | None = None) -> AsyncIterator[str]:
        """The pieces of the agent's answer as they come; the turn is over when they end.

        With `hold`, at most that many pieces wait to be read; beyond that, the model's stream is not read further.
        After a `Restarted` among them the answer begins again.
        """
        pieces = Pieces[str](hold)

        def heard(piece: str) -> Taken:
            pieces.add(piece)
            return Taken(self._on_delta and self._on_delta(piece), pieces)

        task = asyncio.ensure_future(self._take(heard))
        task.add_done_callback(lambda _: pieces.end())
        try:
            async for piece in pieces:
                yield piece
            await task
        finally:
            pieces.leave()
            if not task.done():
                task.cancel()
                await asyncio.wait([task])


class Turn(Struct, eq=False):
    """One turn: the conversation is found and locked, then the agent gets the message and goes as far as it can."""

    agent: Any
    message: str | None
    attachments: tuple[Attachment, ...]
    answers: dict[str, Json]
    ledger: Ledger
    conversation: str
    state: dict[str, Mapping[str, Json]]
    owners: dict[str, str]
    store: "Store | None"
    max_model_calls: int
    seconds: float | None
    resources: Factories | None
    middleware: tuple[Any, ...]
    on_event: Callable[[Event], None] | None

    def check(self) -> None:
        """Refuse arguments that contradict each other or are invalid, before anything is asked or done."""
        if len(self.ledger) and self.conversation:
            raise BadInput("perform() got a ledger and a conversation; give only one of them.")
        if self.conversation and self.store is None:
            raise BadInput("a conversation is found by its id in a store, but the store is off.")
        for one in self.attachments:
            if not isinstance(one, Attachment):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadInput(f"`attachments` holds {one!r}; write attach({one!r}).")
        if self.attachments:
            self.message = self.message or ""
        elif self.message is not None and is_blank(self.message):
            raise BadInput(
                "the message is empty; leave it out to let the agent continue without one."
            )
        if self.max_model_calls < 1:
            raise BadInput(f"max_model_calls is {self.max_model_calls}; it must be at least 1.")
        if self.seconds is not None and not self.seconds > 0:
            raise BadInput(f"seconds is {self.seconds}; it must be more than 0.")
        for scope, held in self.state.items():
            if not hasattr(held, "keys"):
                raise BadInput(f"state[{scope!r}] is not a mapping; give state by scope and key.")

    async def take(self, on_delta: OnDelta | None) -> Ledger:
        """Continue the conversation until the agent has answered or waits."""
        around = answerable()
        if around is not None:
            # On record before it is raised: the code of the case may swallow the exception.
            around.record_breach(Breach(PERFORM, getattr(self.agent, "name", ""), where()))
            inside = f"case {around.name!r}" if around.around == "case" else around.name
            raise BadAgent(f"perform() was called inside {inside}. {mend_breach(PERFORM)}")
        backend = backend_for(self.agent)
        if self.conversation and self.store is not None:
            from greenroom.store.conversations import Conversations

            self.ledger = Conversations(self.store.database).ledger(self.conversation)
        if id(self.ledger) in _AT_WORK:
            raise BadInput(
                "another turn of this conversation is in progress; wait until it is over."
            )
        _AT_WORK.add(id(self.ledger))
        try:
            await self._take_with(backend, on_delta)
        finally:
            _AT_WORK.discard(id(self.ledger))
        return self.ledger

    async def _take_with(self, backend: Backend, on_delta: OnDelta | None) -> None:
        if self.store is None:
            await self._go_on(backend, on_delta, None)
            return
        from greenroom.store.conversations import Conversations

        held = Conversations(self.store.database).open(self.ledger, self._owners(backend))
        try:
            await self._go_on(backend, on_delta, held)
        finally:
            held.close()

    def _owners(self, backend: Backend) -> dict[str, str]:
        app = self.owners["app"]
        if not app and not len(self.ledger):
            found = as_object(backend.snapshot).get("name") if is_object(backend.snapshot) else None
            app = found if isinstance(found, str) and found else backend.name
        return {"app": app, "user": self.owners["user"]}

    async def _go_on(
        self, backend: Backend, on_delta: OnDelta | None, held: "OpenConversation | None"
    ) -> None:
        def on_event(event: Event) -> None:
            if held is not None:
                held.record(event)
            if world.spoken is not None:
                world.spoken.see(event)
            if self.on_event is not None:
                self.on_event(event)

        first = started(self.ledger)
        run_id = first.run_id if first else held.id if held else "conversation"
        lent = Resources(self.resources)
        world = LiveTurnWorld(self.ledger, run_id=run_id, on_event=on_event, resources=lent)
        self._equip(world, backend, on_delta)
        self._begin(backend, world, {} if held is None else held.kept)
        try:
            async with asyncio.timeout(self.seconds):
                outcome = await self._talk_hooked(backend, world)
                if world.spoken is not None:
                    await world.spoken.finish()
        except TimeoutError as error:
            raise TimeUp(
                f"the agent did not answer within {self.seconds:g} s. What happened is kept: "
                f"perform(agent, ledger=…) continues from there, and a tool that was interrupted is not repeated."
            ) from error
        finally:
            try:
                await lent.close()
            finally:
                if world.middleware is not None:
                    await world.middleware.close()
        if isinstance(outcome, Failed):
            raise outcome.error

    def _equip(self, world: "LiveTurnWorld", backend: Backend, on_delta: OnDelta | None) -> None:
        """Give the world of this turn its limit, its listener and its middleware."""
        world.calls_left = self.max_model_calls
        world.model = getattr(backend, "answered_by", None)
        if on_delta is not None:
            is_native = isinstance(backend, NativeBackend)
            world.spoken = Spoken(on_delta, by_parts=is_native)
            if is_native or "pieces" not in backend.supports:
                world.door = world.spoken.at
        if self.middleware:
            from greenroom.world.middleware.attachment import attach_to  # most turns have none

            attach_to(world, self.middleware, hooks_heard(backend), backend.name)

    def _begin(self, backend: Backend, world: "LiveTurnWorld", kept: State) -> None:
        """Open the ledger, or check that it is this agent's and bring the state of its owners up to date."""
        first, given = started(self.ledger), self.state
        if first is None:
            state: dict[str, Any] = {scope: dict(held) for scope, held in kept.items() if held}
            for scope, held in given.items():
                state[scope] = {**state.get(scope, {}), **held}
            world.record(
                RunStarted(
                    run_id=world.run_id, agent=backend.snapshot, digest=backend.digest, state=state
                )
            )
            return
        if first.digest != backend.digest:
            raise BadLedger(
                f"the agent has changed since conversation {first.run_id!r} began ({first.digest}, now "
                f"{backend.digest}). Continue it with the agent that began it, or begin another one."
            )
        if ended(self.ledger) is not None:
            raise BadLedger(f"conversation {first.run_id!r} is over; begin another one.")
        world.record(RunResumed())
        now = self.ledger.fold()
        news = {scope: {**kept.get(scope, {}), **given.get(scope, {})} for scope in {*kept, *given}}
        changes = [
            Change(scope, (key,), "set", value)
            for scope in sorted(news)
            for key, value in news[scope].items()
            if now.get(scope, {}).get(key, MISSING) != value
        ]
        changes += [
            Change(scope, (key,), "delete")
            for scope in sorted(kept)
            for key in now.get(scope, {})
            if key not in news[scope]
        ]
        if changes:
            world.record(StateChanged(changes=tuple(changes)))

    async def _talk_hooked(self, backend: Backend, world: "LiveTurnWorld") -> Advance:
        """The turn, inside the `around_run` hooks of middleware."""
        hooks = world.middleware
        if hooks is None:
            return await self._talk(backend, world)
        async with hooks.around("around_run"):
            outcome = await self._talk(backend, world)
        await hooks.after_run()
        return outcome

    async def _advance(self, backend: Backend, world: "LiveTurnWorld") -> Advance:
        if world.middleware is None:
            return await backend.advance(self.ledger, world)
        return await advance_hooked(backend, world, world.middleware)

    async def _talk(self, backend: Backend, world: "LiveTurnWorld") -> Advance:
        """Let the agent finish what was interrupted, then get the message, then answer."""
        index, outcome = self.ledger.index_of(), None
        if index.open_invocation is not None:
            outcome = await self._advance(backend, world)
            if isinstance(outcome, Failed):
                return outcome  # the user should see the failure first, and decide what to do
        elif index.invocations:
            last = index.invocations_ended[next(reversed(index.invocations))]
            if last.outcome == "finished":
                raise BadInput("the agent has ended this conversation; begin another one.")
        if isinstance(outcome, Waiting) and (self.message is not None or self.answers):
            given = answers_to(outcome.yields, self.answers, self.message, self.attachments)
            world.record(given)
        elif self.answers:
            raise BadInput(
                f"the agent does not wait for an answer, but got {', '.join(self.answers)}."
            )
        elif self.message is not None:
            hooks = world.middleware
            text = self.message if hooks is None else await hooks.heard(self.message)
            world.record(UserSaid(text=text, attachments=self.attachments))
        elif outcome is not None:
            return outcome
        elif index.invocations and not _is_unheard(index):
            raise BadInput("the agent has answered; give a message to continue.")
        return await self._advance(backend, world)


def _is_unheard(index: VoiceIndex) -> bool:
    """Whether there was an interruption between the user's last message and the agent's turn."""
    last = index.invocations_ended[next(reversed(index.invocations))]
    return bool(index.said) and index.said[-1].seq > last.seq
