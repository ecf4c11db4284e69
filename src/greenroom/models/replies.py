"""The border to models: what a reply says is checked once, here, before anything relies on it."""

from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final, cast

from msgspec.structs import replace

from greenroom.errors import BadValue, GarbledReply
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import as_object, plain, short_repr
from greenroom.models.model import ModelReply

# More tokens, or USD, than one reply can take: sums of them stay exact and finite.
_MOST: Final = 10**12


class _Impossible(Exception):
    """What a reply says, and what it could say instead."""

    def __init__(self, what: str, given: object, wanted: str) -> None:
        super().__init__(f"{what}{short_repr(given)}, which is impossible. Give {wanted}.")


def checked_reply(reply: object, model: str = "", *, giver: str = "") -> ModelReply:
    """The reply, if it can be recorded and added up; else GarbledReply, which names the model or other giver.

    What it does not know stays unknown: usage with one direction of None is None.
    """
    try:
        if not isinstance(reply, ModelReply):
            raise _Impossible("", reply, "a ModelReply")
        return replace(
            reply,
            text=_words(reply.text, "text"),
            calls=_calls(reply.calls),
            usage=_usage(reply.usage),
            cost=_cost(reply.cost),
            prices=_words(reply.prices, "prices"),
            model=_words(reply.model, "model"),
            attachments=_items(reply.attachments, Attachment, "attachments"),
            partial=bool(reply.partial),
        )
    except _Impossible as error:
        raise GarbledReply(f"{giver or f'the model {model!r}'} replied {error}") from None


def with_usage(reply: ModelReply, read: int | None, wrote: int | None) -> ModelReply:
    """The reply with the tokens that a library counted; unknown if it did not count both directions.

    Most write 0 where a provider did not count. But no model answers what it has not read, or says
    something without writing a token.
    """
    if not read or (not wrote and (reply.text or reply.calls or reply.attachments)):
        return reply
    return replace(reply, usage=Usage(read, wrote or 0))


def _words(given: Any, field: str) -> str:
    if type(given) is str:
        return given
    if given is None:
        return ""
    if isinstance(given, str):
        return str.__str__(given)  # the string of a subclass
    raise _Impossible(f"{field}=", given, "a string")


def _calls(given: Any) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for call in _items(given, ToolCall, "calls"):
        if not isinstance(call.tool, str) or not isinstance(call.id, str):
            raise _Impossible("calls=", given, "calls whose `tool` and `id` are strings")
        try:
            # Copied, because the model may go on to change them.
            args = as_object(plain(call.args, "arguments"), "arguments")
        except BadValue:
            wanted = "an object of JSON values"
            raise _Impossible(f"a call of {call.tool!r} with ", call.args, wanted) from None
        calls.append(ToolCall(call.tool, args, call.id))
    return tuple(calls)


def _items(given: Any, kind: type, field: str) -> tuple[Any, ...]:
    if given is None:
        return ()
    is_many = isinstance(given, list | tuple)
    items = tuple(cast("Iterable[Any]", given)) if is_many else (given,)
    for item in items:
        if not isinstance(item, kind):
            raise _Impossible(f"{field}=", items, f"a sequence of {kind.__name__}")
    return items


def _usage(given: Any) -> Usage | None:
    if given is None:
        return None
    if not isinstance(given, Usage):
        raise _Impossible("usage=", given, "Usage(input, output), or None if it is unknown")
    read, wrote = _count(given.input, given), _count(given.output, given)
    return None if read is None or wrote is None else Usage(read, wrote)


def _count(tokens: Any, given: Usage) -> int | None:
    if tokens is None:
        return None
    if type(tokens) not in (int, bool) and isinstance(tokens, Integral):
        tokens = int(tokens)  # of numpy, say
    if type(tokens) is int and 0 <= tokens <= _MOST:
        return tokens
    raise _Impossible("usage=", given, "whole numbers from 0, or None if they are unknown")


def _cost(given: Any) -> float | None:
    if given is None or (type(given) is float and 0.0 <= given <= _MOST):
        return given
    if type(given) is not bool and isinstance(given, Real | Decimal):
        with suppress(ValueError, OverflowError):
            number = float(given)
            if 0.0 <= number <= _MOST:
                return number
    raise _Impossible("cost=", given, "USD as a number from 0, or None if it is unknown")
