"""What a ledger can answer in place of models and tools: the same question as often as it was asked."""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, structs, to_builtins

from greenroom.ledger.difference import input_difference
from greenroom.ledger.events import (
    Event,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from greenroom.ledger.interactions import ModelInput, model_ends, model_inputs
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import within
from greenroom.ledger.plain import Json, plain, same
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta, send_piece
from greenroom.world.captures import as_input
from greenroom.world.records import raised_before
from greenroom.world.world import ToolRequest


class RecordedQuestion(Struct, eq=False):
    """A question to a model as it was asked and answered, and whether it was asked again."""

    called: ModelCalled
    request: ModelInput
    end: ModelReplied | ModelFailed | None
    is_used: bool = False

    @property
    def body(self) -> ModelBody:
        """Answers as the model did, or fails as it did."""

        async def again(_: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
            end = self.end
            if not isinstance(end, ModelReplied):
                assert end is not None
                raise raised_before(end.error, end.error_type, end.ours)
            await send_piece(on_delta, end.text)
            # What it used and cost is part of the answer: an agent may act on it.
            return ModelReply(end.text, end.calls, end.usage, end.cost, end.prices, end.model)

        return again


class RecordedCall(Struct, eq=False):
    """A call of a tool as it was made, and whether it was made again."""

    called: ToolCalled | ToolBlocked
    end: ToolReturned | ToolFailed | None
    inside: tuple[Event, ...] = ()
    """What agents did that ran inside the tool or its mock."""
    is_used: bool = False


class Recording:
    """The questions and calls of the agent in a ledger, each to be answered once more."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        ends = model_ends(ledger)
        self._questions: dict[str, list[RecordedQuestion]] = {}
        for called, request in model_inputs(ledger):
            end = ends.get(called.seq)
            # A question that was cut was asked again, or has no answer.
            if request is not None and end is not None:
                asked = RecordedQuestion(called, request, end)
                self._questions.setdefault(called.path, []).append(asked)
        index = ledger.index_of()
        self._calls = [
            RecordedCall(one, index.end_of(one), tuple(self._inside(one))) for one in index.issued
        ]
        self._calls += [RecordedCall(one, None) for one in index.blocked]

    def _inside(self, called: ToolCalled) -> Iterator[Event]:
        place = f"{called.path}/call:{called.call_id}"
        return (event for event in self.ledger if within(event.path, place))

    def question(self, request: ModelRequest) -> RecordedQuestion | None:
        """The same question at the same place that was not asked again yet."""
        wanted = _key(request.agent, as_input(request))
        for asked in self._questions.get(request.path, ()):
            if not asked.is_used and _key(asked.called.agent, asked.request) == wanted:
                return asked
        return None

    def call(self, request: ToolRequest) -> RecordedCall | None:
        """The same call that was not made again yet: by its id, else at the same place."""
        args = plain(dict(request.args))
        alike = [
            call
            for call in self._calls
            if call.called.tool == request.tool and same(dict(call.called.args), args)
        ]
        by_id = [call for call in alike if call.called.call_id == request.id]
        here = [call for call in alike if call.called.path == request.path]
        waiting = [call for call in by_id if call.is_used and request.yields]
        fresh = [call for call in (*by_id, *here) if not call.is_used]
        return next(iter((*fresh, *waiting)), None)

    def drift_of_question(self, request: ModelRequest) -> str:
        """How a question differs from what was recorded, in words."""
        left = [asked for asked in self._questions.get(request.path, ()) if not asked.is_used]
        if not left:
            return (
                f"agent {request.agent!r} asks its model once more at {request.path}, which is not "
                f"recorded; the last message is {request.last[:80]!r}."
            )
        found = input_difference(left[0].request, as_input(request), "when recorded", "now")
        if not found:
            found = f"asked by {left[0].called.agent!r} when recorded, by {request.agent!r} now"
        place = f"question {left[0].called.n + 1} at {request.path} (event {left[0].called.seq})"
        return f"{place} differs in {found}."

    def drift_of_call(self, request: ToolRequest) -> str:
        """How a call differs from what was recorded, in words."""
        left = [c for c in self._calls if not c.is_used and c.called.path == request.path]
        named = [c for c in left if c.called.tool == request.tool]
        now = f"{request.tool}({_shown(request.args)})"
        if named:
            was = f"{request.tool}({_shown(named[0].called.args)})"
            return f"the call at {request.path} is {now}, but {was} is recorded (event {named[0].called.seq})."
        return f"the call {now} at {request.path} is not recorded."

    def left(self) -> str:
        """What was recorded and not asked for again, in words; "" if nothing is left."""
        for questions in self._questions.values():
            for asked in questions:
                if not asked.is_used and not self._is_inside_a_call(asked.called):
                    return (
                        f"question {asked.called.n + 1} at {asked.called.path} (event "
                        f"{asked.called.seq}) was asked when recorded, and is not asked now."
                    )
        return ""

    def _is_inside_a_call(self, event: Event) -> bool:
        return any(event in call.inside for call in self._calls)


def copied(event: Event) -> Event:
    """The event, to be appended to another ledger."""
    return structs.replace(event, seq=-1)


def _key(agent: str, request: ModelInput) -> str:
    """All that an answer depends on; the ids of calls are no words to a model."""
    messages = [
        (m.role, m.text, [(c.tool, dict(c.args)) for c in m.calls], m.tool)
        for m in request.messages
    ]
    whole: list[Any] = [agent, request.instructions, messages, request.tools, request.output_schema]
    return json.dumps(to_builtins(whole, enc_hook=str), sort_keys=True)


def _shown(args: Any) -> str:
    given: dict[str, Json] = dict(args)
    text = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return text if len(text) <= 120 else f"{text[:119]}…"
