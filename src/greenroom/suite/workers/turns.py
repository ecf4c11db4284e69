"""Turns to ask a model, for processes that share one pace.

A worker asks for every turn and reports how the call went; its parent, or the relay on its node, gives
turns at the pace of the model. So a rate limit holds for all workers together.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any

from msgspec import Struct

from greenroom.suite.workers.wire import TURN, Outbox
from greenroom.world.pacer import Pace, TimeLeft

Answer = Callable[[dict[str, Any]], None]


class AskedPace:
    """The pace of a model, as a worker knows it: by asking its parent."""

    def __init__(self, outbox: Outbox, model: str) -> None:
        self.is_opening = True
        self._outbox = outbox
        self._model = model

    async def turn(self, left: TimeLeft) -> float:
        """Wait until the parent gives the next turn; the seconds it would take if there is less time than that."""
        loop = asyncio.get_running_loop()
        given: asyncio.Future[float] = loop.create_future()

        def tell(wait: float) -> None:
            loop.call_soon_threadsafe(lambda: given.done() or given.set_result(wait))

        self._outbox.ask_turn(self._model, left(), tell)
        return await given

    def answered(self) -> None:
        """Report a reply."""
        self.is_opening = False
        self._outbox.tell(TURN, None, {"answered": self._model})

    def refused(self, begun: float, wait: float) -> None:
        """Report that no call should begin for `wait` seconds."""
        ago = perf_counter() - begun
        self._outbox.tell(TURN, None, {"refused": self._model, "ago": ago, "wait": wait})


class _Asker(Struct):
    number: int
    until: float
    answer: Answer

    def give(self, wait: float = 0.0) -> None:
        self.answer({"turn": self.number, "wait": wait})


class TurnGiver:
    """Gives turns in the order in which they are asked for, by the pace of each model."""

    def __init__(self, pace_of: Callable[[str, bool], Pace]) -> None:
        self._pace_of = pace_of
        self._waiting: dict[str, deque[_Asker]] = {}
        self._next_at: dict[str, float] = {}
        """When the next turn of a model is due, if any worker waits for one."""
        self._serving: set[asyncio.Task[None]] = set()

    def receive(self, message: dict[str, Any], answer: Answer) -> None:
        """Handle a worker's message; `answer` sends it the turn that it waits for."""
        match message:
            case {"ask": int(number), "model": str(model), "left": left}:
                asker = _Asker(number, perf_counter() + float(left), answer)
                self._ask(model, asker)
            case {"answered": str(model)}:
                self._pace_of(model, True).answered()
            case {"refused": str(model), "ago": ago, "wait": wait}:
                self._pace_of(model, False).refused(perf_counter() - float(ago), float(wait))
            case _:
                raise ValueError(f"{message!r} is not a turn message")

    def _ask(self, model: str, asker: _Asker) -> None:
        if model in self._waiting:
            if (next_at := self._next_at.get(model, 0.0)) > asker.until:
                asker.give(next_at - perf_counter())
            else:
                self._waiting[model].append(asker)
        elif not self._pace_of(model, True).take():
            asker.give()
        else:
            self._waiting[model] = deque([asker])
            task = asyncio.ensure_future(self._serve(model))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, model: str) -> None:
        """Give turns until no worker waits. One that has less time left than the wait takes gets an error."""
        waiting, pace = self._waiting[model], self._pace_of(model, True)
        while waiting:
            if wait := pace.take():
                next_at = self._next_at[model] = perf_counter() + wait
                for asker in [one for one in waiting if one.until < next_at]:
                    asker.give(wait)
                    waiting.remove(asker)
                if waiting:
                    await asyncio.sleep(wait)
            else:
                waiting.popleft().give()
        del self._waiting[model]
        self._next_at.pop(model, None)

    def close(self) -> None:
        """Give no more turns."""
        for task in self._serving:
            task.cancel()
        self._waiting.clear()
