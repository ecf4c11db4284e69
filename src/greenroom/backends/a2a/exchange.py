"""One message to a remote agent, and its outcome.

A message is recorded before it is sent. After an interruption the other agent is asked how it ended; the
message is sent again only if the other agent declares that it recognises repeated messages.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from msgspec import Struct, structs

from greenroom.agents.cards import AgentCard
from greenroom.agents.remote import FarAddress
from greenroom.backends.a2a.cards import fetched_card
from greenroom.backends.a2a.connection import BrokeOff, Connection, FarError, Unsent
from greenroom.backends.a2a.wire import (
    AT_REST,
    DONE,
    REPEATS,
    WAITS,
    FarTask,
    output_of,
)
from greenroom.errors import AgentFailed, BadValue, InDoubt
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.models.model import OnDelta, send_piece

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_STATUSES = 100


class Sent(Struct, frozen=True):
    """A message as it is recorded: the remote conversation and the ids."""

    context: str
    message: str
    task: str = ""
    """The task that it belongs to, as soon as that is known."""

    @classmethod
    def recorded(cls, data: Any) -> "Sent":
        """The message that was recorded as this."""
        return cls(str(data["context"]), str(data["message"]), str(data["task"]))


class FarAnswer(Struct, frozen=True):
    """What the other agent answered, or the question that it asks."""

    output: Json = None
    question: str = ""


class Listening(Struct, frozen=True):
    """Callbacks while the other agent works."""

    on_sent: Callable[[Sent], None]
    """Records that a message is sent, and to which task it belongs."""
    on_status: Callable[[str, str], None]
    on_answer: Callable[[], OnDelta | None] = lambda: None
    """Takes the pieces of an answer; an answer that starts over replaces the one before."""


class Exchange:
    """One message and its answer."""

    def __init__(self, address: FarAddress, sent: Sent, listening: Listening) -> None:
        self._address = address
        self._connection = Connection(address)
        self._sent = sent
        self._listening = listening
        self._task = FarTask(id=sent.task, context=sent.context)
        self._statuses = 0
        self._unreached: AgentFailed | None = None
        self._on_delta: OnDelta | None = None

    async def send(self, parts: list[Json]) -> FarAnswer:
        """Send the message, and wait for its outcome."""
        return await self._in_time(self._send(parts))

    async def ask_what_became(self, parts: list[Json]) -> FarAnswer:
        """The outcome of a message that was being sent when the run was interrupted."""
        return await self._in_time(self._resume(parts))

    async def cancel(self) -> None:
        """Ask the other agent to give the task up, if there is one; it might ignore that."""
        if self._task.id:
            with suppress(AgentFailed, TimeoutError):
                async with asyncio.timeout(1):
                    await self._connection.ask("CancelTask", {"id": self._task.id})

    async def _in_time(self, work: Coroutine[Any, Any, None]) -> FarAnswer:
        try:
            async with asyncio.timeout(self._address.seconds):
                await work
        except TimeoutError as error:
            if self._unreached is not None:
                raise self._doubt(str(self._unreached)) from error
            await self.cancel()
            raise AgentFailed(
                f"{self._connection.shown} gave no answer within {self._address.seconds:g} s. Give a "
                f"longer timeout=, or say what happens then: remote(...) // other."
            ) from error
        return self._answer()

    async def _send(self, parts: list[Json]) -> None:
        card = await self._card()
        message: dict[str, Json] = {
            "messageId": self._sent.message,
            "contextId": self._sent.context,
            "role": "ROLE_USER",
            "parts": parts,
        }
        if self._sent.task:
            message["taskId"] = self._sent.task
        self._listening.on_sent(self._sent)
        try:
            if card is not None and card.streaming:
                async for event in self._connection.follow(
                    "SendStreamingMessage", {"message": message}
                ):
                    await self._take(event)
                    if self._rests:
                        return
            else:
                at_once: Json = {"returnImmediately": True}
                params: Json = {"message": message, "configuration": at_once}
                await self._take(await self._connection.ask("SendMessage", params))
        except BrokeOff:
            if not self._task.id and not await self._find():
                raise  # it is unknown whether the message arrived
        await self._watch()

    async def _resume(self, parts: list[Json]) -> None:
        try:
            card = await self._reached()
            if card is not None and REPEATS in card.extensions:
                await self._send(parts)
            elif self._task.id or await self._find():
                await self._watch()
            else:
                raise self._doubt("it does not know it")
        except AgentFailed as error:
            raise self._doubt(str(error)) from error

    async def _reached(self) -> AgentCard | None:
        """The card of the other side; waits for it, because it may be restarting."""
        wait = _FIRST_WAIT
        while True:
            try:
                card = await self._card()
            except (Unsent, BrokeOff) as error:
                self._unreached = error
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
            else:
                self._unreached = None
                return card

    def _doubt(self, why: str) -> InDoubt:
        return InDoubt(
            f"a message was being sent to {self._connection.shown} when the run was interrupted, and "
            f"its outcome is unknown: {why}. Look there for the conversation "
            f"{self._sent.context!r}, then start the run again."
        )

    async def _card(self) -> AgentCard | None:
        """The agent's card; None if the address of its endpoint was given."""
        if self._address.is_endpoint:
            return None
        return await fetched_card(self._connection)

    async def _find(self) -> bool:
        """Look in the conversation for the task that received the message."""
        params: Json = {"contextId": self._sent.context, "historyLength": 100}
        try:
            listed = await self._connection.ask("ListTasks", params)
        except (FarError, BrokeOff, Unsent):
            return False
        tasks = listed.get("tasks") if is_object(listed) else None
        for data in tasks if isinstance(tasks, list) else []:
            task = FarTask()
            task.replace(data)
            if self._sent.message in task.heard:
                self._name(task.id)
                return True
        return False

    async def _watch(self) -> None:
        """Poll the task until it rests; waits for the other side if it is restarting."""
        wait = _FIRST_WAIT
        while not self._rests:
            if not self._task.id:
                raise AgentFailed(
                    f"{self._connection.shown} answered with neither a task nor a message."
                )
            with suppress(Unsent, BrokeOff):
                found = await self._connection.ask("GetTask", {"id": self._task.id})
                await self._take({"task": found})
            await asyncio.sleep(0 if self._rests else wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    @property
    def _rests(self) -> bool:
        """Whether there is an answer or a question; one from before this message does not count."""
        task = self._task
        is_old = task.state == WAITS and task.heard and self._sent.message not in task.heard
        return task.state in AT_REST and not is_old

    async def _take(self, event: Json) -> None:
        before = (self._task.state, self._task.said)
        piece = self._task.take(event)
        if piece:
            if self._on_delta is None or self._task.is_anew:
                self._on_delta = self._listening.on_answer()
            await send_piece(self._on_delta, piece)
        if self._task.id:
            self._name(self._task.id)
        now = (self._task.state, self._task.said)
        if now != before and self._statuses < _STATUSES:
            self._statuses += 1
            self._listening.on_status(*now)

    def _name(self, task: str) -> None:
        """Record which task it is, once."""
        self._task.id = task
        if self._sent.task != task:
            self._sent = structs.replace(self._sent, task=task)
            self._listening.on_sent(self._sent)

    def _answer(self) -> FarAnswer:
        task, shown = self._task, self._connection.shown
        if task.state == WAITS:
            return FarAnswer(question=task.said or "The agent needs more to continue.")
        if task.state != DONE:
            because = f": {task.said}" if task.said else ""
            raise AgentFailed(f"{shown} ended the task as {task.state.lower()}{because}.")
        output = output_of(task.parts)
        try:
            output = plain(task.said or None if output is None else output)
        except BadValue as error:
            raise AgentFailed(f"{shown} gave an answer that cannot be kept: {error}") from error
        if output is None or (isinstance(output, str) and is_blank(output)):
            raise AgentFailed(f"{shown} answered with nothing.")
        return FarAnswer(output)
