"""A world that goes on after a cut: what its ledger has an answer to is not asked again."""

from collections import defaultdict, deque
from dataclasses import replace

from greenroom.ledger.events import ModelCalled, ModelReplied
from greenroom.ledger.ledger import Ledger
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.answers import key_of
from greenroom.world.around import Around
from greenroom.world.world import World


class RememberingWorld(Around):
    """Answers from its own ledger first, the same question as often as it was answered there.

    It writes the digest of each question down, which is how an answer is found again. `trial` names
    the trial that is asked about.
    """

    __slots__ = ("_answers", "trial")

    def __init__(self, inner: World, trial: str = "") -> None:
        super().__init__(inner)
        self.trial = trial
        self._answers = _answers_in(inner.ledger)

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The answer that was given before the cut; else the world inside is asked."""
        digest = key_of(request, 0)
        known = self._answers[digest].popleft() if self._answers.get(digest) else None
        if known is None:
            return await self.inner.call_model(replace(request, digest=digest), body, on_delta)
        if on_delta is not None and known.text:
            on_delta(known.text)
        return ModelReply(
            known.text, known.calls, known.usage, known.cost, known.prices, known.model
        )


def trial_of(world: World) -> str:
    """The name of the trial that is asked about in a world; "" if nobody said."""
    while isinstance(world, Around):
        if isinstance(world, RememberingWorld):
            return world.trial
        world = world.inner
    return ""


def _answers_in(ledger: Ledger) -> dict[str, deque[ModelReplied]]:
    asked: dict[tuple[str, str, int], str] = {}
    found: dict[str, deque[ModelReplied]] = defaultdict(deque)
    for event in ledger:
        if isinstance(event, ModelCalled) and event.digest:
            asked[event.path, event.node, event.n] = event.digest
        elif isinstance(event, ModelReplied):
            digest = asked.pop((event.path, event.node, event.n), "")
            if digest:
                found[digest].append(event)
    return found
