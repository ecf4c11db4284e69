"""Sessions of google-adk: as its session services write them, in either spelling of their fields."""

from collections.abc import Iterator, Mapping

from greenroom.errors import BadTrace
from greenroom.ledger.messages import Message
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.messages import has_other_parts, message_of, parsed
from greenroom.traces.records import Flaw, Found, Imported
from greenroom.traces.values import array, first, moment, obj, text
from greenroom.traces.writer import LedgerWriter, usage_of


class AdkSession:
    """Reads a session, a list of them, or one on each line."""

    name = "adk-session"

    def recognises(self, file: TraceFile) -> bool:
        """Whether its first entry has an app and events."""
        held = file.first
        return is_array(held.get("events")) and ("appName" in held or "app_name" in held)

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each session."""
        for place, session in file.entries():
            try:
                yield _session(obj(session, "a session"), file.source)
            except BadTrace as error:
                yield Flaw(place=place, why=str(error), source=file.source)


def _session(session: dict[str, Json], source: str) -> Imported:
    writer = LedgerWriter(
        text(session.get("id"), "id"), agent=str(first(session, ("appName", "app_name")) or "")
    )
    at = 0.0
    events = array(session.get("events"), "events")
    if not events:
        raise BadTrace("the session has no events.")
    for number, event in enumerate(events):
        try:
            at = _event(writer, obj(event, "an event"), at)
        except BadTrace as error:
            raise BadTrace(f"events[{number}]: {error}") from error
    return writer.imported("adk-session", source, at=at)


def _event(writer: LedgerWriter, event: dict[str, Json], before: float) -> float:
    """Write an event; returns when it happened, or the one before it if that was later."""
    if event.get("timestamp") is None:
        writer.miss("times")
    at = max(moment(event.get("timestamp") or 0, "timestamp"), before)
    content = event.get("content")
    if event.get("partial") is True:
        return at
    if error := first(event, ("errorMessage", "error_message", "errorCode", "error_code")):
        writer.broke(str(error))
    if content is None:
        return at
    content = obj(content, "content")
    array(content.get("parts"), "parts")
    is_user = text(event.get("author"), "author") == "user"
    if has_other_parts(content):
        writer.miss("user" if is_user else "words")
    for message in message_of({**content, "role": "user" if is_user else "model"}):
        _said(writer, message, event, at)
    return at


def _said(
    writer: LedgerWriter,
    message: Message,
    event: Mapping[str, Json],
    at: float,
) -> None:
    if message.role == "user":
        writer.user(message.text, at)
    elif message.role == "tool":
        call = writer.open_call(message.call_id, message.tool)
        if call is None:
            raise BadTrace(f"it answers a call {message.call_id!r} that no event before it makes.")
        writer.returned(call, parsed(message.text), at)
    elif message.text or message.calls:
        used = first(event, ("usageMetadata", "usage_metadata"))
        counts = used if is_object(used) else {}
        usage = usage_of(
            first(counts, ("promptTokenCount", "prompt_token_count")),
            first(counts, ("candidatesTokenCount", "candidates_token_count")),
            first(counts, ("thoughtsTokenCount", "thoughts_token_count")) or 0,
        )
        model = str(first(event, ("modelVersion", "model_version")) or "")
        number = writer.asked(at, model=model, agent=str(event.get("author") or ""))
        writer.replied(number, message.text, message.calls, at, usage=usage)
        for call in message.calls:
            writer.called(call.tool, call.args, call.id, at)
        if not message.calls:
            writer.said(message.text, at)
