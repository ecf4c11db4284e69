"""A whole response as the stream of events in which a provider would have sent it."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)

from agents import ModelResponse

_PIECE = re.compile(r"\s*\S+|\s+\Z")


def events_of(response: ModelResponse, model: str) -> Iterator[Any]:
    """The events of a response: each item word by word, and finally the whole."""
    number, whole = count(), _whole(response, model)
    begun = whole.model_copy(update={"output": [], "usage": None, "status": "in_progress"})
    yield ResponseCreatedEvent(
        type="response.created", response=begun, sequence_number=next(number)
    )
    for at, item in enumerate(whole.output):
        place: Any = {"output_index": at}
        empty, inside = _opened(item, place)
        yield ResponseOutputItemAddedEvent(
            type="response.output_item.added", item=empty, sequence_number=next(number), **place
        )
        for kind, given in inside:
            yield kind(sequence_number=next(number), **given)
        yield ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=item, sequence_number=next(number), **place
        )
    yield ResponseCompletedEvent(
        type="response.completed", response=whole, sequence_number=next(number)
    )


def _whole(response: ModelResponse, model: str) -> Response:
    used = response.usage
    usage: Any = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "total_tokens": used.total_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return Response(
        id=response.response_id or "greenroom",
        created_at=0,
        model=model,
        object="response",
        output=list(response.output),
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
        usage=usage,
    )


def _opened(item: Any, place: dict[str, Any]) -> tuple[Any, Iterator[tuple[Any, dict[str, Any]]]]:
    """An item as it is announced, and the events that fill it."""
    if isinstance(item, ResponseFunctionToolCall):
        return item.model_copy(update={"arguments": ""}), _arguments(item, place)
    if isinstance(item, ResponseOutputMessage):
        empty = item.model_copy(update={"content": [], "status": "in_progress"})
        return empty, _parts(item, place)
    return item, iter(())


def _arguments(
    call: ResponseFunctionToolCall, place: dict[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    here = {**place, "item_id": call.id or call.call_id}
    kind = "response.function_call_arguments"
    for piece in _PIECE.findall(call.arguments):
        yield (
            ResponseFunctionCallArgumentsDeltaEvent,
            {**here, "type": f"{kind}.delta", "delta": piece},
        )
    done = {**here, "type": f"{kind}.done", "arguments": call.arguments, "name": call.name}
    yield ResponseFunctionCallArgumentsDoneEvent, done


def _parts(
    message: ResponseOutputMessage, place: dict[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    for at, part in enumerate(message.content):
        here = {**place, "item_id": message.id, "content_index": at}
        is_text = isinstance(part, ResponseOutputText)
        empty = part.model_copy(update={"text" if is_text else "refusal": ""})
        added = {**here, "type": "response.content_part.added", "part": empty}
        yield ResponseContentPartAddedEvent, added
        if is_text:
            said = {**here, "logprobs": []}
            for piece in _PIECE.findall(part.text):
                delta = {**said, "type": "response.output_text.delta", "delta": piece}
                yield ResponseTextDeltaEvent, delta
            yield (
                ResponseTextDoneEvent,
                {**said, "type": "response.output_text.done", "text": part.text},
            )
        yield (
            ResponseContentPartDoneEvent,
            {**here, "type": "response.content_part.done", "part": part},
        )
