"""Bytes in google-adk's messages: replaced by references, as in cases and ledgers."""

from greenroom.cases.attachments import as_base64, from_base64
from greenroom.cases.fields import Fields
from greenroom.cases.problems import at
from greenroom.ledger.attachments import Attachment, attachment_in
from greenroom.ledger.plain import Json, is_array, is_object, plain

_INLINE = ("inline_data", "inlineData")
_BLOB = ("mime_type", "data", "display_name")


def with_blobs_kept(message: Json, place: str) -> Json:
    """The message with a reference in place of the bytes of each of its parts."""
    if is_array(message):
        return [with_blobs_kept(item, at(place, i)) for i, item in enumerate(message)]
    if not is_object(message):
        return message
    found: dict[str, Json] = {}
    for key, value in message.items():
        here = at(place, key)
        is_blob = key in _INLINE and is_object(value) and isinstance(value.get("data"), str)
        found[key] = _kept_blob(value, here) if is_blob else with_blobs_kept(value, here)
    return found


def _kept_blob(data: Json, place: str) -> Json:
    fields = Fields(data, place, _BLOB)
    kind, name = fields.text("mime_type"), fields.text("display_name")
    coded = fields.text("data")
    fields.settle()
    return plain(from_base64(coded, kind, name, at(place, "data")))


def with_blobs(message: Json) -> Json:
    """The message with its bytes again, as google-adk writes them."""
    if is_array(message):
        return [with_blobs(item) for item in message]
    one = attachment_in(message)
    if one is not None:
        return {"mime_type": one.media_type, "data": as_base64(one), "display_name": one.name}
    if not is_object(message):
        return message
    return {key: with_blobs(value) for key, value in message.items()}


def attached_in(message: Json) -> tuple[Attachment, ...]:
    """The attachments of a message whose bytes are kept."""
    parts = message.get("parts") if is_object(message) else None
    found = [attachment_in(_inline(part)) for part in parts] if is_array(parts) else []
    return tuple(one for one in found if one is not None)


def _inline(part: Json) -> Json:
    if not is_object(part):
        return None
    return next((part[name] for name in _INLINE if name in part), None)
