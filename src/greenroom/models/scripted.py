"""A model that answers from a script: for demos, tests and rehearsals without a key."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from greenroom.errors import BadAgent, ScriptExhausted
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.identity import code_identity
from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import plain
from greenroom.models.model import ModelReply, ModelRequest, OnDelta, send_piece

Part = str | ToolCall | Attachment
Line = Part | Sequence[Part] | Mapping[str, Any] | ModelReply | Exception
"""A string, a call, an attachment, several of these at once, a structured answer, a whole reply, or a failure."""
Answer = Line | Callable[[ModelRequest], "Line | Awaitable[Line]"]

SCRIPT = "scripted"
"""The source of the price of zero, if the answer is in a script."""
_FUNCTION = "scripted by a function"
"""The source of the price of zero, if a function gave the answer, which may be another one the next time."""


class Scripted:
    """Answers in succession; the n-th request of a node gets the n-th answer.

    It holds no position: the request says how many came before, so one object serves many runs at
    once. `then` is the answer after the end of the script; without it that is an error.
    """

    def __init__(
        self,
        *answers: Answer,
        then: Answer | None = None,
        name: str = "scripted",
        usage: Usage | None = None,
        latency: float = 0.0,
    ) -> None:
        self._answers: tuple[Answer, ...] = tuple(_checked(answer) for answer in answers)
        self._then = None if then is None else _checked(then)
        self.name = name
        self._usage = usage or Usage()
        self._latency = latency

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The answer whose turn it is."""
        if self._latency:
            await asyncio.sleep(self._latency)
        answers, n = self._answers, request.n
        answer = answers[n] if n < len(answers) else self._then
        if answer is None:
            raise ScriptExhausted(
                f"the scripted model of {request.agent!r} has {len(answers)} answers, but was asked "
                f"for number {n + 1} after {request.last[:80]!r}. Add an answer, or give "
                f"Scripted(..., then=...)."
            )
        prices = SCRIPT
        if callable(answer):
            made: Any = answer(request)
            if not isinstance(made, _LINE) and inspect.isawaitable(made):
                made = await made
            answer, prices = _checked(made), _FUNCTION
        reply = self._reply(answer, prices)
        if on_delta is not None:
            await send_piece(on_delta, reply.text)
        return reply

    def _reply(self, given: Any, prices: str) -> ModelReply:
        text, calls, attached = "", (), ()
        match given:
            case str():
                text = given
            case ToolCall() as wanted:
                calls = (wanted,)
            case Attachment() as one:
                attached = (one,)
            case ModelReply() as reply:
                return replace(reply, prices=prices) if reply.prices == SCRIPT else reply
            case Exception() as error:
                raise error
            case list():
                said = cast("list[Part]", given)
                text = "".join(part for part in said if isinstance(part, str))
                calls = tuple(part for part in said if isinstance(part, ToolCall))
                attached = tuple(part for part in said if isinstance(part, Attachment))
            case value:
                text = json.dumps(plain(value, "a scripted answer"), ensure_ascii=False)
        # A script costs nothing, and that is a known price.
        return ModelReply(text, calls, self._usage, 0.0, prices, self.name, attached)

    @property
    def identity(self) -> str:
        """Changes with its answers, as far as they can be known: functions by their source."""
        answers = (*self._answers, self._then)
        return repr([code_identity(a) if callable(a) else repr(a) for a in answers])

    def __repr__(self) -> str:
        lines = [repr(answer) for answer in self._answers]
        return f"Scripted({', '.join(lines)})"


_LINE: tuple[type[Any], ...] = (str, ToolCall, Attachment, Mapping, ModelReply, Exception)


def _checked(answer: object) -> Any:
    """The answer, a sequence as a list; BadAgent if no model could give it."""
    if isinstance(answer, _LINE) or callable(answer):
        return cast("Any", answer)
    if isinstance(answer, tuple | list):
        parts = list(cast("list[Any]", answer))
        if parts and all(isinstance(part, str | ToolCall | Attachment) for part in parts):
            return parts
    raise BadAgent(
        f"a scripted answer cannot be {answer!r}. Give a string, call('tool', ...), attach(...), a list of "
        f"these, a mapping for structured output, or a function of the request."
    )
