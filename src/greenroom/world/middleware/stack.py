"""The middleware of an evaluation, in an order that can be resumed."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from greenroom.errors import BadInput, GreenroomError
from greenroom.world.middleware.names import failed, name_of
from greenroom.world.middleware.protocol import HOOKS, Middleware, hook_of

CLOSING: Final = 10.0
"""Seconds that each of them gets to close."""


class MiddlewareStack:
    """Middleware from the outside in: around the World first, then around each attempt.

    The World gets each question once; middleware around attempts may see it several times. Retries outside
    of the recording would leave a failure in the ledger, at which a resumed run would end.
    """

    def __init__(self, given: Iterable[Any]) -> None:
        self.members: Sequence[object] = tuple(given)
        for member in self.members:
            if not is_middleware(member):
                raise BadInput(
                    f"middleware={member!r} has none of the hooks {', '.join(HOOKS)}. Subclass "
                    f"greenroom.world.Middleware."
                )
        _check_order(self.members)
        self.holds_pieces = any(getattr(one, "holds_pieces", False) for one in self.members)
        self.plugins = [one.plugin for one in self.members if getattr(one, "plugin", None)]
        """The plug-ins of middleware, which receive results."""
        self.approved = frozenset(
            name for one in self.members for name in getattr(one, "approves", ())
        )
        """The tools that may wait for an approval."""
        self.listeners: dict[str, Sequence[tuple[Any, Callable[..., Any]]]] = {}
        for hook in HOOKS:
            found = [(one, method) for one in self.members if (method := hook_of(one, hook))]
            if found:
                self.listeners[hook] = tuple(found)

    @classmethod
    def of(cls, given: "Iterable[object] | MiddlewareStack") -> "MiddlewareStack | None":
        """A stack of these; None if there are none."""
        if isinstance(given, MiddlewareStack):
            return given
        members = tuple(given)
        return cls(members) if members else None

    def observers(self) -> "MiddlewareStack | None":
        """The middleware that also observes the model calls of users and judges, without changing them."""
        members = [one for one in self.members if getattr(one, "observes", False)]
        if not members:
            return None
        found, seen = MiddlewareStack(members), ("around_call", "on_event")
        found.listeners = {hook: found.listeners[hook] for hook in seen if hook in found.listeners}
        return found

    async def close(self) -> None:
        """Close all middleware within the time limit; the first that fails is named at the end."""
        broke: GreenroomError | None = None
        for member, method in self.listeners.get("close", ()):
            limit = asyncio.timeout(CLOSING)
            try:
                async with limit:
                    answer = method()
                    if inspect.isawaitable(answer):
                        await answer
            except GreenroomError as error:
                broke = broke or error
            except Exception as error:  # noqa: BLE001 - the author's code
                why = TimeoutError(f"it took longer than {CLOSING:g} s")
                broke = broke or failed(member, "close", why if limit.expired() else error)
        if broke is not None:
            raise broke

    def check_heard(self, heard: Iterable[str], backend: str) -> None:
        """Refuse middleware whose hooks would never be called."""
        known = set(heard)
        for member in self.members:
            lacking = [hook for hook in getattr(member, "needs", ()) if hook not in known]
            if lacking:
                raise BadInput(
                    f"middleware {name_of(member)!r} needs {', '.join(lacking)}, which an agent run "
                    f"by {backend!r} does not call. Leave it out, or use an agent whose calls can be "
                    f"seen."
                )


def is_middleware(thing: object) -> bool:
    """Whether it defines at least one hook; a class does not count, only an object.

    Generators, coroutines and files can be closed too: `close` alone makes nothing middleware.
    """
    if isinstance(thing, type):
        return False
    hooks = HOOKS if isinstance(thing, Middleware) else [hook for hook in HOOKS if hook != "close"]
    return any(hook_of(thing, hook) for hook in hooks)


def _height(member: object) -> int:
    """0 around the World, 1 around each attempt."""
    return 1 if hook_of(member, "around_attempt") else 0


def _check_order(members: Sequence[object]) -> None:
    heights = [_height(one) for one in members]
    if heights != sorted(heights):
        right = sorted(members, key=_height)
        inner = ", ".join(name_of(one) for one in members if _height(one))
        raise BadInput(
            f"middleware is in an order that cannot be resumed: {inner} is around each attempt "
            f"to ask a model, and must come after middleware that is around the whole question. Give "
            f"middleware=[{', '.join(map(name_of, right))}]."
        )
