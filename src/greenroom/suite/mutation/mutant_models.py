"""The models of mutant agents: some answer by themselves and cost nothing, one makes the agent's own know less."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import Json, is_object
from greenroom.models.model import Model, ModelReply, ModelRequest, OnDelta, model_name, send_piece
from greenroom.models.scripted import SCRIPT
from greenroom.suite.mock_suggestions import sample

MUTANT = "mutant"
"""The name in ledgers of a model that answers for a mutant by itself."""
SAYS_NOTHING = "…"
"""Not empty: an answer without any text is an error in every trial, which would show nothing about the cases."""
_MOST_QUESTIONS = 20
"""After this many questions in a trial no further tool is called, in case the history shows no calls."""


class MutantModel:
    """Answers with `words`, or with those of the user if it has none, after calling each tool of `calls` once.

    Where data is required it gives data, with the words as its strings. `own` are the agent's tools, so that
    they are not mistaken for a framework's way to give such an answer.
    """

    name = MUTANT

    def __init__(
        self,
        words: str | None,
        own: frozenset[str] = frozenset(),
        calls: Mapping[str, Mapping[str, Json]] | None = None,
    ) -> None:
        self._words = words
        self._own = own
        self._calls = calls or {}

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The calls that are left to be made, else the words."""
        text, calls = "", self._due(request)
        if not calls:
            text, calls = self._answer(request)
        await send_piece(on_delta, text)
        return ModelReply(text, calls, Usage(), 0.0, SCRIPT, self.name)

    def _due(self, request: ModelRequest) -> tuple[ToolCall, ...]:
        if request.n >= _MOST_QUESTIONS:
            return ()
        made = {one.tool for message in request.messages for one in message.calls}
        return tuple(
            ToolCall(tool.name, {**_arguments(tool.parameters), **self._calls[tool.name]})
            for tool in request.tools
            if tool.name in self._calls and tool.name not in made
        )

    def _answer(self, request: ModelRequest) -> tuple[str, tuple[ToolCall, ...]]:
        words = _last_said(request) if self._words is None else self._words
        if request.output_schema is not None:
            return _written(request, words), ()
        for tool in request.tools:
            if tool.name in request.answer_tools and tool.name not in self._own:
                return "", (ToolCall(tool.name, _arguments(tool.parameters, words)),)
        return words, ()


def _arguments(schema: Mapping[str, object], words: str = "") -> dict[str, Json]:
    """Arguments that fit the schema of a tool."""
    found = sample(schema, words)
    return found if is_object(found) else {}


def _written(request: ModelRequest, words: str) -> str:
    """The words, or the data that is required, with the words as its strings."""
    if request.output_schema is None:
        return words
    return json.dumps(sample(request.output_schema, words), ensure_ascii=False)


def _last_said(request: ModelRequest) -> str:
    """What the user said last."""
    said = [message.text for message in request.messages if message.role == "user" and message.text]
    return said[-1] if said else SAYS_NOTHING


class LessenedModel:
    """Another model whose requests lack one tool or one rule; everything else is passed on."""

    def __init__(self, inner: Model, *, tool: str = "", rule: str = "") -> None:
        self._inner = inner
        self._tool = tool
        self._rule = rule

    @property
    def name(self) -> str:
        """The name of the model inside, by which it is priced and paced."""
        return model_name(self._inner)

    @property
    def identity(self) -> str:
        """Changes with the model inside, and with what is removed from its requests."""
        return repr([str(getattr(self._inner, "identity", "")), self._tool, self._rule])

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The answer of the model inside to the reduced request."""
        told = request.instructions
        asked = replace(
            request,
            tools=tuple(tool for tool in request.tools if tool.name != self._tool),
            instructions=told.replace(self._rule, "") if self._rule else told,
        )
        reply = await self._inner.respond(asked, on_delta)
        # Only a script calls what it was not offered.
        calls = tuple(one for one in reply.calls if one.tool != self._tool)
        if len(calls) == len(reply.calls):
            return reply
        nothing = "" if calls else _written(request, SAYS_NOTHING)
        return replace(reply, calls=calls, text=reply.text or nothing)

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # not set yet on a copy in the making
            raise AttributeError(name)
        return getattr(self._inner, name)
