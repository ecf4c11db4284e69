"""Resources: what a tool's body needs in addition to its arguments, such as a connection.

No model sees them. One is opened when a body that needs it runs for real, once for all bodies of a
trial, and closed when the trial is over.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from threading import Lock
from typing import Any

from greenroom.errors import BadInput, GreenroomError, RunBroke
from greenroom.ledger.origin import summarize_error
from greenroom.world.threads import expected, in_thread

Factory = Callable[[], object]
"""Opens a resource: a function that returns, awaits or yields it, or gives a context manager."""
Factories = Mapping[str, Factory]
_Leave = Callable[[], Awaitable[object]]


class _GivenUp(Exception):
    """The call that was opening a resource was stopped; another may try."""


class Resources:
    """The resources of one trial, opened when they are first needed."""

    def __init__(self, factories: Factories | None = None) -> None:
        self._factories: Factories = factories or {}
        self._opened: dict[str, Future[object]] = {}
        self._to_leave: list[tuple[str, _Leave]] = []
        self._lock = Lock()
        self.hosts: set[str] = set()
        """The hosts that bodies with resources may reach, and so may their closing."""

    def __contains__(self, name: object) -> bool:
        return name in self._factories

    def check(self, names: Iterable[str], tool: str) -> None:
        """Refuse to run a tool whose resources were not given."""
        for name in names:
            if name not in self._factories:
                known = f" (given: {sorted(self._factories)})" if self._factories else ""
                raise BadInput(
                    f"tool {tool!r} may run for real and needs the resource {name!r}, which was not "
                    f"given{known}. Say how it is opened: resources={{{name!r}: open_{name}}}; or "
                    f"mock the tool."
                )

    async def open(self, name: str, tool: str) -> Any:
        """The resource, opened if it is not open yet; other calls that need it meanwhile wait."""
        self.check((name,), tool)
        while True:
            with self._lock:
                held = self._opened.get(name)
                mine = None
                if held is None:
                    mine = self._opened[name] = Future()
                    mine.set_running_or_notify_cancel()  # so that a waiter that is cancelled does not cancel the others
            if mine is not None:
                return await self._open_first(name, tool, mine)
            assert held is not None
            try:
                return await expected(asyncio.wrap_future(held))
            except _GivenUp:
                continue

    async def _open_first(self, name: str, tool: str, opening: "Future[Any]") -> object:
        try:
            value = await self._open(name)
        except GreenroomError as error:  # such as the fence's refusal
            opening.set_exception(error)
            raise
        except Exception as error:
            broke = RunBroke(
                f"the resource {name!r} of tool {tool!r} could not be opened: "
                f"{summarize_error(error)}. Fix the function that opens it, or mock the tool."
            )
            opening.set_exception(broke)
            raise broke from error
        except BaseException:
            with self._lock:
                del self._opened[name]
            opening.set_exception(_GivenUp())
            raise
        opening.set_result(value)
        return value

    async def _open(self, name: str) -> object:
        factory = self._factories[name]
        if inspect.isgeneratorfunction(factory):
            made: object = contextmanager(factory)()
        elif inspect.isasyncgenfunction(factory):
            made = asynccontextmanager(factory)()
        elif inspect.iscoroutinefunction(factory):
            made = await factory()
        else:
            made = await in_thread(factory)
        # Pools and connections may be awaited or entered; if entered, they are exited at the end.
        if inspect.isawaitable(made) and not hasattr(made, "__aenter__"):
            made = await made
        return await self._enter(name, made)

    async def _enter(self, name: str, made: Any) -> object:
        if hasattr(made, "__aenter__"):
            value = await made.__aenter__()
            self._to_leave.append((name, lambda: made.__aexit__(None, None, None)))
            return value
        if hasattr(made, "__enter__"):
            value = await in_thread(made.__enter__)
            if value is made:
                # Exiting a sqlite3 connection only ends its transaction, so it is closed too.
                self._leave_by_closing(name, made)
            self._to_leave.append((name, lambda: in_thread(made.__exit__, None, None, None)))
            return value
        self._leave_by_closing(name, made)
        return made

    def _leave_by_closing(self, name: str, made: object) -> None:
        close = getattr(made, "aclose", None) or getattr(made, "close", None)
        if not callable(close):
            return

        async def leave() -> None:
            done: object = close() if inspect.iscoroutinefunction(close) else await in_thread(close)
            if inspect.isawaitable(done):
                await done

        self._to_leave.append((name, leave))

    @property
    def is_open(self) -> bool:
        """Whether any resource must be closed."""
        return bool(self._to_leave)

    async def close(self) -> None:
        """Close what was opened, the last one first; RunBroke if one cannot be closed."""
        problems: list[str] = []
        while self._to_leave:
            name, leave = self._to_leave.pop()
            try:
                await leave()
            except Exception as error:  # noqa: BLE001 - the others are closed all the same
                problems.append(f"the resource {name!r} failed to close: {summarize_error(error)}")
        if problems:
            raise RunBroke("; ".join(problems))
