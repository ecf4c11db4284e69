"""Questions that a framework words itself."""

from collections.abc import Awaitable

from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta


class FixedBody:
    """A body that sends a framework's own request, whatever request it is given."""

    __slots__ = ("_body",)

    def __init__(self, body: ModelBody) -> None:
        self._body = body

    def __call__(self, request: ModelRequest, on_delta: OnDelta | None) -> Awaitable[ModelReply]:
        """Ask the model."""
        return self._body(request, on_delta)
