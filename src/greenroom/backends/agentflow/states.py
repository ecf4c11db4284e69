"""What comes out of a graph: its answer, and the state that its next turn begins with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from greenroom.backends.foreign import jsonable, message_data
from greenroom.backends.native.history import as_text
from greenroom.errors import AgentFailed
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.records import is_record

_TOLD = frozenset({"user", "human", "system", "developer"})


def answer_of(result: Any) -> Json:
    """The graph's answer: `response`, else the last message; AgentFailed if there is neither.

    A blank text is no answer, and a state often holds one until its graph has something to say.
    """
    for given in _answers_in(result):
        said = _said(given)
        if not isinstance(said, str) or said.strip():
            return said
    raise AgentFailed(
        f"cannot extract response from what the graph returned ({type(result).__name__}): it has "
        f"no `response`, and no message of its own at the end of `messages`. Let it return one, or "
        f"wrap it in a function that does."
    )


def _answers_in(result: Any) -> Iterator[Any]:
    """Where an answer may stand, the likeliest place first."""
    if isinstance(result, str):
        yield result
        return
    response = _part(result, "response")
    if response is not None:
        yield response
    messages: Sequence[Any] = _part(result, "messages") or ()
    if messages and not _was_given(messages[-1]):
        yield messages[-1]


def _was_given(message: Any) -> bool:
    """Whether a message is what the graph was given, and no answer to it."""
    role = _part(message, "role") or _part(message, "type")
    return str(getattr(role, "value", role)).lower() in _TOLD


def kept_of(result: Any, messages: list[Any], answer: Json) -> dict[str, Json]:
    """The state for the next turn, as JSON: it must be found again in another process."""
    whole = _whole(result)
    theirs: Sequence[Any] = _part(result, "messages") or ()
    told = [_message(one) for one in theirs]
    if not told:
        told = [*messages, message_data("assistant", answer)]
    whole.pop("response", None)
    return cast("dict[str, Json]", plain({**whole, "messages": told}, "the graph's state"))


def _part(result: Any, name: str) -> Any:
    if isinstance(result, Mapping):
        return cast("Mapping[str, Any]", result).get(name)
    return getattr(result, name, None)


def _whole(result: Any) -> dict[str, Json]:
    """All of a state that is made of data; of other objects only the parts we know are read."""
    if isinstance(result, Mapping | BaseModel) or is_record(result):
        return cast("dict[str, Json]", jsonable(cast(Any, result)))
    return {}


def _said(given: Any) -> Json:
    """The words of a message, or data as it is."""
    if isinstance(given, str):
        return given
    content = _part(given, "content")
    if content is None and not isinstance(given, Mapping):
        content = getattr(given, "text", None)
    if callable(content):
        content = content()
    if content is None:
        return jsonable(given)
    return "".join(_pieces(content))


def _pieces(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if isinstance(content, list | tuple):
        parts = cast("Sequence[Any]", content)
        return [p if isinstance(p, str) else str(_part(p, "text") or "") for p in parts]
    return [as_text(jsonable(content))]


def _message(given: Any) -> dict[str, Json]:
    if isinstance(given, Mapping):
        return cast("dict[str, Json]", jsonable(cast(Any, given)))
    role = _part(given, "role") or _part(given, "type") or "assistant"
    return {"role": str(role), "content": as_text(_said(given))}
