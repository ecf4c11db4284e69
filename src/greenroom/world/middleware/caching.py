"""Replies that are given again when an agent asks the very same question."""

from pathlib import Path
from typing import ClassVar

from greenroom.ledger.events import Source
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.answers import AnswerCache, key_of
from greenroom.world.middleware.protocol import Middleware

PLACE = ".greenroom/replies"


def cache(folder: str | Path = PLACE) -> "Cache":
    """Keeps replies in a folder, and gives them to the same question without asking the model.

    Such replies are labelled `cached`, and cost nothing. Replies that call tools are not kept.
    """
    return Cache(AnswerCache(folder))


class Cache(Middleware):
    """A folder of replies."""

    name = "cache"
    source: ClassVar[Source] = "cached"
    needs = ("before_model", "after_model")

    def __init__(self, answers: AnswerCache) -> None:
        self._answers = answers

    async def before_model(self, request: ModelRequest) -> ModelReply | str | None:
        """The reply that was kept."""
        found = self._answers.get(key_of(request, request.n))
        return found if found is not None and not found.calls else None

    async def after_model(
        self, request: ModelRequest, reply: ModelReply
    ) -> ModelReply | str | None:
        """Keep the reply, unless it belongs to this run alone."""
        if not reply.calls and reply.text:
            self._answers.put(key_of(request, request.n), reply)
