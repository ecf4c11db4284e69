"""One model request or tool call, and its span; what was said is written as the conventions have it."""

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Final, cast

from opentelemetry.trace import INVALID_SPAN, Span, StatusCode

from greenroom.ledger.events import (
    Event,
    ModelFailed,
    ModelReplied,
    ToolBlocked,
    ToolFailed,
    ToolReturned,
)
from greenroom.ledger.messages import Message
from greenroom.models.model import ModelRequest
from greenroom.telemetry.attributes import Attributes, about_model, about_run
from greenroom.telemetry.foreign import COUNTS_TOKENS, TAKES_TIMES, Operation, scope_of
from greenroom.telemetry.meters import Meters
from greenroom.traces.messages import CUT
from greenroom.world.middleware.current import Run
from greenroom.world.world import ToolRequest


class Call:
    """A call in progress. Its events say how it ends."""

    def __init__(self, asked: ModelRequest | ToolRequest, content_chars: int, run: Run) -> None:
        self._chars = content_chars
        self.voice = run.voice
        self._begun = perf_counter()
        self._replied: ModelReplied | None = None
        self._failed = ""
        self.span: Span = INVALID_SPAN
        self.is_own = True
        self.operation: Operation
        if isinstance(asked, ModelRequest):
            self.operation, self._labels = "chat", about_model(asked.model)
            self.target = self._labels["gen_ai.request.model"]
            more = self._about_question(asked)
        else:
            self.operation, self._labels, self.target = "execute_tool", {}, asked.tool
            more = self._about_tool(asked)
        self.name = f"{self.operation} {self.target}".rstrip()
        operation = {"gen_ai.operation.name": self.operation, **self._labels}
        self._labels = operation
        if self.voice != "agent":
            self._labels = {**operation, "greenroom.voice": self.voice}
        self.attributes: Attributes = {**operation, **about_run(run), **more}
        if asked.path:
            self.attributes["greenroom.path"] = asked.path

    def _about_question(self, asked: ModelRequest) -> Attributes:
        found: Attributes = {"gen_ai.agent.name": asked.agent} if asked.agent else {}
        if asked.node:
            found["greenroom.node"] = asked.node
        if asked.output_schema is not None:
            found["gen_ai.output.type"] = "json"
        if self._chars:
            heard = ({"role": one.role, "parts": _parts(one)} for one in asked.messages)
            found["gen_ai.input.messages"] = _written(heard, self._chars)
            if asked.instructions:
                said = [{"type": "text", "content": asked.instructions}]
                found["gen_ai.system_instructions"] = _written(said, self._chars)
            if asked.tools:
                tools = [
                    {"type": "function", "name": tool.name, "description": tool.description}
                    for tool in asked.tools
                ]
                found["gen_ai.tool.definitions"] = _written(tools, self._chars)
        return found

    def _about_tool(self, asked: ToolRequest) -> Attributes:
        found: Attributes = {"gen_ai.tool.name": asked.tool, "gen_ai.tool.type": "function"}
        if asked.id:
            found["gen_ai.tool.call.id"] = asked.id
        if self._chars:
            found["gen_ai.tool.call.arguments"] = _written(dict(asked.args), self._chars)
        return found

    def write(self, attributes: Attributes) -> None:
        """Add attributes to the span, but keep what a framework wrote itself."""
        known: Any = (getattr(self.span, "attributes", None) or {}) if not self.is_own else {}
        self.span.set_attributes({key: v for key, v in attributes.items() if key not in known})

    def happened(self, event: Event) -> None:
        """Record what an event says about this call."""
        match event:
            case ModelReplied():
                self._replied = event
                self.write(self._about_reply(event))
            case ToolReturned():
                self.write({"greenroom.source": event.source})
                if self._chars:
                    self.write({"gen_ai.tool.call.result": _written(event.value, self._chars)})
            case ToolFailed():
                self.write({"greenroom.source": event.source})
                self.fail(event.error_type, event.error)
            case ModelFailed():
                self.fail(event.error_type, event.error)
            case ToolBlocked():
                self.write({"greenroom.source": "refused"})
            case _:
                pass

    def _about_reply(self, replied: ModelReplied) -> Attributes:
        found: Attributes = {"greenroom.source": replied.source}
        if replied.model:
            found["gen_ai.response.model"] = about_model(replied.model)["gen_ai.request.model"]
        if replied.usage is not None:
            found["gen_ai.usage.input_tokens"] = replied.usage.input
            found["gen_ai.usage.output_tokens"] = replied.usage.output
        if replied.cost is not None:
            found["greenroom.cost_usd"] = replied.cost
        if self._chars:
            parts = _parts(Message("assistant", replied.text, replied.calls))
            ended = "tool_call" if replied.calls else "stop"
            said = [{"role": "assistant", "parts": parts, "finish_reason": ended}]
            found["gen_ai.output.messages"] = _written(said, self._chars)
        return found

    def fail(self, error_type: str, error: str) -> None:
        """The call failed; the error's message is written only if content is."""
        if self._failed:
            return
        self._failed = error_type or "_OTHER"
        self.write({"error.type": self._failed})
        if self.is_own:
            self.span.set_status(StatusCode.ERROR, error if self._chars else None)

    def end(self, meters: Meters) -> None:
        """The call is over."""
        if self.operation == "chat":
            scope = "" if self.is_own else scope_of(self.span)
            if self._replied is not None and scope not in COUNTS_TOKENS:
                meters.asked(self._replied, self._labels)
            if scope not in TAKES_TIMES:
                failed = {"error.type": self._failed} if self._failed else {}
                meters.took(perf_counter() - self._begun, {**self._labels, **failed})
        if self.is_own:
            self.span.end()


CALL: Final = ContextVar["Call | None"]("greenroom_call_span", default=None)
"""The current call."""


# What was said, as JSON strings of roles and parts


def _written(value: object, most: int) -> str:
    """A value as JSON, shortened with a mark if it is longer than `most` characters."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, Iterator):
        text = _listed(cast("Iterator[Any]", value), most)
    else:
        text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}{CUT}"


def _listed(values: Iterator[object], most: int) -> str:
    """A list as JSON, encoded only as far as it will be kept: a conversation grows with every request."""
    parts: list[str] = []
    for value in values:
        parts.append(json.dumps(value, default=repr, ensure_ascii=False))
        most -= len(parts[-1])
        if most < 0:
            break
    return f"[{', '.join(parts)}]"


def _parts(message: Message) -> list[Mapping[str, object]]:
    if message.role == "tool":
        return [
            {"type": "tool_call_response", "id": message.call_id, "response": message.text},
        ]
    parts: list[Mapping[str, object]] = []
    if message.text:
        parts.append({"type": "text", "content": message.text})
    parts += [
        {"type": "tool_call", "id": one.id, "name": one.tool, "arguments": one.args}
        for one in message.calls
    ]
    return parts
