"""A model that continues without attachments it cannot read: it gets their names instead."""

from msgspec.structs import replace

from greenroom.errors import BadAttachment, RequestRefused
from greenroom.ledger.messages import Message
from greenroom.models.model import Model, ModelReply, ModelRequest, OnDelta, model_name


class NamingModel:
    """Shows a model the attachments, or only their names if the model refuses them."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's own name."""
        return model_name(self._model)

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The model's answer; if necessary, to the names alone."""
        try:
            return await self._model.respond(request, on_delta)
        except (RequestRefused, BadAttachment):
            if not any(message.attachments for message in request.messages):
                raise
        named = tuple(map(_named, request.messages))
        return await self._model.respond(replace(request, messages=named), on_delta)

    async def get_ready(self) -> None:
        """Load and open whatever is needed to ask the model."""
        get_ready = getattr(self._model, "get_ready", None)
        if get_ready is not None:
            await get_ready()


def _named(message: Message) -> Message:
    names = [f"[attached, but you cannot see it: {one}]" for one in message.attachments]
    text = "\n".join([*([message.text] if message.text else []), *names])
    return Message(message.role, text, message.calls, message.call_id, message.tool)
