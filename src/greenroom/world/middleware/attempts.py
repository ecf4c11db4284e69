"""Middleware around attempts: around each real call of a model, inside the pacer."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from greenroom.errors import MiddlewareFailed
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.models.replies import checked_reply
from greenroom.world.call_context import asking
from greenroom.world.middleware.current import outside_hooks
from greenroom.world.middleware.names import name_of
from greenroom.world.world import FixedBody

if TYPE_CHECKING:
    from greenroom.world.middleware.run import RunMiddleware

Ask = Callable[[ModelRequest], Awaitable[ModelReply]]
"""Makes one attempt to ask the model, through the middleware further inside."""
Opening = Callable[[], AbstractContextManager[object]]


class Attempts:
    """A model's body with middleware around it; the fence opens only where the model is asked."""

    def __init__(self, hooks: "RunMiddleware", body: ModelBody, opening: Opening) -> None:
        self._hooks = hooks
        self._body = body
        self._opening = opening

    async def ask(self, request: ModelRequest, on_delta: OnDelta | None) -> ModelReply:
        """One attempt, with everything around it."""

        async def innermost(asked: ModelRequest) -> ModelReply:
            if asked is not request and asked != request and isinstance(self._body, FixedBody):
                raise MiddlewareFailed(
                    "middleware changed a request, but the agent's framework sends its own to the "
                    "model unchanged. Change it with the means of the framework, or use an agent "
                    "of Greenroom."
                )
            # What the model does in turn does not count as work of a hook.
            with self._opening(), asking(), outside_hooks():
                return checked_reply(await self._body(asked, on_delta), asked.model)

        ask: Ask = innermost
        for member, hook in reversed(self._hooks.listeners("around_attempt")):
            ask = self._around(member, hook, ask)
        return await ask(request)

    def _around(self, member: object, hook: Callable[..., Awaitable[object]], inner: Ask) -> Ask:
        async def attempt(request: ModelRequest) -> ModelReply:
            replies, errors = list[ModelReply](), list[Exception]()

            async def ask(asked: ModelRequest) -> ModelReply:
                if replies:
                    raise MiddlewareFailed(
                        f"middleware {name_of(member)!r} asked a model again that had answered: the "
                        f"first reply would be paid for and lost. Ask again only after an error."
                    )
                try:
                    reply = await inner(asked)
                except Exception as error:
                    errors.append(error)
                    raise
                replies.append(reply)
                return reply

            reply = await self._hooks.call(member, "around_attempt", hook, request, ask, own=errors)
            return self._hooks.reply(member, "around_attempt", reply, replies[-1:])

        return attempt

    async def get_ready(self) -> None:
        """Load the model's client, if it has one."""
        get_ready = getattr(getattr(self._body, "__self__", None), "get_ready", None)
        if get_ready is not None:
            with self._opening():
                await get_ready()
