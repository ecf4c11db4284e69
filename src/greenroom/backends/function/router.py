"""Routes a function's calls to the World, from whatever thread or loop they are made.

A call is identified by its place: when the function starts again, the n-th call of a turn is the same n-th
call, and is answered from the ledger.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from threading import Event, Lock, Thread, get_ident
from typing import Any, Final, Generic, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from greenroom.agents.tools import Tool
from greenroom.backends.backend import DRIFTED, Yield
from greenroom.backends.foreign import jsonable
from greenroom.backends.invocation import Invocation
from greenroom.errors import BadLedger, GreenroomError
from greenroom.ledger.events import (
    ModelCalled,
    ModelFailed,
    ModelReplied,
    Noted,
    RunResumed,
    ToolCalled,
    ToolReturned,
)
from greenroom.ledger.plain import Json, plain, same
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.answers import key_of
from greenroom.world.call_context import answered_by
from greenroom.world.records import (
    ToolError,
    failing_as_recorded,
    given_again,
    raised_before,
)
from greenroom.world.threads import expected, has_loop
from greenroom.world.world import Context, Pending, SealedBody, ToolRequest

T = TypeVar("T")


class Waits(BaseException):
    """The function waits for its user. Not an `Exception`, so that `except Exception` does not catch it."""


class _Call(Struct, frozen=True):
    """One call of a tool: its place in the turn, and its arguments by name."""

    tool: Tool
    index: int
    given: dict[str, Any]


_BLOCKED: Final = 0.2
"""Seconds without an answer after which a loop counts as blocked, perhaps by a function that waits for this very call."""


class _CallFromAfar(Generic[T]):
    """A call from another thread or loop: the function's loop takes it, or its caller, if that loop is blocked."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.begun = Event()
        self._work = work
        self._taken = Lock()

    def is_mine(self) -> bool:
        """Whether whoever asks is the first one, and so the one that makes the call."""
        return self._taken.acquire(blocking=False)

    async def begin(self) -> T:
        """Make the call on the function's loop, unless its caller already does."""
        if not self.is_mine():
            raise asyncio.CancelledError
        self.begun.set()
        return await self._work()


class CallRouter:
    """The calls of one turn of one function."""

    def __init__(self, invocation: Invocation, path: str) -> None:
        self.invocation = invocation
        self.path = path
        self.waits: list[Yield] = []
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._numbers = count()
        self._asked = count()
        self._before = sum(
            replies for place, replies in invocation.index.replies.items() if place != path
        )
        self._under_way: set[asyncio.Task[Any]] = set()
        self._afar: set[Future[Any]] = set()

    def __call__(self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a tool called directly returns: something to await if the tool is async."""
        call = _Call(tool, next(self._numbers), tool.bound(args, kwargs))
        if tool.is_awaited:
            return self._later(lambda: self._answer(call))
        return self._now(lambda: self._answer(call))

    def ask(self, request: ModelRequest, body: ModelBody) -> Any:
        """A model's reply; an awaitable if an event loop is running."""
        index = next(self._asked)
        if has_loop():
            return self._later(lambda: self._reply(request, body, index))
        return self._now(lambda: self._reply(request, body, index))

    async def settle(self) -> None:
        """Let calls that have begun finish, and discard those of abandoned threads."""
        if self.waits:
            await asyncio.gather(*self._under_way, return_exceptions=True)
        for task in self._under_way:
            task.cancel()
        for future in tuple(self._afar):
            future.cancel()

    async def _later(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if asyncio.get_running_loop() is self._loop:
            return await self._started(work)
        call = _CallFromAfar(work)
        sent = expected(asyncio.wrap_future(self._sent(call.begin)))
        try:
            await asyncio.wait({sent}, timeout=_BLOCKED)
        except asyncio.CancelledError:
            sent.cancel()
            raise
        if not sent.done() and call.is_mine():
            return await work()
        return await sent

    def _now(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if get_ident() == self._thread:
            return _run_blocking(work)
        call = _CallFromAfar(work)
        sent = self._sent(call.begin)
        if not call.begun.wait(_BLOCKED) and not sent.cancelled() and call.is_mine():
            return _run_blocking(work)
        return sent.result()

    def _sent(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        future = asyncio.run_coroutine_threadsafe(self._started(work), self._loop)
        self._afar.add(future)
        future.add_done_callback(self._afar.discard)
        return future

    async def _started(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = asyncio.ensure_future(work())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await task

    async def _answer(self, call: _Call) -> Json:
        """The World's answer or the recorded one; raises Waits if the user must give it."""
        invocation, tool, path = self.invocation, call.tool, self.path
        index, world = invocation.index, invocation.world
        call_id = world.new_id(path, "call", call.index)
        args = cast("dict[str, Json]", plain(jsonable(call.given), f"arguments of {tool.name!r}"))
        known = index.called.get(call_id)
        if known is not None and not (known.tool == tool.name and same(dict(known.args), args)):
            raise self._drifted(
                known,
                f"started again at {path!r}, the function called {tool.name!r} with {args!r} where it "
                f"had called {known.tool!r} with {dict(known.args)!r}",
            )
        if call_id in index.answers:
            invocation.record_result(call_id, index.answers[call_id].value)
        end = index.results.get(call_id)
        if end is not None:
            if isinstance(end, ToolReturned):
                return plain(end.value)
            raise ToolError(end.error)
        n = index.call_number(tool.name, call_id, path)
        request = ToolRequest(call_id, tool.name, args, path, tool.yields, tool.read_only, tool, n)

        async def body(context: Context) -> Json:
            return jsonable(await tool.run(call.given, context))

        # The answering code is not part of the function: a mock that calls its tool must not be routed here.
        with answered_by(None):
            outcome = await invocation.ask(world.call_tool(request, SealedBody(body)))
        if isinstance(outcome, Pending):
            self.waits.append(invocation.result_wanted(call_id, tool.name, dict(request.args)))
            raise Waits
        if outcome.error:
            # The same error as when the function starts again: a ledger keeps only an error's message.
            raise ToolError(outcome.error)
        return plain(outcome.value)

    async def _reply(self, request: ModelRequest, body: ModelBody, index: int) -> ModelReply:
        """The model's reply, or the recorded outcome of the same request in this turn."""
        invocation, number = self.invocation, self._before + index
        steps = invocation.index.steps.get(self.path, ())
        ends = (s for s in reversed(steps) if isinstance(s, ModelReplied | ModelFailed))
        match next((end for end in ends if end.n == number), None):
            case ModelReplied() as known:
                self._check_question(request, number)
                return given_again(known, "")
            case ModelFailed() as failure:
                before = raised_before(failure.error, failure.error_type, failure.ours)
                # An error of ours ends the turn, even if the function catches it.
                raise invocation.keep(before) if isinstance(before, GreenroomError) else before
            case _:
                request = replace(request, n=number, digest=key_of(request, 0))
        with failing_as_recorded(), answered_by(None):
            return await invocation.ask(invocation.world.call_model(request, body))

    def _check_question(self, request: ModelRequest, number: int) -> None:
        """Refuse to reuse an earlier process's answer for a different question."""
        for known in self.invocation.ledger.of(ModelCalled):
            is_known = (known.path, known.n) == (self.path, number) and known.digest
            if is_known and known.seq < self._resumed_at and known.digest != key_of(request, 0):
                raise self._drifted(
                    known,
                    f"started again at {self.path!r}, the function asked something else as its "
                    f"question {number + 1}",
                )

    def _drifted(self, known: ModelCalled | ToolCalled, what: str) -> Exception:
        """The error for a function that, started again, does something else at this place than before."""
        if known.seq < self._resumed_at:
            # An earlier process recorded this; what it recorded from here on can be discarded.
            data = {"seq": known.seq, "told": what}
            self.invocation.world.record(Noted(name=DRIFTED, data=data))
        return self.invocation.keep(
            BadLedger(
                f"{what}. Make the function deterministic in what it is given, or start the run again."
            )
        )

    @property
    def _resumed_at(self) -> int:
        return max((event.seq for event in self.invocation.ledger.of(RunResumed)), default=-1)


def _run_blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work` on a new loop while the current one is blocked, as a blocking call would."""
    box: list[T | BaseException] = []
    loop = asyncio.new_event_loop()
    task = loop.create_task(work(), context=copy_context())

    def run() -> None:
        try:
            box.append(loop.run_until_complete(task))
        except BaseException as error:  # noqa: BLE001 - raised again where it was called
            box.append(error)
        finally:
            loop.close()

    thread = Thread(target=run, name="greenroom-function", daemon=True)
    thread.start()
    try:
        thread.join()
    finally:
        # Interrupted from outside: work in progress must not continue after the run.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]
