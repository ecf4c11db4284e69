"""Replies that are reused when an agent asks the very same question."""

from pathlib import Path
from typing import ClassVar

from greenroom.ledger.events import Source
from greenroom.ledger.messages import is_blank
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.answers import AnswerCache, key_of
from greenroom.world.middleware.protocol import Middleware

PLACE = ".greenroom/replies"


def cache(folder: str | Path = PLACE) -> "Cache":
    """Keeps replies in a folder, and answers the same question from there without asking the model.

    Such replies are labelled `cached`, and cost nothing. Replies that call tools, break off or have files
    attached are not kept. Options of a model, such as its temperature, are not part of a question: empty the
    folder when they change.
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
        return self._answers.get(_key(request))

    async def after_model(
        self, request: ModelRequest, reply: ModelReply
    ) -> ModelReply | str | None:
        """Keep the reply, unless it belongs to this run alone."""
        if not reply.calls and not is_blank(reply.text) and not reply.partial:
            self._answers.put(_key(request), reply)


def _key(request: ModelRequest) -> str:
    """The key of a reply; a case with a seed or a clock has keys of its own."""
    case = [] if request.seed is None else [f"seed {request.seed}"]
    case += [] if request.now is None else [f"now {request.now}"]
    return key_of(request, request.n, ", ".join(case))
