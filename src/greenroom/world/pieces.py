"""Pieces of a reply on their way from the model to their reader.

A writer need not wait until a piece is taken. One that does is held up while too many pieces wait, and so
is the stream of the provider behind it.
"""

from asyncio import Event, Future, ensure_future, gather
from collections import deque
from collections.abc import Generator
from inspect import isawaitable, iscoroutine
from time import perf_counter
from typing import Any, Generic, TypeVar

from greenroom.errors import BadAgent, BadInput
from greenroom.models.model import OnDelta

T = TypeVar("T")


class Pieces(Generic[T]):
    """Pieces to be taken one by one, by `async for`."""

    def __init__(self, hold: int | None = None) -> None:
        if hold is not None and (type(hold) is not int or hold < 1):
            raise BadInput(
                f"hold={hold!r} is not a number of pieces; give a number from 1, or None."
            )
        self._hold = hold
        self._waiting = deque[T]()
        self._is_over = False
        self._is_left = False
        self._has_some = Event()
        self._has_room = Event()

    def add(self, piece: T) -> None:
        """Let a piece wait to be taken; once the reader has left, it is dropped."""
        if not self._is_left:
            self._waiting.append(piece)
            self._has_some.set()

    async def room(self) -> None:
        """Wait until there is room for another one: less than `hold` wait."""
        while not self._is_left and self._hold and len(self._waiting) >= self._hold:
            self._has_room.clear()
            await self._has_room.wait()

    def end(self) -> None:
        """End the stream: no more pieces will come; those that wait can still be taken."""
        self._is_over = True
        self._has_some.set()

    def leave(self) -> None:
        """Stop reading: pieces that still come are dropped, and nothing waits for them."""
        self._is_left = True
        self._waiting.clear()
        self._has_room.set()
        self.end()

    def __aiter__(self) -> "Pieces[T]":
        return self

    async def __anext__(self) -> T:
        while not self._waiting and not self._is_over:
            self._has_some.clear()
            await self._has_some.wait()
        if not self._waiting:
            raise StopAsyncIteration
        self._has_room.set()
        return self._waiting.popleft()

    def __iter__(self) -> "Pieces[T]":
        raise BadAgent(
            "`chunks` arrive as they are written: read them with `async for`, in an async step."
        )


class Taken:
    """Can be awaited until all readers have taken a piece; they do so even if it is not awaited."""

    __slots__ = ("_waits",)

    def __init__(self, *waits: object) -> None:
        self._waits: list[object] = []
        for wait in waits:
            if isinstance(wait, Taken):
                self._waits += wait._waits
            else:
                self._waits.append(ensure_future(wait) if iscoroutine(wait) else wait)

    @property
    def running(self) -> list["Future[Any]"]:
        """The readers' work that has started already."""
        return [wait for wait in self._waits if isinstance(wait, Future)]

    def __await__(self) -> Generator[Any, None, None]:
        return self._all().__await__()

    async def _all(self) -> None:
        for wait in self._waits:
            if isinstance(wait, Pieces):
                await wait.room()
            elif isawaitable(wait):
                await wait


class Delivery:
    """Passes on the pieces of one reply, and knows when the first of them came."""

    __slots__ = ("_first_at", "_on_delta", "_running")

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._first_at: float | None = None
        self._running: list[Future[object]] = []

    def __call__(self, piece: str) -> Taken:
        if self._first_at is None and piece:
            self._first_at = perf_counter()
        taken = Taken(self._on_delta(piece))
        self._running = [one for one in (*self._running, *taken.running) if not _is_well(one)]
        return taken

    async def finish(self) -> None:
        """Wait for readers that got a piece and that the model has not waited for."""
        if self._running:
            await gather(*self._running)

    def first_after(self, begun: float) -> float | None:
        """Seconds from the question to its first words; None if they belong to an earlier attempt."""
        at = self._first_at
        return None if at is None or at < begun else at - begun


def _is_well(one: "Future[Any]") -> bool:
    """Whether it has ended, and has no error that must be raised."""
    return one.done() and not one.cancelled() and one.exception() is None
