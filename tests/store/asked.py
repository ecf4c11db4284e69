"""A model that remembers who asked it, and can stop the run in the middle of an answer."""

import asyncio
from collections.abc import Callable
from typing import Any

from greenroom import Scripted
from greenroom.models import ModelReply, ModelRequest
from greenroom.models.model import OnDelta
from greenroom.suite.cancel import Cancel

Answers = Callable[[ModelRequest], Any]


class Asked:
    """Answers by a function. At its `cut`-th question it cancels the run and says nothing."""

    name = "asked"

    def __init__(self, answers: Answers, cut: int = 0) -> None:
        self.questions: list[str] = []
        self.cancel = Cancel()
        self.is_cut = asyncio.Event()
        self._cut = cut
        self._answers = Scripted(then=answers)

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The answer, unless this is where the run is cut."""
        self.questions.append(f"{request.agent}:{request.last}")
        if len(self.questions) == self._cut:
            self.is_cut.set()
            self.cancel.cancel("cut by the test")
            await asyncio.sleep(3600)
        return await self._answers.respond(request, on_delta)

    @property
    def count(self) -> int:
        """How often it was asked."""
        return len(self.questions)
