"""Processes that call functions for this one, each one call at a time; an idle one waits for the next.

They exchange JSON, one message per line. This process sends a call and answers the other's requests
meanwhile; the other sends its requests, and finally the result of the call.
"""

import asyncio
import atexit
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from contextvars import Context
from threading import Lock, Thread
from typing import Any, Final, cast

from greenroom.backends.task_group import begin, stop
from greenroom.errors import BadAgent
from greenroom.world.threads import in_thread

Message = dict[str, Any]
Answer = Callable[[Message], Awaitable[Message]]
Start = Callable[[], AbstractContextManager[Any]]
"""Opens the fence while a process is started."""

SPEAKS: Final = 1
"""The version of the protocol between the two."""
LONGEST: Final = 64 * 1024 * 1024
"""The maximum of bytes in one line; a process that sends a longer one is broken."""
_IDLE: Final = 4
_STARTING: Final = 120.0
_LEAVING: Final = 2.0
# Uses the sys.path of this process, because the author's code may not be found without it.
_BEGINNING: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from greenroom.simulation.node import main; main()"
)


class Child:
    """A process that was started to call functions."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.command = command
        self._hearing = Lock()
        self._unheard: list[Message | None] = []
        self._inbox: Callable[[Message | None], None] = self._unheard.append
        self._process = subprocess.Popen(
            command or _own_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        # In an empty context, because it belongs to no case and may serve several.
        reader = Thread(target=self._read, name="greenroom-child", daemon=True)
        try:
            Context().run(reader.start)
        except BaseException:  # the case that wanted it may run out of time here
            self.kill()
            raise

    def messages(self) -> "asyncio.Queue[Message | None]":
        """A queue of its messages from now on, for the running loop; None marks its end."""
        messages: asyncio.Queue[Message | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def take(message: Message | None) -> None:
            with suppress(RuntimeError):  # nothing waits in a closed loop
                loop.call_soon_threadsafe(messages.put_nowait, message)

        with self._hearing:
            for message in self._unheard:
                messages.put_nowait(message)
            self._unheard.clear()
            self._inbox = take
        return messages

    def leave(self) -> None:
        """Buffer its messages for the next caller."""
        self._inbox = self._unheard.append

    def send(self, message: Message) -> None:
        """Send it a message; does nothing if it has ended."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError, OSError):
            while (line := self._process.stdout.readline(LONGEST)).endswith(b"\n"):
                message = json.loads(line)
                is_message = isinstance(message, dict)
                self._hear(cast("Message", message) if is_message else {"said": message})
        self._hear(None)

    def _hear(self, message: Message | None) -> None:
        with self._hearing:
            self._inbox(message)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def end(self) -> str:
        """End it if it has not ended; returns how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        ended = self._process.poll()
        if ended is None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVING)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, ValueError):
                _ = pipe and pipe.close()
        return _describe_end(ended)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self.end()


def _own_command() -> list[str]:
    python = [
        sys.executable,
        *["-O"] * sys.flags.optimize,
    ]  # with asserts only if they are enabled here
    return [*python, "-c", _BEGINNING, json.dumps(sys.path)]


def _describe_end(code: int | None) -> str:
    if code is None:
        return "said something that cannot be understood"
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


# Those that wait for a call

_idle: Final[list[Child]] = []
_taking: Final = Lock()


def _take(command: tuple[str, ...]) -> Child | None:
    with _taking:
        for child in [c for c in _idle if c.command == command]:
            _idle.remove(child)
            if not child.is_gone:
                return child
            child.end()
    return None


def _give_back(child: Child) -> None:
    child.leave()
    with _taking:
        if len(_idle) < _IDLE:
            _idle.append(child)
            return
    child.kill()


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().kill()


async def make_ready(command: tuple[str, ...], start: Start) -> None:
    """Start a process that waits for a call, unless there is one; ChildProcessError if it cannot start."""
    _give_back(_take(command) or await _started(command, start))


async def call_in_child(
    command: tuple[str, ...], message: Message, answer: Answer, start: Start
) -> Message:
    """The result of a call in another process; `answer` handles its requests meanwhile.

    ChildProcessError if the process dies.
    """
    while (child := _take(command)) is not None:
        with suppress(_NotBegun):  # it died while idle, so another one takes the call
            return await _called(child, message, answer)
    return await _called(await _started(command, start), message, answer)


class _NotBegun(ChildProcessError):
    """A process died before it began the call that it was sent."""


async def _called(child: Child, message: Message, answer: Answer) -> Message:
    is_clean = False
    try:
        done = await _converse(child, {"speaks": SPEAKS, **message}, answer)
        is_clean = bool(done["clean"])
    finally:
        _give_back(child) if is_clean else child.kill()
    return done


async def _started(command: tuple[str, ...], start: Start) -> Child:
    """Start a process and wait until it is ready."""
    child, is_ready = None, False
    try:
        with start():
            child = Child(command)
        async with asyncio.timeout(_STARTING):
            first = await child.messages().get()
        is_ready = first == {"ready": True}
    except TimeoutError:
        raise ChildProcessError(f"its process was not ready within {_STARTING:g} s") from None
    except OSError as error:
        raise ChildProcessError(f"{shlex.join(command)} cannot be started: {error}") from error
    finally:
        if child is not None and not is_ready:
            child.kill()
    assert child is not None
    if not is_ready:
        how = _garbled(first) if first is not None else child.end()
        raise ChildProcessError(f"its process {how} before it was ready")
    return child


def _garbled(message: Message) -> str:
    return (
        f"said {str(message)[:80]!r} (its command must end in `greenroom node`, and print nothing)"
    )


async def _converse(child: Child, message: Message, answer: Answer) -> Message:
    """Send a call, and answer requests until it is done."""
    answering: list[asyncio.Task[None]] = []

    async def respond(asked: Message) -> None:
        await in_thread(child.send, {"answer": asked["ask"], **await answer(asked)})

    messages, has_begun = child.messages(), False
    try:
        await in_thread(child.send, {"call": message})
        while (got := await messages.get()) is not None:
            match got:
                case {"done": dict()}:
                    return got["done"]
                case {"begun": True}:
                    has_begun = True
                case {"ask": int()}:
                    answering.append(begin(respond(got)))
                case {"refused": str(why)}:
                    raise BadAgent(why)
                case _:
                    raise ChildProcessError(f"its process {_garbled(got)}")
    finally:
        await stop(answering)
    error = ChildProcessError if has_begun else _NotBegun
    raise error(f"its process {await in_thread(child.end)}")
