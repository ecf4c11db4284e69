"""A ledger's answers in place of models and tools: each question as often as it was asked."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from msgspec import Struct, structs, to_builtins
from msgspec.structs import replace

from greenroom.errors import FailedBefore, ReplayDrifted
from greenroom.ledger.difference import input_difference
from greenroom.ledger.events import (
    Event,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    Question,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from greenroom.ledger.interactions import ModelInput, model_ends, model_inputs
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message, Voice
from greenroom.ledger.paths import within
from greenroom.ledger.plain import Json, plain, same
from greenroom.ledger.questions import ended, time_of_recording
from greenroom.ledger.redaction import redactor
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta, send_piece
from greenroom.world.answers import answers_in
from greenroom.world.captures import as_input
from greenroom.world.records import (
    begin_call,
    error_of,
    given_again,
    raised_before,
    record_model_failure,
    record_question,
    record_reply,
)
from greenroom.world.world import Around, Returned, ToolRequest, World


class RecordedQuestion(Struct, eq=False):
    """A recorded question to a model with its answer, and whether it was asked again."""

    called: ModelCalled
    request: ModelInput
    end: ModelReplied | ModelFailed
    is_used: bool = False


class RecordedCall(Struct, eq=False):
    """A recorded call of a tool, and whether it was made again."""

    called: ToolCalled | ToolBlocked
    end: ToolReturned | ToolFailed | None
    inside: tuple[Event, ...] = ()
    """The events of agents that ran inside the tool or its mock."""
    is_used: bool = False


class Recording:
    """The questions and calls in the ledger of a trial, each to be answered once more.

    A question that is not recorded is drift, unless `asks_live`: then the model is asked. `done` is the part
    of a resumed trial whose questions were answered before.
    """

    def __init__(
        self, ledger: Ledger, *, asks_live: bool = False, done: Ledger | None = None
    ) -> None:
        self.ledger = ledger
        self.asks_live = asks_live
        self.recorded_at = time_of_recording(ledger.first)
        self._questions: dict[tuple[Voice, str], list[RecordedQuestion]] = {}
        self._stopped: dict[tuple[Voice, str], list[str]] = {}
        """Questions without an answer, in parts that were stopped, such as one that lost a race."""
        for voice in ledger.voices:
            ends, closed = model_ends(ledger, voice), ledger.index_of(voice).is_closed
            for called, request in model_inputs(ledger, voice):
                end = ends.get(called.seq)
                place: tuple[Voice, str] = (voice, called.path)
                # An interrupted question was asked again, or has no answer.
                if request is not None and end is not None:
                    asked = RecordedQuestion(called, request, end)
                    self._questions.setdefault(place, []).append(asked)
                elif request is not None and closed(called.path):
                    key = key_of_question(called.agent, request)
                    self._stopped.setdefault(place, []).append(key)
        index = ledger.index_of()
        self._calls = [
            RecordedCall(one, index.end_of(one), tuple(self._inside(one))) for one in index.issued
        ]
        self._calls += [RecordedCall(one, None) for one in index.blocked]
        if done is not None and len(done):
            self._skip(done)

    def _skip(self, done: Ledger) -> None:
        """Count what an earlier process asked before the interruption as asked again."""
        for voice in done.voices:
            asked = {(event.path, event.n) for event in done.index_of(voice).replied}
            asked |= {(event.path, event.n) for event in done.of(ModelFailed, voice=voice)}
            for (side, path), questions in self._questions.items():
                for one in questions:
                    one.is_used = one.is_used or (side == voice and (path, one.called.n) in asked)
        results = done.index_of().results
        for call in self._calls:
            call.is_used = call.called.call_id in results

    def _inside(self, called: ToolCalled) -> Iterator[Event]:
        place = f"{called.path}/call:{called.call_id}"
        return (event for event in self.ledger if within(event.path, place))

    async def reply(
        self, world: World, request: ModelRequest, on_delta: OnDelta | None = None
    ) -> ModelReply | None:
        """The recorded reply, recorded here as replayed; None if the model must be asked.

        Middleware is not called again: the reply was recorded as middleware had changed it.
        """
        given = inputs_of(world, request)
        asked = self.question(request, given, world.voice)
        if asked is None:
            if self._was_stopped(request, given, world.voice):
                record_question(world, request)
                await asyncio.Event().wait()  # until it is stopped again
            if self.asks_live:
                return None
            raise drifted(self.drift_of_question(request, given[0], world.voice))
        asked.is_used = True
        return await repeat_reply(world, request, asked, on_delta)

    def question(
        self, request: ModelRequest, given: Sequence[ModelInput], voice: Voice = "agent"
    ) -> RecordedQuestion | None:
        """The recorded question at this place that equals the request and was not asked again yet."""
        left = [a for a in self._questions.get((voice, request.path), ()) if not a.is_used]
        keys = [key_of_question(request.agent, one) for one in given] if left else []
        return next(
            (k for key in keys for k in left if key_of_question(k.called.agent, k.request) == key),
            None,
        )

    def _was_stopped(
        self, request: ModelRequest, given: Sequence[ModelInput], voice: Voice
    ) -> bool:
        known = self._stopped.get((voice, request.path), ())
        return any(key_of_question(request.agent, one) in known for one in given)

    def returned(self, world: World, request: ToolRequest) -> Returned | None:
        """The recorded end of a call, recorded here as replayed; None if the tool must run."""
        found = self.call(request)
        if found is not None and found.end is not None:
            found.is_used = True
            return repeat_call(world, request, found, self.ledger)
        if self.asks_live:
            return None
        raise drifted(self.drift_of_call(request))

    def call(self, request: ToolRequest) -> RecordedCall | None:
        """The recorded call that equals this one and was not made again yet: by its id, else by its place."""
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

    def drift_of_question(
        self, request: ModelRequest, given: ModelInput, voice: Voice = "agent"
    ) -> str:
        """How a question differs from what was recorded, in words."""
        left = [a for a in self._questions.get((voice, request.path), ()) if not a.is_used]
        if not left:
            cut = (
                ""
                if ended(self.ledger)
                else " The recording has no end: it may have been interrupted."
            )
            return (
                f"agent {request.agent!r} asks its model once more at {request.path}, which is not "
                f"recorded; the last message is {request.last[:80]!r}.{cut}"
            )
        found = input_difference(left[0].request, given, "when recorded", "now")
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

    def unasked(self) -> ReplayDrifted | None:
        """The drift of an agent that has not asked everything that was recorded; None if that is not a drift."""
        if self.asks_live:
            return None
        asked = (asked for questions in self._questions.values() for asked in questions)
        for one in asked:
            called = one.called
            if one.is_used or called.voice != "agent" or self._is_inside_a_call(called):
                continue
            return drifted(
                f"question {called.n + 1} at {called.path} (event {called.seq}) was asked when "
                f"recorded, and is not asked now."
            )
        return None

    def _is_inside_a_call(self, event: Event) -> bool:
        return any(event in call.inside for call in self._calls)


def drifted(words: str) -> ReplayDrifted:
    """The error that says how a trial differs from the recorded one."""
    return ReplayDrifted(
        f"the agent does something other than what was recorded: {words} Replay the agent that was recorded, "
        f"record it again, or give on_drift='live' to let its models answer from there on."
    )


async def repeat_reply(
    world: World,
    request: ModelRequest,
    asked: RecordedQuestion,
    on_delta: OnDelta | None = None,
    *,
    numbered: bool = True,
) -> ModelReply:
    """Answer as the model did, or fail as it did, and record that as replayed.

    With `numbered` the question keeps the number with which it was recorded.
    """
    called, end = asked.called, asked.end
    # The request as it was sent to a model: a choice of models is not made again.
    request = replace(request, model=called.model, digest=called.digest)
    if numbered:
        request = replace(request, n=called.n)
    record_question(world, request)
    if isinstance(end, ModelFailed):
        error = raised_before(end.error, end.error_type, end.ours)
        record_model_failure(world, request, error)
        raise error
    await send_piece(on_delta, end.text)
    # Tokens and cost are part of the answer: an agent may act on them.
    reply = given_again(end)
    return record_reply(world, request, reply, "replayed", end.seconds, end.first)


def repeat_call(
    world: World, request: ToolRequest, found: RecordedCall, recorded: Ledger
) -> Returned:
    """End a call as it ended, and record that as replayed."""
    begin_call(world, request)
    for event in found.inside:
        # A model that simulated the tool answered on the user's side.
        side: World = world if event.voice == world.voice else getattr(world, "user_world", world)
        is_reply = isinstance(event, ModelReplied)
        side.record(copied(structs.replace(event, source="replayed") if is_reply else event))
    end = found.end
    if end is None:
        raise as_ended(recorded)
    again = structs.replace(end, seq=-1, path=request.path, call_id=request.id, source="replayed")
    world.record(again)
    if isinstance(end, ToolFailed):
        return Returned(None, end.error, "replayed")
    return Returned(end.value, "", "replayed")


def as_ended(recorded: Ledger) -> Exception:
    """The error that ended the recorded trial while a call was in progress."""
    end = ended(recorded)
    if end is None or end.reason != "error":
        return FailedBefore("the recorded trial was stopped here", "TimeoutError", "system")
    return error_of(end)


class RecordedJudges(Around):
    """A world whose judges are answered from what they answered when the trial was recorded."""

    def __init__(self, inner: World, recorded: Ledger, *, asks_live: bool) -> None:
        super().__init__(inner)
        self._asks_live = asks_live
        self._answers = answers_in(recorded)
        for digest, known in answers_in(inner.ledger).items():  # answered before an interruption
            for _ in zip(known, [*self._answers.get(digest, ())], strict=False):
                self._answers[digest].popleft()

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The recorded answer to this question; else drift, or the judge is asked."""
        known = self._answers.get(request.digest)
        if known:
            end = known.popleft()
            record_question(self.inner, request)
            reply = given_again(end)
            return record_reply(self.inner, request, reply, "replayed", end.seconds)
        if not self._asks_live:
            raise ReplayDrifted(
                f"{request.agent} asks {request.model!r} something that is not recorded: the metric, "
                f"its model or what it judges has changed. Record the trial again, or give "
                f"on_drift='live' to let the judge answer."
            )
        return await self.inner.call_model(request, body, on_delta)


def copied(event: Event) -> Event:
    """The event, to be appended to another ledger."""
    return structs.replace(event, seq=-1)


def inputs_of(world: World, request: ModelRequest) -> list[ModelInput]:
    """A question as it would be recorded here, then as files and stores keep it: without its secrets."""
    given = as_input(request)
    redact: Callable[[Event], Event] | None = getattr(world, "redact", None)
    if redact is not None:
        asked = Question(given.messages, given.instructions, given.tools, given.output_schema)
        hidden = redact(ModelCalled(question=asked))
        asked = cast("ModelCalled", hidden).question or asked
        messages = cast("tuple[Message, ...]", asked.messages)
        given = ModelInput(asked.instructions, messages, asked.tools, asked.output_schema)
    clean = redactor().value(given)
    return [given] if clean == given else [given, clean]


def key_of_question(agent: str, request: ModelInput) -> str:
    """Everything that an answer depends on; the ids of calls do not matter to a model."""
    messages = [
        (m.role, m.text, [(c.tool, dict(c.args)) for c in m.calls], m.tool, m.attachments)
        for m in request.messages
    ]
    whole: list[Any] = [agent, request.instructions, messages, request.tools, request.output_schema]
    return json.dumps(to_builtins(whole, enc_hook=str), sort_keys=True)


def _shown(args: Any) -> str:
    given: dict[str, Json] = dict(args)
    text = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return text if len(text) <= 120 else f"{text[:119]}…"
