"""Values and attachments as a page shows them: what is too long is shortened, small pictures are shown."""

from base64 import b64encode
from collections.abc import Collection
from typing import Any

from greenroom.errors import BadAttachment
from greenroom.ledger.attachments import Attachment, shown_size
from greenroom.ledger.blobs import described
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.results.wire import shown_json

_LONGEST_TEXT = 12_000
_LONGEST_LIST = 200
_DEEPEST = 40
_LEFT_OUT = "… left out"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Only plain images are shown: an SVG, a page or a document is named, never opened."""
_LARGEST = 150_000


class Trimmer:
    """Shortens the values of one result so that all of them together stay within bounds.

    `cuts` counts the shortened values; if it is 0, the report shows everything.
    """

    def __init__(self, room: int = 400_000) -> None:
        self.cuts = 0
        self._room = room
        self._pictures = room

    def takes(self, size: int) -> bool:
        """Whether there is room for a picture of this many characters."""
        self._pictures -= size
        return self._pictures >= 0

    def text(self, text: str) -> str:
        """The text, or its beginning and how much is missing."""
        longest = max(min(_LONGEST_TEXT, self._room), 0)
        self._room -= min(len(text), longest) + 8
        if len(text) <= longest:
            return text
        self.cuts += 1
        return f"{text[:longest]}… {len(text) - longest} more characters"

    def json(self, value: object) -> Json:
        """The value as JSON, shortened."""
        return self._cut(shown_json(value), 0)

    def _cut(self, value: Json, depth: int) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if depth > _DEEPEST or self._room <= 0:
            self.cuts += 1
            return _LEFT_OUT
        self._room -= 8
        if is_object(value):
            kept = list(value.items())[:_LONGEST_LIST]
            found = {self.text(key): self._cut(item, depth + 1) for key, item in kept}
            if missing := self._missing(value):
                found["…"] = f"{missing} more"
            return found
        if is_array(value):
            items = [self._cut(item, depth + 1) for item in value[:_LONGEST_LIST]]
            return [*items, f"… {missing} more"] if (missing := self._missing(value)) else items
        return value

    def _missing(self, value: Collection[Json]) -> int:
        """How many entries a list or an object loses here."""
        missing = max(len(value) - _LONGEST_LIST, 0)
        self.cuts += bool(missing)
        return missing


def shown_file(attachment: Attachment, trimmer: Trimmer) -> dict[str, Any]:
    """An attachment as a row of the timeline has it."""
    facts = {
        "name": trimmer.text(attachment.name),
        "type": attachment.media_type,
        "size": shown_size(attachment.size),
    }
    picture = _picture(attachment, trimmer)
    return {**facts, "src": picture} if picture else facts


def _picture(attachment: Attachment, trimmer: Trimmer) -> str:
    if attachment.media_type not in _PICTURES or attachment.size > _LARGEST:
        return ""
    try:
        data = attachment.data
        described(data, attachment.media_type, attachment.name, attachment.name)
    except BadAttachment:  # the bytes are gone, or it is not a picture
        return ""
    coded = b64encode(data).decode()
    return f"data:{attachment.media_type};base64,{coded}" if trimmer.takes(len(coded)) else ""
