"""The life of a separate process: it calls functions for another, inside the fence, one after another.

The fence goes up before any code of the author is imported and stays up until the process ends. Nothing
acts here: the other process calls tools, asks models and has the clock.
"""

import asyncio
import inspect
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from itertools import count
from threading import Lock, Thread
from typing import Any, NoReturn, cast

from msgspec import convert, to_builtins

from greenroom.agents.boundaries import CodePlace, code_place
from greenroom.agents.deciders import named_arguments
from greenroom.agents.tools import Tool
from greenroom.backends.native.children import SPEAKS, Message
from greenroom.backends.native.failures import failure
from greenroom.backends.native.steps import yielded
from greenroom.errors import BadAgent, FenceBreach, FenceNotHeld, Refusal, ToolRefused
from greenroom.ledger.changes import unwrapped
from greenroom.ledger.events import Event, Noted, RunStarted
from greenroom.ledger.identity import code_identity
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import Json, plain
from greenroom.simulation.fence import (
    FencedExecutor,
    FencedScope,
    enclose,
    not_held,
    strays,
)
from greenroom.world.call_context import answered_by, guarded, placed
from greenroom.world.exits import tried_to_exit
from greenroom.world.records import describe_error, ours, raised_before
from greenroom.world.threads import expected
from greenroom.world.world import Context, Returned, ToolRequest


def main() -> None:
    """Call what the other process asks for on standard input, until that is closed."""
    # What the author's code prints must not get between the lines.
    inbox, outbox = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other one, which ends this
    with enclose("a separate process"):
        asyncio.run(_serve(Wire(inbox, outbox)))


class Wire:
    """The connection to the other process."""

    def __init__(self, inbox: int, outbox: int) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._writing = Lock()
        self._numbers = count()
        self._asked: dict[int, Future[Message]] = {}

    def send(self, message: Message) -> None:
        """Send a message, whole."""
        line = json.dumps(message).encode() + b"\n"
        with self._writing:
            while line:
                line = line[os.write(self._outbox, line) :]

    def ask(self, **what: object) -> "Future[Message]":
        """Ask the other process; its answer, when it comes."""
        number = next(self._numbers)
        answer = self._asked[number] = Future[Message]()
        self.send({"ask": number, **what})
        return answer

    def calls(self) -> "asyncio.Queue[Message]":
        """The calls as they come, read by a thread: the loop may be blocked."""
        loop, calls = asyncio.get_running_loop(), asyncio.Queue[Message]()

        def listen() -> None:
            with os.fdopen(self._inbox, "rb") as lines:
                for line in lines:
                    match json.loads(line):
                        case {"answer": int(number)} as answer:  # pyright: ignore[reportUnknownVariableType]
                            waiting = self._asked.pop(number)
                            # A caller that gave up waiting, by its own timeout, takes no answer.
                            if waiting.set_running_or_notify_cancel():
                                waiting.set_result(cast("Message", answer))
                        case {"call": call}:
                            loop.call_soon_threadsafe(calls.put_nowait, call)
                        case _:
                            break
            os._exit(0)  # the other process is gone

        Thread(target=listen, name="greenroom-node", daemon=True).start()
        return calls


def _given(answer: Message) -> Json:
    """The value of an answer; what the other process raised, by its name."""
    if "error" in answer:
        raise raised_before(answer["error"], answer["error_type"], answer["ours"])
    return answer["value"]


async def _serve(wire: Wire) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(FencedExecutor())
    calls = wire.calls()
    own = set(threading.enumerate())
    unheld = not_held(loop)
    wire.send({"ready": True})
    while True:
        call = await calls.get()
        wire.send({"begun": True})
        if call["speaks"] != SPEAKS:
            wire.send({"refused": _OTHER_VERSION})
            continue
        done = await FarCall(call, wire).run(unheld)
        left = [
            *(set(threading.enumerate()) - own),
            *(asyncio.all_tasks() - {asyncio.current_task()}),
        ]
        wire.send({"done": {**done, "clean": not left and not done["refused"]}})


_OTHER_VERSION = (
    "the separate process has another version of Greenroom, so the two cannot communicate; "
    "install the same version there."
)


class NodeWorld:
    """The part of a World that a function sees: the state it received, and the other process's clock."""

    deadline: float | None = None

    def __init__(self, call: Message, wire: Wire) -> None:
        self._wire = wire
        self.voice: Voice = call["voice"]
        self.run_id: str = call["run_id"]
        self.seed: int | None = call["seed"]
        path: str = call["path"]
        notes = [Noted(path=path, voice=self.voice, name=n, data=data) for n, data in call["notes"]]
        begun = RunStarted(run_id=self.run_id, voice=self.voice, state=call["state"])
        self.ledger = Ledger()
        for event in (begun, *notes):
            self.ledger.append(event, at=0.0)

    def now(self) -> float:
        """The time of the run."""
        return float(cast("float", _given(self._wire.ask(now=True).result())))

    def record(self, event: Event) -> Event:
        """Have the other process record a note; no other event is recorded from here."""
        assert isinstance(event, Noted)
        _given(self._wire.ask(note=event.name, data=event.data).result())
        return event


class FarCall:
    """One call of a function."""

    def __init__(self, call: Message, wire: Wire) -> None:
        self._call = call
        self._wire = wire
        self._refusal: Refusal | None = None
        world: Any = NodeWorld(call, wire)
        chunks = _Chunks(wire) if "chunks" in (call["wants"] or ()) else None
        self._context = Context(
            world, call["path"], input=call["input"], output=call["output"], chunks=chunks
        )

    async def run(self, unheld: tuple[str, ...]) -> Message:
        """Run the call; returns its output and its changes to the state, or an error."""
        found: Message = {"output": None, "asks": [], "error": None}
        seen = len(strays())
        scope = FencedScope(self._call["name"] or "a decision", self._breach)
        scope.host = lambda: cast(Any, _NodeHost(self._asked_for, self._refuse))
        try:
            if unheld:
                raise FenceNotHeld(
                    f"the fence cannot hold in a separate process: {'; '.join(unheld)}."
                )
            with scope:
                value, asks = unwrapped(await self._value())
            name = self._call["name"]
            where = f"the output of {name!r}" if name else "what decides"
            found |= {"output": plain(value, where), "asks": to_builtins(asks)}
            self._context.changes()
        except Exception as error:  # noqa: BLE001 - the author's error, which the other process records
            found["error"] = {**failure(error), "ours": ours(error)}
        except SystemExit as error:
            why = tried_to_exit(error)
            found["error"] = {**describe_error(why), "ours": ours(why)}
        for breach in strays()[seen:]:
            self._refuse(
                FenceBreach(
                    f"work of no case tried {breach} in a separate process; it was refused."
                )
            )
        why = self._refusal
        refused = None if why is None else {**describe_error(why), "ours": ours(why)}
        return {**found, "refused": refused, "changes": self._changes()}

    def _changes(self) -> list[object]:
        try:
            return to_builtins(self._context.changes())
        except Exception:  # noqa: BLE001 - the error is reported already
            return []

    async def _value(self) -> Any:
        call = self._call
        code = self._code()
        with placed(call["path"]), answered_by(self._route):
            if call["wants"] is None:
                return to_builtins(tuple(code(self._context.held(), self._context)))
            output: Any = code(**named_arguments(tuple(call["wants"]), self._context, code))
            if isinstance(output, AsyncIterator):
                return await yielded(
                    call["name"], cast("AsyncIterator[object]", output), self._hand_on
                )
            return await output if inspect.isawaitable(output) else output

    def _code(self) -> Callable[..., Any]:
        """The function, imported if need be; one with other code than in the other process is refused."""
        place, wanted = convert(self._call["place"], CodePlace), self._call["code"]
        sys.path[:] = dict.fromkeys(("", *sys.path))  # as when `python` is started here
        try:
            with guarded(self._refuse_on_import):
                code = place.find()
        except (ImportError, LookupError, AttributeError, OSError) as error:
            raise BadAgent(
                f"the separate process does not find {place.module}:{place.name}: {describe_error(error)['error']}."
            ) from error
        if (held := code_identity(code)) != wanted:
            raise BadAgent(
                f"the separate process has other code: {held}, and not {wanted}. Bring both to one version."
            )
        return code

    def _hand_on(self, piece: str) -> Awaitable[Message]:
        return asyncio.wrap_future(self._wire.ask(piece=piece))

    # Calls that the other process answers, and those that are refused

    def _route(self, tool: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        from pydantic_core import to_jsonable_python

        assert isinstance(tool, Tool)
        answer = self._asked_for(tool, to_jsonable_python(tool.bound(args, kwargs)))
        if tool.is_awaited:
            return _awaited(answer)
        return _given(answer.result())

    def _asked_for(self, tool: Tool, args: Json) -> "Future[Message]":
        """The answer of the other process to a tool that is called here, when it comes."""
        try:
            place = to_builtins(code_place(cast(Any, tool)))
        except LookupError as error:
            raise self._refuse(
                ToolRefused(f"code that runs apart called a tool, but {error}; it was not run.")
            ) from None
        return self._wire.ask(tool=tool.name, args=args, place=place)

    def _breach(self, breach: object) -> None:
        self._refuse(
            FenceBreach(
                f"code that runs apart tried to reach the outside by {breach}; the fence refused. Let a "
                f"tool do it, which the process that runs the case calls."
            )
        )

    def _refuse_on_import(self, _: object, tool: str) -> NoReturn:
        why = f"tool {tool!r} was called while its file was imported; it was not run."
        raise self._refuse(ToolRefused(why))

    def _refuse(self, error: Refusal) -> Refusal:
        self._refusal = self._refusal or error
        return error


async def _awaited(answer: "Future[Message]") -> Json:
    return _given(await expected(asyncio.wrap_future(answer)))


class _NodeHost:
    """Answers tools that are called in a thread, and refuses agents of other frameworks.

    The models of such an agent would be asked from this process.
    """

    is_answered = False

    def __init__(self, ask: Callable[[Tool, Json], "Future[Message]"], refuse: Any) -> None:
        self._ask = ask
        self._refuse = refuse

    async def call_model(self, request: Any, *_: Any) -> NoReturn:
        """Refuse it."""
        raise self._refused(f"the model {request.model!r}")

    async def call_tool(self, request: ToolRequest, *_: object) -> Returned:
        """The other process's answer to a tool of ours."""
        if isinstance(request.origin, Tool):
            return Returned(await _awaited(self._ask(request.origin, dict(request.args))))
        raise self._refused(f"the tool {request.tool!r}")

    def _refused(self, what: str) -> Refusal:
        return self._refuse(
            FenceBreach(
                f"an agent of another framework asked for {what} in a separate process; it was refused. Run "
                f"that agent in a step that is not apart(…)."
            )
        )

    def refuse(self, error: Any) -> Any:
        """Let an error end the trial."""
        return self._refuse(error) if isinstance(error, Refusal) else error

    def new_id(self, *parts: object) -> str:
        """An id that is not used."""
        return "-".join(map(str, parts))

    def begin(self, place: str) -> None:
        """Nothing begins here."""


class _Chunks:
    """The pieces of what the part before says, asked for one by one."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> Any:
        pieces = cast("list[Any]", await _awaited(self._wire.ask(next=True)))
        if not pieces:
            raise StopAsyncIteration
        piece = pieces[0]
        # That of a branch came with the branch's name.
        return tuple(cast("list[str]", piece)) if isinstance(piece, list) else piece

    def __iter__(self) -> NoReturn:
        raise BadAgent(
            "`chunks` arrive as they are written: read them with `async for`, in an async step."
        )
