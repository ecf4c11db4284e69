"""The work of this process on a task, and those who follow it."""

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct, field

from greenroom.apps.serving.requests import RpcError
from greenroom.apps.serving.tasks import ANSWER, ServedTask
from greenroom.ledger.events import (
    Event,
    InvocationStarted,
    ModelCalled,
    NodeStarted,
    ToolCalled,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, as_text
from greenroom.simulation import Restarted

_TOLD = (InvocationStarted, NodeStarted, ModelCalled, ToolCalled)
"""Events that followers of a task are notified of, by kind only."""

Update = dict[str, Json]


class Work(Struct, eq=False):
    """A task that this process is working on."""

    task: str
    context: str
    ledger: Ledger
    is_canceled: bool = False
    """Whether the other side no longer wants an answer; otherwise stopped work is resumed later."""
    doing: "asyncio.Task[None] | None" = None
    pieces: list[str] = field(default_factory=list[str])
    listeners: list["asyncio.Queue[Update | None]"] = field(
        default_factory=list["asyncio.Queue[Update | None]"]
    )

    def on_delta(self, piece: str) -> None:
        """Send followers the next piece of the answer."""
        if isinstance(piece, Restarted):
            self.pieces.clear()  # the next piece begins the artifact again
        elif piece:
            self.pieces.append(piece)
            self._tell_artifact([{"text": piece}], append=len(self.pieces) > 1)

    def on_event(self, event: Event) -> None:
        """Tell followers that something happened, but not what it contains."""
        if isinstance(event, _TOLD):
            kind: Json = {"event": type(event).__name__}
            self._tell_status({"state": "TASK_STATE_WORKING"}, {"metadata": kind})

    def finish(self, task: ServedTask) -> None:
        """Tell followers how it ended."""
        answer = task.artifact()
        if answer is not None and "".join(self.pieces) != as_text(task.output):
            self._tell_artifact(answer["parts"], append=False, last=True)
        self._tell_status(task.status(), {})
        for queue in self.listeners:
            queue.put_nowait(None)

    def follow(self, task: ServedTask) -> AsyncIterator[Update]:
        """The task as it is now, and then every change, until it rests."""
        queue: asyncio.Queue[Update | None] = asyncio.Queue()
        self.listeners.append(queue)
        data = task.data()
        if self.pieces:
            data["artifacts"] = [{"artifactId": ANSWER, "parts": [{"text": "".join(self.pieces)}]}]
        return self._updates(queue, data)

    async def _updates(
        self, queue: "asyncio.Queue[Update | None]", task: Json
    ) -> AsyncIterator[Update]:
        try:
            yield {"task": task}
            while (update := await queue.get()) is not None:
                yield update
            await self.rested()
        finally:
            self.listeners.remove(queue)

    async def rested(self) -> None:
        """Return when the work is over; RpcError if its message was refused."""
        if self.doing is None:
            return
        await asyncio.wait([self.doing])
        error = None if self.doing.cancelled() else self.doing.exception()
        if isinstance(error, RpcError):
            raise error

    def _tell_status(self, status: Json, more: Update) -> None:
        update = {"taskId": self.task, "contextId": self.context, "status": status}
        self._tell({"statusUpdate": {**update, **more}})

    def _tell_artifact(self, parts: Json, *, append: bool, last: bool = False) -> None:
        update: Json = {
            "taskId": self.task,
            "contextId": self.context,
            "artifact": {"artifactId": ANSWER, "parts": parts},
            "append": append,
            "lastChunk": last,
        }
        self._tell({"artifactUpdate": update})

    def _tell(self, update: Update) -> None:
        for queue in self.listeners:
            queue.put_nowait(update)
