"""Answers of earlier trials, reused wherever the same is asked: models and tools are asked only for the rest."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from greenroom.errors import ReplayDrifted
from greenroom.ledger.events import ToolFailed, ToolReturned
from greenroom.ledger.interactions import model_ends, model_inputs
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelReply, ModelRequest, OnDelta
from greenroom.world.replayed import (
    RecordedCall,
    RecordedQuestion,
    inputs_of,
    key_of_question,
    repeat_call,
    repeat_reply,
)
from greenroom.world.world import Returned, ToolRequest, World


class KnownAnswers:
    """The answers of several trials, by question: the n-th time a question is asked, it gets its n-th answer.

    A question without an answer is asked, unless `before_asking` raises.
    """

    asks_live = True
    recorded_at = None

    def __init__(self, before_asking: Callable[[], None]) -> None:
        self._before_asking = before_asking
        self._questions: dict[Any, list[RecordedQuestion]] = defaultdict(list)
        self._calls: dict[Any, list[RecordedCall]] = defaultdict(list)
        self._asked: Counter[Any] = Counter()
        self._ledger = Ledger()

    def begin(self) -> None:
        """Begin another trial, in which nothing has been asked yet."""
        self._asked.clear()

    def learn(self, ledger: Ledger) -> None:
        """Remember what was answered in a trial."""
        self._ledger = ledger
        found: dict[Any, list[RecordedQuestion]] = defaultdict(list)
        for voice in ledger.voices:
            ends = model_ends(ledger, voice)
            for called, request in model_inputs(ledger, voice):
                end = ends.get(called.seq)
                if request is not None and end is not None:
                    key = (voice, key_of_question(called.agent, request))
                    found[key].append(RecordedQuestion(called, request, end))
        calls: dict[Any, list[RecordedCall]] = defaultdict(list)
        index = ledger.index_of()
        for called in index.issued:
            end = index.end_of(called)
            if isinstance(end, ToolReturned | ToolFailed) and (
                end.is_live or end.source == "replayed"
            ):
                calls[_key_of_call(called.tool, called.args)].append(RecordedCall(called, end))
        for key, asked in found.items():
            self._questions[key] += asked[len(self._questions[key]) :]
        for key, made in calls.items():
            self._calls[key] += made[len(self._calls[key]) :]

    async def reply(
        self, world: World, request: ModelRequest, on_delta: OnDelta | None = None
    ) -> ModelReply | None:
        """The known reply, recorded as replayed; None if the model must be asked."""
        keys = [
            (world.voice, key_of_question(request.agent, given))
            for given in inputs_of(world, request)
        ]
        key = next((one for one in keys if one in self._questions), keys[0])
        known, n = self._questions.get(key, ()), self._asked[key]
        self._asked[key] += 1
        if n < len(known):
            return await repeat_reply(world, request, known[n], on_delta, numbered=False)
        self._before_asking()
        return None

    def returned(self, world: World, request: ToolRequest) -> Returned | None:
        """The known end of a real tool's call, recorded as replayed; None if the tool must run."""
        key = _key_of_call(request.tool, request.args)
        known, n = self._calls.get(key, ()), self._asked[key]
        self._asked[key] += 1
        return repeat_call(world, request, known[n], self._ledger) if n < len(known) else None

    def unasked(self) -> ReplayDrifted | None:
        """None: a trial need not ask all that is known."""
        return None


def _key_of_call(tool: str, args: Mapping[str, Json]) -> tuple[str, str]:
    return tool, json.dumps(plain(dict(args)), sort_keys=True)
